"""Other requests that met a claim and were not granted: remembered ones, and cases for a person."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.auth.models import User

from effects.core.vocabulary import AnswerCode
from ledger.models import Case, Claim, HeldRequest

REQUESTS_MAX: Final = 50
"""Most requests of each kind that are read; the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherRequest:
    """One request and what it was told. `seen`: how often; `answered`: nothing waits for it any
    more; `arguments` are its own, where they were kept.

    `held_id` or `case_id` is its number. `allowed` and `used`: a person let it run, and it ran.
    `closed_note` is what a person said about a case, `closed_by` who.
    """

    code: AnswerCode
    at: datetime
    conversation: str | None
    turn_index: int | None
    arguments: str | None
    seen: int = 1
    answered: bool = False
    held_id: int | None = None
    case_id: int | None = None
    allowed: bool = False
    used: bool = False
    closed_note: str = ""
    closed_by: str = ""

    @property
    def may_be_allowed(self) -> bool:
        return self.held_id is not None and not self.answered


def other_requests(claim: Claim) -> list[OtherRequest]:
    """Everything that was asked beside this claim and not granted because of it, newest first."""
    cases = Case.objects.filter(workspace_id=claim.workspace_id, claim_id=claim.pk)
    held = HeldRequest.objects.filter(workspace_id=claim.workspace_id, blocker_id=claim.pk)
    # A reworded turn is remembered and is a case as well; it is shown once, as the case.
    held = held.exclude(code=AnswerCode.REISSUED_DIFFERENTLY)
    found = [
        OtherRequest(
            code=AnswerCode(case.code),
            at=case.at,
            conversation=case.data.get("conversation"),
            turn_index=case.data.get("turn_index"),
            arguments=case.arguments,
            seen=case.seen,
            answered=case.closed_seen == case.seen,
            case_id=case.pk,
            closed_note=case.closed_note or "",
            closed_by=_name(case.closed_by),
        )
        for case in cases.select_related("closed_by").order_by("-pk")[:REQUESTS_MAX]
    ]
    found += [
        OtherRequest(
            code=AnswerCode(request.code),
            at=request.at,
            conversation=request.conversation,
            turn_index=request.turn_index,
            arguments=request.arguments,
            answered=request.answered_at is not None,
            held_id=request.pk,
            allowed=request.allowed_by is not None,
            used=request.used_at is not None,
        )
        for request in held.exclude(code=AnswerCode.REISSUED_DIFFERENTLY).order_by("-pk")[
            :REQUESTS_MAX
        ]
    ]
    return sorted(found, key=lambda request: request.at, reverse=True)


def _name(user: User | None) -> str:
    return "" if user is None else user.get_full_name() or user.get_username()
