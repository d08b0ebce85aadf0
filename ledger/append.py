"""The one writer: everything that reaches the record after the claim itself.

Each verb is one SQL function and one commit. All raise `ClaimNotFound` for a claim that is not in
the workspace.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from psycopg.types.json import Jsonb

from effects.core.messages import HeartbeatAnswer
from effects.core.problems import NotOffered, Stale
from effects.core.vocabulary import ClaimState, Role, SightingWord, Verdict
from ledger import redacting
from ledger.functions import call, call_for_claim
from ledger.models_sealed import SealedText
from ledger.reporting import report, reported

__all__ = [
    "NOTE_CHARACTERS_MAX",
    "OBJECTS_MAX",
    "RAW_BYTES_MAX",
    "REASON_CHARACTERS_MAX",
    "Consent",
    "DecisionHeld",
    "DueLookup",
    "NewAllowance",
    "NewDecision",
    "Observation",
    "allow",
    "close_case",
    "decide",
    "heartbeat",
    "hold_longer",
    "note",
    "observe",
    "report",
    "reported",
    "resume_lookups",
    "schedule_lookup",
    "sent",
    "sweep",
    "take_due_lookups",
    "withdraw",
]

REASON_CHARACTERS_MAX: Final = 2000
NOTE_CHARACTERS_MAX: Final = 10_000
OBJECTS_MAX: Final = 100
RAW_BYTES_MAX: Final = 1024 * 1024
RAW_READ_MAX: Final = 5 * RAW_BYTES_MAX
"""Of a longer answer no more is read: what is kept is hidden in before it is cut."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One provider answer, judged: `counts` says that it may settle the claim by rule.

    `fence` is the newest attempt that the look covered; `conditional` marks an absence that holds
    only while the provider honours the key. `data` is what people are shown, `raw` the body.
    """

    word: SightingWord
    fence: int
    counts: bool
    conditional: bool = False
    objects: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    raw: bytes | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Consent:
    """What makes an act that can happen twice one that somebody answers for.

    `typed` is the amount as its author typed it. Either `second_user_id` said yes, to what was
    asked at `proposed_at`, and has one of `roles` at that moment; or the author is `alone`, the
    only person of the workspace who could. The record checks both.
    """

    typed: str | None = None
    alone: bool = False
    proposed_at: datetime | None = None
    second_user_id: int | None = None
    roles: tuple[Role, ...] = ()
    second_reason: str | None = None

    @property
    def row(self) -> tuple[Any, ...]:
        """The fields of `ledger_consent`, in its order."""
        said = self.second_reason
        return (
            self.typed,
            self.alone,
            self.proposed_at,
            self.second_user_id,
            [str(role) for role in self.roles],
            None if said is None else said[:REASON_CHARACTERS_MAX],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDecision:
    """A verdict with what it rests on. Exactly one of `user_id` and `rule` names the author."""

    verdict: Verdict
    claim_version: int
    reason: str
    evidence: tuple[int, ...] = ()
    provider_object: str | None = None
    objects: tuple[str, ...] = ()
    screen_hash: bytes | None = None
    user_id: int | None = None
    rule: str | None = None
    hold_seconds: int = 60
    consent: Consent = field(default_factory=Consent)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionHeld:
    decision_id: int
    effective_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DueLookup:
    claim_id: UUID
    workspace_id: int
    tries: int
    since: datetime


def sent(workspace_id: int, claim_id: UUID, fence: int) -> None:
    """Dates the send. It moves nothing."""
    call_for_claim(claim_id, "SELECT ledger_sent_v1(%s, %s, %s)", (workspace_id, claim_id, fence))


def heartbeat(workspace_id: int, claim_id: UUID, fence: int) -> HeartbeatAnswer:
    """Extends the lease of the attempt that still holds it; anybody else is told to stop."""
    word, lease_until = call_for_claim(
        claim_id,
        "SELECT word, lease_until FROM ledger_heartbeat_v1(%s, %s, %s)",
        (workspace_id, claim_id, fence),
    )
    return HeartbeatAnswer(word=word, lease_until=lease_until)


def observe(workspace_id: int, claim_id: UUID, observation: Observation) -> ClaimState:
    """Keeps one provider answer. An absence that no longer covers the newest attempt, or whose
    window has closed meanwhile, is kept and does not count."""
    assert len(observation.objects) <= OBJECTS_MAX
    raw = observation.raw
    known = redacting.known_values_if_any(workspace_id, claim_id)
    data = redacting.said(workspace_id, observation.data, known)
    if raw is None:
        return _observe(workspace_id, claim_id, observation, data, None)
    raw, kept = redacting.body(workspace_id, raw[:RAW_READ_MAX], known=known)
    if not kept.found:
        return _observe(workspace_id, claim_id, observation, data, raw)
    raw = raw[:RAW_BYTES_MAX]

    def observed_and_sealed() -> ClaimState:
        state = _observe(workspace_id, claim_id, observation, data, raw)
        # What is cut off is hidden from nobody, and its digest is another.
        redacting.seal(workspace_id, SealedText.Name.RAW, kept, claim_id=claim_id)
        return state

    return redacting.in_one(observed_and_sealed)


def _observe(
    workspace_id: int,
    claim_id: UUID,
    observation: Observation,
    data: dict[str, Any],
    raw: bytes | None,
) -> ClaimState:
    (state,) = call_for_claim(
        claim_id,
        "SELECT ledger_observe_v1(%s, %s, %s::ledger_event_word, %s, %s, %s, %s, %s, %s)",
        (
            workspace_id,
            claim_id,
            str(observation.word),
            observation.fence,
            observation.counts,
            observation.conditional,
            list(observation.objects) or None,
            Jsonb(data),
            raw[:RAW_BYTES_MAX] if raw is not None else None,
        ),
    )
    return ClaimState(state)


def decide(workspace_id: int, claim_id: UUID, decision: NewDecision) -> DecisionHeld:
    """Appends a decision to the workspace's chain and holds it for `hold_seconds`.

    Raises `Stale` when the claim is no longer at `claim_version` or another decision is held,
    `NotOffered` when the record rules the verdict out.
    """
    word, decision_id, effective_at, version, why = call_for_claim(
        claim_id,
        """
        SELECT word, decision_id, effective_at, version, why FROM ledger_decide_v1(
          %s, %s, %s, %s::ledger_verdict, %s, %s, %s, %s, %s, %s, %s, %s,
          (%s, %s, %s, %s, %s::effects_role[], %s)::ledger_consent)
        """,
        (
            workspace_id,
            claim_id,
            decision.claim_version,
            str(decision.verdict),
            timedelta(seconds=decision.hold_seconds),
            decision.provider_object,
            list(decision.objects) or None,
            decision.reason[:REASON_CHARACTERS_MAX],
            list(decision.evidence),
            decision.screen_hash,
            decision.user_id,
            decision.rule,
            *decision.consent.row,
        ),
    )
    if word == "stale":
        raise Stale(version=version)
    if word == "not_offered":
        raise NotOffered(f"{decision.verdict} is not offered for this claim: {why}.", why=why)
    return DecisionHeld(decision_id=decision_id, effective_at=effective_at)


def withdraw(workspace_id: int, claim_id: UUID, decision_id: int, user_id: int) -> bool:
    """Takes back a decision that is still held. False: it is in force, or it was cancelled."""
    (withdrawn,) = call_for_claim(
        claim_id,
        "SELECT ledger_withdraw_v1(%s, %s, %s, %s)",
        (workspace_id, claim_id, decision_id, user_id),
    )
    return bool(withdrawn)


def hold_longer(
    workspace_id: int,
    claim_id: UUID,
    decision_id: int,
    user_id: int,
    *,
    by_seconds: int,
    seconds_max: int,
) -> datetime | None:
    """Holds a decision `by_seconds` more, `seconds_max` in all at most; answers when it will be in
    force. None: it is held no more."""
    (until,) = call_for_claim(
        claim_id,
        "SELECT ledger_hold_v1(%s, %s, %s, %s, %s, %s)",
        (
            workspace_id,
            claim_id,
            decision_id,
            user_id,
            timedelta(seconds=by_seconds),
            timedelta(seconds=seconds_max),
        ),
    )
    assert until is None or isinstance(until, datetime)
    return until


@dataclass(frozen=True, slots=True, kw_only=True)
class NewAllowance:
    """That one remembered request may run beside its blocker, once; `claim_version` is the
    blocker's."""

    claim_version: int
    user_id: int
    reason: str
    evidence: tuple[int, ...] = ()
    screen_hash: bytes | None = None
    consent: Consent = field(default_factory=Consent)


