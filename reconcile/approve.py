"""The second person's answer to a request: yes, no, or too late.

Everything is asked again at this moment: whether the picture still holds, whether the action is
still offered to who asked, and whether the second person is another active one with the role. The
record asks the last once more, in the transaction that writes the decision.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from effects.access import ROLE_WORDS
from effects.core.problems import NotOffered, Stale
from effects.core.vocabulary import Role
from ledger import queries as record
from ledger.append import Consent
from reconcile import asking, queries
from reconcile.actions import Action, ActionName
from reconcile.asking import Fate, Request
from reconcile.decide import (
    TRIES_MAX,
    Incomplete,
    Made,
    Overtaken,
    Unavailable,
    action_for,
    one_form_at_a_time,
    refused_by_record,
    write_verdict,
)
from reconcile.forms import REASON_CHARACTERS_MAX, Form
from reconcile.models import Proposal
from reconcile.queries import Call
from reconcile.team import role_now

NOT_YOUR_OWN = "You cannot approve your own request, and neither can an admin."


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the second person sent. `approve` False: no, with the reason."""

    proposal_id: int
    claim_id: UUID
    user_id: int
    approve: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """The request is answered with no; its author sees why."""

    again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredBefore:
    """Somebody was faster, or it was taken back or replaced. Nothing was recorded."""

    call: Call
    request: Request


Result = Made | Rejected | AnsweredBefore | Overtaken | Unavailable | Incomplete


class NoSuchProposalError(Exception):
    """No request of this call has this number."""


def answer(workspace_id: int, said: Answer) -> Result:
    """Records the answer. Raises `ClaimNotFound` and `NoSuchProposalError`."""
    with one_form_at_a_time(said.claim_id):
        for _ in range(TRIES_MAX):
            call = queries.call(workspace_id, said.claim_id)
            result = _try(workspace_id, said, call)
            if result is not None:
                return result
    call = queries.call(workspace_id, said.claim_id)
    return Overtaken(call=call, screen=asking.screen_of(_kept(workspace_id, said)))


def withdraw(workspace_id: int, claim_id: UUID, proposal_id: int, user_id: int) -> bool:
    """Its author takes a request back. False: it was answered, or is another's."""
    now = record.clock()
    found = Proposal.objects.filter(
        pk=proposal_id,
        workspace_id=workspace_id,
        claim_id=claim_id,
        proposed_by_id=user_id,
        status=Proposal.Status.OPEN,
    )
    return bool(found.update(status=Proposal.Status.WITHDRAWN, answered_at=now))


def refusal_for(request: Request, *, user_id: int, role: Role | None) -> str:
    """Why this person may not answer the request; empty where they may."""
    if request.proposal.proposed_by_id == user_id:
        return NOT_YOUR_OWN
    if role not in request.roles:
        words = [ROLE_WORDS[one] for one in Role if one in request.roles]
        return f"Needs the role {' or '.join(words)}."
    return ""


def _kept(workspace_id: int, said: Answer) -> Proposal:
    found = Proposal.objects.filter(
        pk=said.proposal_id, workspace_id=workspace_id, claim_id=said.claim_id
    )
    kept = found.select_related("proposed_by", "answered_by").first()
    if kept is None:
        raise NoSuchProposalError(f"No request {said.proposal_id} about call {said.claim_id}.")
    return kept


def _try(workspace_id: int, said: Answer, call: Call) -> Result | None:
    proposal = _kept(workspace_id, said)
    if proposal.status != Proposal.Status.OPEN:
        return _answered_before(proposal, said, call)
    request = asking.request_of(call, proposal)
    refused = refusal_for(request, user_id=said.user_id, role=role_now(workspace_id, said.user_id))
    if refused:
        return _unavailable(call, request, refused)
    if request.fate is Fate.OUT_OF_DATE:
        return Overtaken(call=call, screen=asking.screen_of(proposal))
    if request.fate is Fate.EXPIRED:
        return _unavailable(call, request, "The request has expired. It has to be asked anew.")
    errors = _faults(said)
    if errors:
        return Incomplete(call=call, errors=errors)
    return _yes(workspace_id, said, call, request) if said.approve else _no(proposal, said, call)


def _faults(said: Answer) -> dict[str, str]:
    if not said.reason:
        return {"reason": "Say why, in a few words: it is kept with the decision."}
    if len(said.reason) > REASON_CHARACTERS_MAX:
        return {"reason": f"At most {REASON_CHARACTERS_MAX} characters."}
    return {}


def _answered_before(proposal: Proposal, said: Answer, call: Call) -> Result:
    own = proposal.answered_by_id == said.user_id
    if own and said.approve and proposal.decision_id is not None:
        return Made(decision_id=proposal.decision_id, again=True)
    if own and not said.approve and proposal.status == Proposal.Status.REJECTED:
        return Rejected(again=True)
    return AnsweredBefore(call=call, request=asking.request_of(call, proposal))


def _no(proposal: Proposal, said: Answer, call: Call) -> Rejected | None:
    open_still = Proposal.objects.filter(pk=proposal.pk, status=Proposal.Status.OPEN)
    rejected = open_still.update(
        status=Proposal.Status.REJECTED,
        answered_by_id=said.user_id,
        answered_at=call.now,
        answer_reason=said.reason,
    )
    return Rejected() if rejected else None


def _yes(workspace_id: int, said: Answer, call: Call, request: Request) -> Result | None:
    form = asking.form_of(request.proposal)
    # Who asked must still be allowed to: somebody who has left decides nothing any more.
    author_role = role_now(workspace_id, form.screen.user_id)
    if author_role is None:
        return _unavailable(call, request, "Who asked is no active member any more.")
    act, _ = action_for(workspace_id, call, form, role=author_role)
    if not act.offered and not act.may_ask:
        return _unavailable(call, request, act.reason)
    try:
        return _write(workspace_id, said, call, request, form, act)
    except Stale:
        return None
    except NotOffered as refused:
        return refused_by_record(workspace_id, said.claim_id, form.action, refused)


def _write(
    workspace_id: int, said: Answer, call: Call, request: Request, form: Form, act: Action
) -> Result | None:
    roles = frozenset(request.roles) & act.approvers
    # The request and its decision are one commit: neither is ever there without the other.
    with transaction.atomic():
        locked = Proposal.objects.select_for_update().filter(
            pk=request.proposal.pk, status=Proposal.Status.OPEN
        )
        proposal = locked.first()
        if proposal is None:
            return None
        consent = Consent(
            typed=form.typed or None,
            proposed_at=proposal.proposed_at,
            second_user_id=said.user_id,
            roles=tuple(sorted(roles)),
            second_reason=said.reason,
        )
        decision_id = write_verdict(
            workspace_id,
            call,
            form,
            version=call.claim.version,
            evidence=form.evidence,
            consent=consent,
        )
        if decision_id is None:
            return _unavailable(call, request, "The held request was answered meanwhile.")
        proposal.status, proposal.decision_id = Proposal.Status.APPROVED, decision_id
        proposal.answered_by_id, proposal.answered_at = said.user_id, call.now
        proposal.answer_reason = said.reason
        proposal.save(
            update_fields=["status", "decision_id", "answered_by", "answered_at", "answer_reason"]
        )
    return Made(decision_id=decision_id)


def _unavailable(call: Call, request: Request, reason: str) -> Unavailable:
    name = ActionName(request.proposal.action)
    return Unavailable(call=call, action=Action(name=name, offered=False, reason=reason))
