"""Asking a second person: one stored request, bound to what its author saw and relied on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.db import transaction

from effects.core.vocabulary import ClaimState, EventKind, Role
from reconcile.action_names import ActionName
from reconcile.actions import Action
from reconcile.forms import Form, Screen, picture_holds
from reconcile.models import Proposal
from reconcile.queries import Call
from reconcile.situation import Situation

PROPOSAL_HOURS_MAX: Final = 24
"""How long a request for a second person waits. After it, it has to be asked anew."""
PROPOSALS_SHOWN_MAX: Final = 20


class Fate(StrEnum):
    """What became of a request. The first three are seen from the claim and the clock."""

    WAITING = "waiting"
    OUT_OF_DATE = "out_of_date"
    EXPIRED = "expired"
    APPROVED = "approved"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    REPLACED = "replaced"


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request for a second person as it is now. `why_out_of_date` says what has changed."""

    proposal: Proposal
    fate: Fate
    why_out_of_date: str = ""

    @property
    def name(self) -> ActionName:
        return ActionName(self.proposal.action)

    @property
    def roles(self) -> tuple[Role, ...]:
        return tuple(Role(role) for role in self.proposal.approver_roles)


class AnotherWaitsError(Exception):
    """Another person's request about the same call waits for its answer."""


def ask(  # noqa: PLR0913 - all of it is what a request is bound to
    workspace_id: int,
    form: Form,
    call: Call,
    act: Action,
    situation: Situation,
    *,
    version: int,
    evidence: tuple[int, ...],
) -> Proposal:
    """Stores the request. One that is out of date, or one's own, makes room for it.

    Raises `AnotherWaitsError`.
    """
    money = situation.money
    with transaction.atomic():
        _make_room(form, call)
        return Proposal.objects.create(
            workspace_id=workspace_id,
            claim_id=form.screen.claim_id,
            action=form.action,
            held_request_id=form.held_request,
            claim_version=version,
            state=call.situation.state,
            screen_hash=form.screen.digest,
            form=form.screen.form,
            amount=money.amount if money else None,
            currency=money.currency if money else "",
            figure=money.figure if money else "",
            typed=form.typed,
            evidence=list(evidence),
            objects_named=list(situation.effects) if form.action is ActionName.SETTLE else [],
            provider_object=form.provider_object,
            reason=form.full_reason,
            why_second=act.needs_second,
            approver_roles=sorted(str(role) for role in act.approvers),
            proposed_by_id=form.screen.user_id,
            proposed_at=call.now,
            expires_at=expires_at(form.action, situation),
        )


def expires_at(name: ActionName, situation: Situation) -> datetime:
    """When a request of now is too old; one for the same key not after its window."""
    latest = situation.now + timedelta(hours=PROPOSAL_HOURS_MAX)
    until = situation.safe_retry_until
    if name is ActionName.RELEASE_SAME and until is not None:
        return min(latest, until)
    return latest


def _make_room(form: Form, call: Call) -> None:
    waiting = Proposal.objects.select_for_update().filter(
        claim_id=form.screen.claim_id, status=Proposal.Status.OPEN
    )
    for other in waiting.select_related("proposed_by"):
        own = other.proposed_by_id == form.screen.user_id
        if not own and request_of(call, other).fate is Fate.WAITING:
            name = other.proposed_by.get_full_name() or other.proposed_by.get_username()
            raise AnotherWaitsError(
                f"A request of {name} about this call waits for a second person. It has to be "
                "answered first."
            )
        other.status, other.answered_at = Proposal.Status.REPLACED, call.now
        other.save(update_fields=["status", "answered_at"])


def asked_by(screen: Screen) -> Proposal | None:
    """The request that this very form has made already."""
    return Proposal.objects.filter(claim_id=screen.claim_id, form=screen.form).first()


def requests_of(call: Call) -> list[Request]:
    """The requests about a call, newest first."""
    found = Proposal.objects.filter(claim_id=call.claim.pk, workspace_id=call.claim.workspace_id)
    kept = found.select_related("proposed_by", "answered_by").order_by("-pk")
    return [request_of(call, proposal) for proposal in kept[:PROPOSALS_SHOWN_MAX]]


def open_request(requests: Sequence[Request]) -> Request | None:
    """The one that waits, or that would if nothing had changed."""
    return next((one for one in requests if one.proposal.status == Proposal.Status.OPEN), None)


def request_of(call: Call, proposal: Proposal) -> Request:
    """The request as the claim and the clock leave it."""
    if proposal.status != Proposal.Status.OPEN:
        return Request(proposal=proposal, fate=Fate(proposal.status))
    changed = _what_changed(call, proposal)
    if changed:
        return Request(proposal=proposal, fate=Fate.OUT_OF_DATE, why_out_of_date=changed)
    if call.now >= proposal.expires_at:
        return Request(proposal=proposal, fate=Fate.EXPIRED)
    return Request(proposal=proposal, fate=Fate.WAITING)


def screen_of(proposal: Proposal) -> Screen:
    """What the request's author had before them, their own note included."""
    return Screen(
        claim_id=proposal.claim_id,
        version=proposal.claim_version,
        state=ClaimState(proposal.state),
        digest=bytes(proposal.screen_hash),
        user_id=proposal.proposed_by_id,
        form=bytes(proposal.form),
    )


def _what_changed(call: Call, proposal: Proposal) -> str:
    if call.situation.decision_pending:
        return "A decision about the call is held."
    if not picture_holds(call, screen_of(proposal)):
        new = call.claim.version - proposal.claim_version
        noted = any(
            event.seq > proposal.claim_version and event.kind == EventKind.NOTED
            for event in call.events
        )
        what = "something new is known" if not noted else "a note was written"
        events = f"{new} new event{'s' if new != 1 else ''}"
        return f"Since it was asked {what} about the call ({events})."
    if proposal.held_request_id is None and proposal.amount is not None:
        money = call.situation.money
        if money is None or (money.amount, money.currency) != (proposal.amount, proposal.currency):
            return f"The amount was read as {proposal.figure} {proposal.currency}, and is no more."
    return ""


def form_of(proposal: Proposal) -> Form:
    """The request's content as the form that its author would send."""
    return Form(
        action=ActionName(proposal.action),
        screen=screen_of(proposal),
        evidence=tuple(proposal.evidence),
        reason=proposal.reason,
        reason_is_whole=True,
        provider_object=proposal.provider_object,
        typed=proposal.typed,
        held_request=proposal.held_request_id,
        effects=tuple(proposal.objects_named),
    )
