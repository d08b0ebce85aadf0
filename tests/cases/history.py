"""A case's events, played against the real ledger under a clock that follows their times.

A `claim` event asks for the right to run a call. The first `attempt` of a grant uses it; any other
asks again. An attempt that was refused and reports all the same has run elsewhere, and is told to
the ledger in that way. Nothing here decides anything: every answer is the ledger's.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID, uuid5

from effects.core.canonical import Refused
from effects.core.messages import ClaimAnswer, ClaimRequest
from effects.core.problems import NotOffered
from effects.core.vocabulary import EffectClass, ItemState, Outcome, Verdict
from ledger import append, claiming, ingest, queries
from ledger.functions import call
from ledger.ingest_reading import EVENTS
from ledger.models import Claim
from tests.cases.asking import (
    NAMES,
    Asked,
    Rejected,
    approval_digest,
    made_elsewhere,
    ordinals_of,
    register,
    request_of,
    settle_of,
    workspace_of,
)
from tests.cases.bank import to_text
from tests.cases.fields import Fault, Fields
from tests.cases.words import BESIDE, MAY_RUN, SAME_OPERATION, moment
from tests.support.clock import START, FrozenClock

SOURCE: Final = "urn:counterfoil:case"
EVENTS_MAX: Final = 10_000


@dataclass(slots=True)
class Known:
    """A claim of the case: the ledger's id, the event that opened it, and its attempts."""

    claim_id: UUID
    workspace_id: int
    first: str
    unused: list[int] = field(default_factory=list)
    fences: dict[str, int] = field(default_factory=dict)
    elsewhere: bool = False

    def use(self, attempt: str) -> int | None:
        """The fence of an attempt, taken from a grant that nobody has used yet."""
        if attempt not in self.fences and self.unused:
            self.fences[attempt] = self.unused.pop(0)
        return self.fences.get(attempt)


