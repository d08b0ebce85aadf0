"""The page about API tokens: which there are, what each may do, when it was used; issue and revoke.

The text of a token is in one answer only: the one to the form that issued it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, override

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from effects import audit
from effects.access import (
    Ability,
    DeskRequest,
    can,
    membership_required,
    needs_and_whom,
    require,
)
from effects.core.vocabulary import TokenScope
from effects.models import Membership
from ledger import auth
from ledger.openapi import PREFIX
from ledger.queries import clock

if TYPE_CHECKING:
    from ledger.models import ApiToken

UNPROCESSABLE: Final = 422
NAME_CHARACTERS_MAX: Final = 100
OPEN_TOKENS_MAX: Final = 200
SCOPE_WORDS: Final = {
    TokenScope.CLAIM: "claim: ask before a tool runs, and report how it ended",
    TokenScope.INGEST: "ingest: send events and streams that were recorded elsewhere",
    TokenScope.READ: "read: ask for the state of claims and turns, and change nothing",
}


class TokenForm(forms.Form):
    """The name of a token, and what it may do."""

    name = forms.CharField(
        label="Name",
        max_length=NAME_CHARACTERS_MAX,
        help_text="Which program will carry it, as colleagues will recognise it.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        label="May",
        choices=[(str(scope), words) for scope, words in SCOPE_WORDS.items()],
        widget=forms.CheckboxSelectMultiple(attrs={"class": "check"}),
        error_messages={"required": "A token that may do nothing opens nothing: choose one."},
    )

    @override
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""


@never_cache
@require_http_methods(["GET", "POST"])
@membership_required
def tokens(request: DeskRequest) -> HttpResponse:
    """The list; a POST issues a token and answers with its text, once."""
    require(request, Ability.SEE_TOKENS)
    if request.method == "GET":
        return _page(request, TokenForm(initial={"scopes": [str(TokenScope.CLAIM)]}))
    require(request, Ability.EDIT_TOKENS)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=UNPROCESSABLE)
    name = form.cleaned_data["name"]
    still_open = [one for one in auth.tokens(request.workspace) if one.revoked_at is None]
    # A form that is sent twice must not issue two tokens of which nobody holds the first.
    if any(one.name == name for one in still_open):
        form.add_error(
            "name", "There is an open token of this name. Revoke it first, or choose another name."
        )
    elif len(still_open) >= OPEN_TOKENS_MAX:
        form.add_error(None, f"A workspace has at most {OPEN_TOKENS_MAX} open tokens.")
    if form.errors:
        return _page(request, form, status=UNPROCESSABLE)
    scopes = [TokenScope(word) for word in form.cleaned_data["scopes"]]
    with transaction.atomic():
        token, plain = auth.issue(request.workspace, name, scopes, request.user)
        _keep(request, "token.issued", token, after={"scopes": [str(one) for one in scopes]})
    return render(request, "ledger/tokens_issued.html", _issued(token, plain))


@require_POST
@membership_required
def revoke(request: DeskRequest, token_id: int) -> HttpResponse:
    """Closes a token for ever, from the next request on."""
    require(request, Ability.EDIT_TOKENS)
    found = next((one for one in auth.tokens(request.workspace) if one.pk == token_id), None)
    if found is None:
        raise Http404("No token of this workspace has this number.")
    with transaction.atomic():
        was_open = auth.revoke(request.workspace, token_id)
        if was_open:
            _keep(request, "token.revoked", found)
    if was_open:
        messages.success(
            request,
            f"The token {found.name} ({found.prefix}…) is revoked: the next request with it is "
            "refused.",
        )
    else:
        messages.info(request, "The token was revoked already.")
    return redirect("tokens")


def _keep(request: DeskRequest, act: str, token: ApiToken, *, after: Any = None) -> None:
    """The audit log names a token by what is safe to show of it."""
    audit.keep(
        request.workspace.pk,
        act,
        user_id=request.user.pk,
        target=f"{token.name} ({token.prefix}…)",
        address=reverse("tokens"),
        after=after,
    )


def _page(request: DeskRequest, form: TokenForm, *, status: int = 200) -> HttpResponse:
    may_edit = can(request.role, Ability.EDIT_TOKENS)
    rows = _rows(request)
    asked = request.GET.get("revoke", "")
    context = {
        "now": clock(),
        "form": form,
        "rows": rows,
        "open_count": sum(row["token"].revoked_at is None for row in rows),
        "may_edit": may_edit,
        "needs": "" if may_edit else needs_and_whom(request.workspace.pk, Ability.EDIT_TOKENS),
        "asked": next(
            (
                row["token"]
                for row in rows
                if may_edit and str(row["token"].pk) == asked and row["token"].revoked_at is None
            ),
            None,
        ),
    }
    return render(request, "ledger/tokens.html", context, status=status)


def _rows(request: DeskRequest) -> list[dict[str, Any]]:
    members = set(
        Membership.objects.filter(workspace=request.workspace, user__is_active=True).values_list(
            "user_id", flat=True
        )
    )
    return [
        {
            "token": token,
            "gone": token.created_by_id is not None and token.created_by_id not in members,
        }
        for token in auth.tokens(request.workspace)
    ]


def _issued(token: ApiToken, plain: str) -> dict[str, Any]:
    """The token with lines that work when they are pasted, against this installation's API."""
    server = settings.COUNTERFOIL_API_URL.rstrip("/")
    events = TokenScope.INGEST in token.scopes and TokenScope.READ not in token.scopes
    curl = (
        f"curl -sS -X POST -H 'Authorization: Bearer {plain}' -H 'Content-Type: application/json' "
        f"-d '[]' {server}/{PREFIX}events"
        if events
        else f"curl -sS -H 'Authorization: Bearer {plain}' {server}/{PREFIX}claims/"
        "00000000-0000-0000-0000-000000000000"
    )
    return {
        "token": token,
        "plain": plain,
        "curl": curl,
        "curl_says": ""
        if events
        else "It answers claim_not_found: the token is good, and there is no such claim.",
        "python": (
            f'from effects.client import Ledger\n\nledger = Ledger("{server}", token="{plain}")'
        ),
        "may_claim": TokenScope.CLAIM in token.scopes,
    }