def allow(workspace_id: int, held_request_id: int, allowance: NewAllowance) -> int | None:
    """Lets one remembered request run beside its blocker, once. None: it is already answered.

    Raises `Stale` when the blocker is no longer at `claim_version`, `NotOffered` when the consent
    does not hold.
    """
    ((word, decision_id, version, why),) = call(
        """
        SELECT word, decision_id, version, why FROM ledger_allow_v1(
          %s, %s, %s, %s, %s, %s, %s, (%s, %s, %s, %s, %s::effects_role[], %s)::ledger_consent)
        """,
        (
            workspace_id,
            held_request_id,
            allowance.claim_version,
            allowance.user_id,
            allowance.reason[:REASON_CHARACTERS_MAX],
            list(allowance.evidence),
            allowance.screen_hash,
            *allowance.consent.row,
        ),
    )
    if word == "stale":
        raise Stale(version=version)
    if word == "not_offered":
        raise NotOffered(f"The request may not be allowed: {why}.", why=why)
    assert decision_id is None or isinstance(decision_id, int)
    return decision_id


def close_case(workspace_id: int, case_id: int, user_id: int, note: str) -> bool:
    """A person says what a case was. False: it is closed already, or there is no such case."""
    ((closed,),) = call(
        "SELECT ledger_close_case_v1(%s, %s, %s, %s)",
        (workspace_id, case_id, user_id, note[:NOTE_CHARACTERS_MAX]),
    )
    return bool(closed)


