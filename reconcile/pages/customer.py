"""The page on which admins write what customers may be told, with a preview and who wrote what."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from effects.access import (
    ROLE_WORDS,
    Ability,
    DeskRequest,
    can,
    membership_required,
    needs,
    require,
)
from effects.models import Tool
from ledger import queries as record
from reconcile.customer import texts
from reconcile.customer.kinds import PLACEHOLDERS, TEXT_CHARACTERS_MAX, Tell, fault_of, filled
from reconcile.pages.call import clean_text
from reconcile.pages.review import number

UNPROCESSABLE: Final = 422
TOOLS_OFFERED_MAX: Final = 200


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def texts_page(request: DeskRequest) -> HttpResponse:
    """The texts of a tool (`?tool=`) or of every tool; `?kind=` opens one of them to be written."""
    if request.method != "POST":
        return _page(request, _tool(request, request.GET.get("tool")), request.GET.get("kind", ""))
    require(request, Ability.EDIT_CUSTOMER_TEXTS)
    tool = _tool(request, request.POST.get("tool"))
    word, text = request.POST.get("kind", ""), clean_text(request.POST.get("text"))
    if word not in list(Tell):
        raise Http404("There is no such text.")
    kind = Tell(word)
    if request.POST.get("act") == "preview" or fault_of(text):
        faulty = bool(fault_of(text))
        return _page(request, tool, word, typed=text, status=UNPROCESSABLE if faulty else 200)
    if request.POST.get("act") == "built_in":
        text = ""
    changed = texts.write(
        request.workspace.pk,
        tool_id=tool.pk if tool else None,
        kind=kind,
        text=text,
        user_id=request.user.pk,
    )
    if changed:
        messages.success(
            request, f"In force from now on: what is told for \u201c{kind.label}\u201d."
        )
    else:
        messages.info(request, "That text was in force already.")
    return HttpResponseRedirect(_address(tool))


def _tool(request: DeskRequest, said: str | None) -> Tool | None:
    """The tool of this workspace that is asked for. Raises Http404."""
    if not said:
        return None
    found = Tool.objects.filter(workspace=request.workspace, pk=number(said, default=0)).first()
    if found is None:
        raise Http404("No tool of this workspace has this number.")
    return found


def _address(tool: Tool | None) -> str:
    return reverse("customer-texts") + (f"?tool={tool.pk}" if tool else "")


def _page(
    request: DeskRequest,
    tool: Tool | None,
    word: str,
    *,
    typed: str | None = None,
    status: int = 200,
) -> HttpResponse:
    tool_id = tool.pk if tool else None
    in_force = texts.in_force(request.workspace.pk, tool_id)
    may_edit = can(request.role, Ability.EDIT_CUSTOMER_TEXTS)
    context = {
        "now": record.clock(),
        "tool": tool,
        "tools": Tool.objects.filter(workspace=request.workspace).order_by("name")[
            :TOOLS_OFFERED_MAX
        ],
        "rows": [_row(kind, in_force[kind]) for kind in Tell],
        "history": texts.history(request.workspace.pk, tool_id),
        "kinds": {str(kind): kind.label for kind in Tell},
        "placeholders": PLACEHOLDERS,
        "may_edit": may_edit,
        "needs": needs(Ability.EDIT_CUSTOMER_TEXTS),
        "role": ROLE_WORDS[request.role],
        "form": _form(word, in_force, typed) if may_edit and word in list(Tell) else None,
        "characters_max": TEXT_CHARACTERS_MAX,
        "here": _address(tool),
    }
    return render(request, "reconcile/customer_texts.html", context, status=status)


def _row(kind: Tell, counts: tuple[texts.InForce, ...]) -> dict[str, Any]:
    return {"kind": kind, "first": counts[0], "preview": _preview(counts[0].text)}


def _preview(text: str) -> str:
    """The text as it reads for the call that the placeholders' examples are of."""
    return filled(text, PLACEHOLDERS) or text


def _form(
    word: str, in_force: dict[Tell, tuple[texts.InForce, ...]], typed: str | None
) -> dict[str, Any]:
    kind = Tell(word)
    text = in_force[kind][0].text if typed is None else typed
    fault = fault_of(text)
    return {
        "kind": kind,
        "text": text,
        "fault": fault,
        "preview": "" if fault else _preview(text),
        "previewed": typed is not None and not fault,
        "built_in": kind.built_in,
    }