@dataclass(slots=True)
class History:
    """One case's world. Use it inside a transaction that is rolled back: it moves the clock."""

    policy: Mapping[str, Any] = field(default_factory=dict)
    window_seconds: int | None = None
    batch: bool = False
    clock: FrozenClock = field(default_factory=lambda: FrozenClock(START))
    answers: dict[str, ClaimAnswer] = field(default_factory=dict)
    rejected: dict[str, str] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)
    claims: dict[UUID, Known] = field(default_factory=dict)
    allowed_attempts: list[str] = field(default_factory=list)
    words: dict[str, str] = field(default_factory=dict)
    parked: set[str] = field(default_factory=set)
    _approved: dict[tuple[str | None, int | None, int], str] = field(default_factory=dict)
    _ordinals: dict[str, int] = field(default_factory=dict)
    _seen: dict[str, str] = field(default_factory=dict)
    _dated: bool = False

    # Playing

    def play(self, events: list[Any], *, before: Callable[[datetime], None] | None = None) -> None:
        """Plays the events in the order of their arrival. Raises `Fault` for what is no event."""
        if len(events) > EVENTS_MAX:
            raise Fault("input.events", f"are more than the limit EVENTS_MAX, {EVENTS_MAX}")
        read = [Fields(f"input.events[{n}]", event) for n, event in enumerate(events)]
        self._ordinals = ordinals_of(events)
        for event, members in zip(read, events, strict=True):
            self._play(event, members, before)

    def _play(
        self, event: Fields, members: Mapping[str, Any], before: Callable[[datetime], None] | None
    ) -> None:
        name, kind = event.take("event_id", str), event.take("type", str)
        play = _PLAYERS.get(kind)
        if play is None:
            raise Fault(event.at("type"), f"{kind[:60]!a} is not interpreted")
        said_at = event.take("occurred_at", object, None)
        now = moment(said_at)
        if said_at is not None and now is None:
            self.rejected[name] = "time_unreadable: it names no moment, because it has no offset"
            return
        content = to_text(dict(members))
        if self._seen.setdefault(name, content) != content:
            self.rejected[name] = "conflict: this event came before with other content"
            return
        if now is not None:
            if before is not None:
                before(now)
            self.move_to(now)
        event.pass_over(*BESIDE)
        play(self, event, name)
        event.finish()

    def move_to(self, now: datetime) -> None:
        """Moves the clock forward to `now`. The first time sets it; late news do not move it."""
        if not self._dated or now > self.clock.now:
            self.clock.now = now.astimezone(UTC)
            self.clock.tell()
        self._dated = True

    # Claims

    def claim(self, event: Fields, name: str) -> None:
        try:
            asked = request_of(event, name, self._ordinals.get(name, 0))
        except Rejected as rejected:
            self.rejected[name] = str(rejected)
            return
        if not self._is_approved(asked.request):
            self.rejected[name] = "not_approved: a person allowed something else at this place"
            return
        register(asked, self.policy, self.window_seconds)
        self.asked[name] = asked
        if name in self.parked:
            self._made_elsewhere(name, asked)
        else:
            self._told(name, asked, self._ask(asked))

    def _told(self, name: str, asked: Asked, told: ClaimAnswer | Refused) -> None:
        if isinstance(told, Refused):
            self.rejected[name] = f"{told.code}: {told}"
            return
        self.answers[name] = told
        if told.claim_id is None or told.code is None:
            return
        known = self.claims.setdefault(
            told.claim_id,
            Known(claim_id=told.claim_id, workspace_id=asked.workspace_id, first=name),
        )
        if told.code in MAY_RUN and told.fence not in {*known.unused, *known.fences.values()}:
            known.unused.append(told.fence)

    def _ask(self, asked: Asked) -> ClaimAnswer | Refused:
        try:
            if self.batch:
                (told,) = claiming.claim_batch(asked.workspace_id, [asked.request])
                return told
            return claiming.claim(asked.workspace_id, asked.request)
        except Refused as refused:
            return refused

    # Attempts

    def attempt(self, event: Fields, _name: str) -> None:
        attempt = event.take("attempt_id", str)
        event.take("worker", str, None)
        event.take("fence", int, None)
        known = self._known(event)
        if known is None:
            self._tell_elsewhere(event, "attempt.started", attempt=attempt)
            return
        if known.use(attempt) is None and not self._repeats_safely(known):
            asked = self.asked[known.first]
            # Whoever attempts again does not hold the nonce of the first grant.
            again = asked.request.model_copy(update={"nonce": None})
            told = self._ask(Asked(workspace_id=asked.workspace_id, request=again))
            if isinstance(told, ClaimAnswer) and told.code in MAY_RUN:
                known.fences[attempt] = told.fence
            self.words[attempt] = str(told.code)
        elif attempt not in known.fences:
            known.fences[attempt] = max(known.fences.values())
        if attempt in known.fences:
            self.allowed_attempts.append(attempt)

    def _repeats_safely(self, known: Known) -> bool:
        """Whether a request may be sent again under the grant that is still alive: only where the
        tool's contract makes the repeat harmless."""
        claim = self._row(known)
        keyed = claim.effect_class == EffectClass.KEYED_WRITE
        state = queries.status(claim, now=self.clock.now).state
        in_window = claim.window_until is not None and self.clock.now < claim.window_until
        return bool(known.fences and keyed and state == "in_flight" and in_window)

    def complete(self, event: Fields, _name: str) -> None:
        result = event.take("result", object, None)
        text = None if result is None else to_text(result)
        self._report(event, Outcome.COMPLETED, result=text)

    def fail(self, event: Fields, _name: str) -> None:
        dispatched = event.take("dispatched", bool, True)
        error = event.take("error", str, None)
        self._report(event, Outcome.UNKNOWN if dispatched else Outcome.NOT_SENT, error=error)

    def transport_lost(self, event: Fields, _name: str) -> None:
        """The agent's helper reports what it knows: nothing was sent, or nobody can say. Where the
        contract makes a repeat harmless it repeats instead, and there is nothing to report."""
        written = event.take("bytes_written", bool, True)
        known = self._known(event)
        if written and known is not None and self._repeats_safely(known):
            event.take("attempt_id", str, None)
            return
        self._report(event, Outcome.UNKNOWN if written else Outcome.NOT_SENT)

    def stream_aborted(self, event: Fields, _name: str) -> None:
        event.take("by", str, None)
        self._report(event, Outcome.UNKNOWN, error="cancelled while the tool was running")

    def _report(self, event: Fields, outcome: Outcome, **said: Any) -> None:
        attempt = event.take("attempt_id", str, None)
        event.take("tenant", str, None)
        event.take("worker", str, None)
        provider_object = event.take("provider_object", str, None)
        fence, known = event.take("fence", int, None), self._known(event)
        if known is not None:
            own = max([*known.fences.values(), *known.unused], default=None)
            fence = (own if fence is None else fence) if attempt is None else known.use(attempt)
        if known is None or fence is None:
            ended = {"result": said.get("result"), "error": said.get("error")}
            self._tell_ended(
                event, attempt or "a", outcome, ended | {"provider_object": provider_object}
            )
            return
        settle = settle_of(outcome, fence=fence, provider_object=provider_object, **said)
        append.report(known.workspace_id, known.claim_id, outcome, settle)

    def heartbeat(self, event: Fields, name: str) -> None:
        attempt, known = event.take("attempt_id", str, None), self._known(event)
        if known is None:
            raise Fault(event.at("ref"), "names no earlier claim")
        fence = event.take("fence", int, None)
        if attempt is not None:
            fence = known.use(attempt)
        fence = fence or max(known.fences.values(), default=1)
        self.words[name] = str(append.heartbeat(known.workspace_id, known.claim_id, fence).word)

    def release(self, event: Fields, name: str) -> None:
        """A person allows one more attempt; of an attempt that seems alive they say first that it
        is lost."""
        event.pass_over("by", "reason", "override", "attempt_id", "fence")
        known = self._known(event)
        if known is None:
            raise Fault(event.at("ref"), "names no earlier claim")
        if queries.status(self._row(known), now=self.clock.now).state == "in_flight":
            self._decide(known, Verdict.LOST)
        for verdict in (Verdict.RELEASE_SAME, Verdict.RELEASE_NEW):
            if self._decide(known, verdict):
                return
        self.rejected[name] = "not_offered: the record rules a release out"

    def _decide(self, known: Known, verdict: Verdict) -> bool:
        decision = append.NewDecision(
            verdict=verdict,
            claim_version=self._touched(known).version,
            reason="as the case says",
            rule="case",
            hold_seconds=0,
        )
        try:
            append.decide(known.workspace_id, known.claim_id, decision)
        except NotOffered:
            return False
        return True

    def beside(self, event: Fields, _name: str) -> None:
        """Something that is said and changes nothing in the ledger."""
        event.pass_over("ref", "by", "text", "finish_reason", "tenant")

    def approval(self, event: Fields, _name: str) -> None:
        """A person allows a call that its agent has not claimed yet. The agent's integration keeps
        that, bound to what was shown, and claims nothing else."""
        event.pass_over("by", "tenant")
        place = (
            event.take("conversation_id", str),
            event.take("turn_index", int),
            event.take("ordinal", int, 0),
        )
        tool, arguments = event.take("tool", str), to_text(event.take("args", object, None))
        self._approved[place] = approval_digest(tool, arguments)

    def _is_approved(self, request: ClaimRequest) -> bool:
        place = (request.conversation, request.turn_index, request.position)
        approved = self._approved.get(place)
        return approved is None or approved == approval_digest(request.tool, request.arguments)

    # What is told by ledgers kept elsewhere

    def _known(self, event: Fields) -> Known | None:
        """The claim that an event speaks of; None: it has not come yet."""
        ref = event.take("ref", str)
        told = self.answers.get(ref)
        if told is None or told.claim_id is None:
            return None
        return self.claims.get(told.claim_id)

    def _tell_ended(
        self, event: Fields, attempt: str, outcome: Outcome, said: dict[str, Any]
    ) -> None:
        proof = str(outcome) if outcome is Outcome.NOT_SENT else None
        word = {Outcome.COMPLETED: "completed", Outcome.NOT_SENT: "failed"}.get(outcome, "unknown")
        self._tell_elsewhere(event, "attempt.started", attempt=attempt)
        self._tell_elsewhere(event, f"attempt.{word}", attempt=attempt, proof=proof, **said)

    def _tell_elsewhere(self, event: Fields, kind: str, **said: Any) -> None:
        ref = event.take("ref", str)
        asked = self.asked.get(ref)
        if asked is not None:
            self._tell(asked.workspace_id, "claim.made", made_elsewhere(ref, asked.request))
            workspace_id = asked.workspace_id
        else:
            workspace_id = workspace_of(event).pk
            self.parked.add(ref)
        self._tell(workspace_id, kind, {"claim": ref, **said})

    def _made_elsewhere(self, name: str, asked: Asked) -> None:
        """A claim whose own reports came first was made by somebody who had a right to it."""
        item = self._tell(asked.workspace_id, "claim.made", made_elsewhere(name, asked.request))
        told = self._ask(asked)
        self._told(name, asked, told)
        known = self.claims.get(UUID(str(item.claim_id))) if item.claim_id else None
        if known is not None:
            known.elsewhere = True

    def _tell(self, workspace_id: int, kind: str, said: dict[str, Any]) -> Any:
        data = {member: value for member, value in said.items() if value is not None}
        name = uuid5(NAMES, kind + to_text(data)).hex
        envelope = {"id": name, "source": SOURCE, "type": kind, "data": data}
        answer = ingest.ingest(workspace_id, None, EVENTS, [json.dumps(envelope).encode()])
        (item,) = answer.items
        if item.state in {ItemState.UNREADABLE, ItemState.FAILED, ItemState.CONFLICT}:
            raise Fault("input.events", f"the ledger could not read {kind}: {item.says}")
        return item

    # What came of it

    def granted(self) -> list[str]:
        """The claims that may run, in their order."""
        return [
            name
            for name, told in self.answers.items()
            if told.code is None or told.code in MAY_RUN or self._is_own(name, told)
        ]

    def _is_own(self, name: str, told: ClaimAnswer) -> bool:
        known = self.claims.get(told.claim_id) if told.claim_id else None
        return known is not None and known.elsewhere and known.first == name

    def duplicates(self) -> dict[str, str]:
        """The other claims, and which one each of them repeats."""
        return {
            name: self.claims[told.claim_id].first
            for name, told in self.answers.items()
            if told.code in SAME_OPERATION and told.claim_id and not self._is_own(name, told)
        }

    def answer_now(self, name: str) -> ClaimAnswer | None:
        """The claim of an event as it stands, or None where there is none."""
        told = self.answers.get(name)
        if told is None or told.claim_id is None:
            return None
        known = self.claims[told.claim_id]
        return queries.status(self._touched(known), now=self.clock.now)

    def row(self, name: str) -> Claim | None:
        told = self.answers.get(name)
        known = self.claims.get(told.claim_id) if told and told.claim_id else None
        return None if known is None else self._touched(known)

    def _row(self, known: Known) -> Claim:
        return queries.claim_by_key(known.workspace_id, str(known.claim_id))

    def _touched(self, known: Known) -> Claim:
        """The claim after the clock has spoken to it, as a worker's sweep would let it."""
        call("SELECT ledger_touch_v1(%s, %s)", [known.workspace_id, known.claim_id])
        return self._row(known)


_PLAYERS: Final[dict[str, Callable[[History, Fields, str], None]]] = {
    "claim": History.claim,
    "attempt": History.attempt,
    "complete": History.complete,
    "fail": History.fail,
    "heartbeat": History.heartbeat,
    "release": History.release,
    "transport_lost": History.transport_lost,
    "stream_aborted": History.stream_aborted,
    "turn_finished": History.beside,
    "note": History.beside,
    "approval": History.approval,
}