def note(workspace_id: int, claim_id: UUID, user_id: int, text: str) -> int:
    """A person's note: evidence of source "person". Answers the number of its event."""
    (seq,) = call_for_claim(
        claim_id,
        "SELECT ledger_note_v1(%s, %s, %s)",
        (
            workspace_id,
            claim_id,
            Jsonb({"text": text[:NOTE_CHARACTERS_MAX], "user_id": user_id}),
        ),
    )
    assert isinstance(seq, int)
    return seq


def sweep(limit: int) -> int:
    """Lets the clock speak to the claims that it has something to say to; answers how many.

    Each claim is one transaction: a sweep never holds two rows.
    """
    swept = 0
    due = [row[0] for row in call("SELECT ledger_file_leases_v1(%s)", (limit,))]
    due += [row[0] for row in call("SELECT ledger_due_by_clock_v1(%s)", (limit,))]
    for claim_id in dict.fromkeys(due):
        call(
            "SELECT ledger_touch_v1(c.workspace_id, c.id) FROM ledger_claim c WHERE c.id = %s",
            (claim_id,),
        )
        swept += 1
    call("SELECT ledger_forget_settled_v1()", ())
    return swept


def take_due_lookups(limit: int, lease_seconds: int) -> list[DueLookup]:
    """Claims whose provider should be asked now, each handed to one asker."""
    rows = call(
        "SELECT * FROM ledger_take_lookups_v1(%s, %s)",
        (limit, timedelta(seconds=lease_seconds)),
    )
    return [
        DueLookup(claim_id=claim_id, workspace_id=workspace_id, tries=tries, since=since)
        for claim_id, workspace_id, tries, since in rows
    ]


def schedule_lookup(claim_id: UUID, at: datetime | None, *, known_at: datetime) -> None:
    """When the provider is asked next; None: there is nothing more to ask.

    `known_at` is the ledger's clock before the claim was read for this plan. Where an attempt has
    ended since, the plan is out of date and nothing is changed.
    """
    call("SELECT ledger_schedule_lookup_v1(%s, %s, %s)", (claim_id, at, known_at))


def resume_lookups(workspace_id: int, tool_id: int) -> int:
    """Makes the tool's open claims due for a look-up now; answers how many.

    For the moment at which a look-up was set up or changed: claims that had nothing more to ask
    have something to ask again.
    """
    ((resumed,),) = call("SELECT ledger_resume_lookups_v1(%s, %s)", (workspace_id, tool_id))
    assert isinstance(resumed, int)
    return resumed
