"""A person's own keys: one table, one switch, and back to the usual ones."""

from __future__ import annotations

from typing import Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from effects.access import DeskRequest, membership_required
from effects.pages.keys import GROUPS, OwnKeys, Refused, choose, own_keys
from reconcile.views import keys as keeping

UNPROCESSABLE: Final = 422
KEY_CHARACTERS_READ_MAX: Final = 20


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def keys(request: DeskRequest) -> HttpResponse:
    """The keys, and what is to become of them: 422 where two actions would have the same one."""
    own = own_keys(request)
    if request.method != "POST":
        return _page(request, own)
    act = request.POST.get("act", "")
    if act == "switch":
        own = OwnKeys(on="on" in request.POST, changed=own.changed)
        said = f"Keys are {'on' if own.on else 'off'}."
    elif act == "usual":
        own, said = OwnKeys(on=own.on), "The usual keys are back."
    else:
        typed = {
            usual: request.POST[f"key-{usual}"][:KEY_CHARACTERS_READ_MAX]
            for usual in (action.usual for actions in GROUPS.values() for action in actions)
            if f"key-{usual}" in request.POST
        }
        try:
            own = OwnKeys(on=own.on, changed=choose(typed))
        except Refused as refused:
            return _page(request, own, typed=typed, errors=refused.errors)
        said = "Your keys are kept."
    keeping.keep(request, request.user.pk, own)
    messages.success(request, said)
    return HttpResponseRedirect(reverse("keys"))


def _page(
    request: DeskRequest,
    own: OwnKeys,
    *,
    typed: dict[str, str] | None = None,
    errors: dict[str, str] | None = None,
) -> HttpResponse:
    typed, errors = typed or {}, errors or {}
    groups = {
        title: [
            {
                "usual": action.usual,
                "words": action.words,
                "key": typed.get(action.usual, own.of(action.usual)),
                "error": errors.get(action.usual, ""),
            }
            for action in actions
        ]
        for title, actions in GROUPS.items()
    }
    context = {"groups": groups, "own": own, "errors": errors}
    status = UNPROCESSABLE if errors else 200
    return render(request, "reconcile/keys.html", context, status=status)
