"""What the product knows of providers' promises, each with its source; and which tools rely on it.

The contracts are data of this version of the product: nobody changes them here.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from effects.contracts import CONTRACTS, Terms, contract_of, lines_of, promise_words
from effects.models import Tool
from ledger import queries

TOOLS_NAMED_MAX = 100
"""How many tools of a workspace are named on one contract's page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One contract of the list; `tools` counts those of this workspace that point at it."""

    terms: Terms
    window: str
    tools: int


@require_safe
@membership_required
def contracts(request: DeskRequest) -> HttpResponse:
    """The list, with the window of each and the tools of this workspace that rely on it."""
    used: dict[str, int] = {}
    for name in Tool.objects.filter(workspace=request.workspace).values_list("contract", flat=True):
        used[name] = used.get(name, 0) + 1
    rows = [
        Row(terms=terms, window=promise_words(terms), tools=used.get(name, 0))
        for name, terms in CONTRACTS.items()
    ]
    context = {"now": queries.clock(), "rows": rows}
    return render(request, "reconcile/contracts.html", context)


@require_safe
@membership_required
def contract(request: DeskRequest, contract_name: str) -> HttpResponse:
    """One contract whole: every statement with its source, and when that was looked at."""
    terms = contract_of(contract_name)
    if terms is None:
        raise Http404("No contract has this name.")
    tools = Tool.objects.filter(workspace=request.workspace, contract=terms.name).order_by("name")
    context = {
        "now": queries.clock(),
        "terms": terms,
        "lines": lines_of(terms),
        "tools": tools[:TOOLS_NAMED_MAX],
    }
    return render(request, "reconcile/contract.html", context)
