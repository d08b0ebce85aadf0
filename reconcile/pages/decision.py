"""A decision is sent, or taken back. Both answer a second copy as they answered the first."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from reconcile import decide as deciding
from reconcile.actions import ActionName
from reconcile.calls.names import names_of
from reconcile.confirm import REVIEWED
from reconcile.decide import Asked, Form, Incomplete, Made, Overtaken, Screen, Unavailable
from reconcile.forms import session_digest
from reconcile.history import Line, line_of
from reconcile.pages import call as call_pages
from reconcile.pages.review import number
from reconcile.queries import Call

CONFLICT = 409
UNPROCESSABLE = 422


@require_POST
@membership_required
def decide(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Records the decision, or says why not: 422 for a form to be put right, 409 for a page that
    is no longer true."""
    seen = call_pages.found_call(request, claim_id)
    token = request.POST.get("token", "")
    screen = deciding.read_token(token, claim_id=claim_id, user_id=request.user.pk)
    action = request.POST.get("action", "")
    if screen is None or action not in {str(name) for name in REVIEWED}:
        return stale_page(request, seen, screen=None, why="This form was not made by this page.")
    form = _form(request, ActionName(action), screen)
    match deciding.decide(request.workspace.pk, form, role=request.role):
        case Made() as made:
            return made_response(request, claim_id, made)
        case Asked() as asked:
            return _asked(request, claim_id, asked)
        case Overtaken() as overtaken:
            why = overtaken.because
            return stale_page(request, overtaken.call, screen=overtaken.screen, why=why)
        case Unavailable() as unavailable:
            why = f"{unavailable.action.label}: {unavailable.action.reason}"
            return stale_page(request, unavailable.call, screen=screen, why=why)
        case Incomplete() as incomplete:
            typed = _typed(form, token, incomplete.errors)
            return call_pages.call_page(request, incomplete.call, typed=typed, status=UNPROCESSABLE)


def _form(request: DeskRequest, action: ActionName, screen: Screen) -> Form:
    sent = request.POST
    # What belongs to one action is read for that action only.
    settles, allows = action is ActionName.SETTLE, action is ActionName.ALLOW
    numbers = (text for text in sent.getlist("ev") if text.isascii() and text.isdigit())
    return Form(
        action=action,
        screen=screen,
        evidence=tuple(sorted({int(text) for text in numbers if len(text) < 10})),
        note=call_pages.clean_text(sent.get("note")),
        reason=call_pages.clean_text(sent.get("reason")),
        provider_object=call_pages.clean_text(sent.get("provider_object"))
        if settles or action is ActionName.HAPPENED
        else "",
        typed=call_pages.clean_text(sent.get("typed")),
        about=call_pages.clean_text(sent.get("about")) if settles else "",
        link=call_pages.clean_text(sent.get("link")) if settles else "",
        held_request=number(sent.get("held"), default=0) or None if allows else None,
        ask_second=sent.get("second") == "1",
        session=session_digest(request.session.session_key),
    )


def _typed(form: Form, token: str, errors: dict[str, str]) -> dict[str, Any]:
    return {
        "action": str(form.action),
        "evidence": set(form.evidence),
        "note": form.note,
        "reason": form.reason,
        "provider_object": form.provider_object,
        "typed": form.typed,
        "about": form.about,
        "link": form.link,
        "held_request": form.held_request,
        "ask_second": form.ask_second,
        "token": token,
        "errors": errors,
    }


def _asked(request: DeskRequest, claim_id: UUID, asked: Asked) -> HttpResponse:
    if asked.again:
        messages.info(request, "A second person was asked already; nothing was asked twice.")
    else:
        messages.success(request, "A second person is asked. Nothing happens before their yes.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#sa")


def made_response(request: DeskRequest, claim_id: UUID, made: Made) -> HttpResponse:
    """Back to the call, where the decision is held."""
    words = f"Decision dec_{made.decision_id} "
    if made.again:
        messages.info(request, words + "was recorded already; nothing was recorded twice.")
    else:
        messages.success(request, words + "is recorded.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#sa")


@require_POST
@membership_required
def hold_longer(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Gives a held decision more time. Too late is said, and is no error."""
    require(request, Ability.WITHDRAW)
    call_pages.found_call(request, claim_id)
    decision_id = _decision_number(request)
    until = deciding.hold_longer(request.workspace.pk, claim_id, decision_id, request.user.pk)
    if until is None:
        messages.error(request, f"Too late: decision dec_{decision_id} is held no more.")
    else:
        messages.success(request, f"Decision dec_{decision_id} is held until {until:%H:%M:%S} UTC.")
    return HttpResponseRedirect(reverse("call", args=[claim_id]) + "#sa")


def _decision_number(request: DeskRequest) -> int:
    text = request.POST.get("decision", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


@require_POST
@membership_required
def undo(request: DeskRequest, claim_id: UUID) -> HttpResponse:
    """Takes a held decision back. Too late is said, and is no error."""
    require(request, Ability.WITHDRAW)
    seen = call_pages.found_call(request, claim_id)
    decision_id = _decision_number(request)
    if deciding.undo(request.workspace.pk, claim_id, decision_id, request.user.pk):
        messages.success(request, f"Decision dec_{decision_id} is taken back. Nothing was told.")
    elif any(made.withdraws == decision_id for made in seen.decisions):
        messages.info(request, f"Decision dec_{decision_id} was taken back already.")
    else:
        messages.error(
            request, f"Too late: decision dec_{decision_id} is held no more. See its history below."
        )
    return HttpResponseRedirect(reverse("call", args=[claim_id]))


def stale_page(
    request: DeskRequest, seen: Call, *, screen: Screen | None, why: str
) -> HttpResponse:
    """409: what the person saw beside what is there now. Nothing was recorded."""
    names = names_of(seen.events, seen.decisions)
    since: list[Line] = []
    if screen is not None:
        since = [line_of(event, names) for event in seen.events if event.seq > screen.version]
    then = [item for item in seen.situation.evidence if screen and item.number <= screen.version]
    context = {
        "now": seen.now,
        "call": seen,
        "screen": screen,
        "since": since,
        "then": then,
        "why": why,
        "last": seen.last_decision,
        "fate": seen.fates.get(seen.last_decision.pk) if seen.last_decision else None,
        "back": reverse("call", args=[seen.claim.pk]),
    }
    return render(request, "reconcile/stale.html", context, status=CONFLICT)
