"""What is known of one model response, and what is safe where it died.

Three facts are kept apart, because each goes wrong without the others: whether the message ended as
its protocol says, whether a call ended, and whether a call's arguments are whole. Nothing is
repaired into validity, and an empty text becomes `{}` only where the call is known to have ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum, auto
from typing import Any, Final

from effects.core.vocabulary import Terminal


class ArgumentsState(StrEnum):
    """How much of a call's arguments was received."""

    COMPLETE = "complete"  # the call ended, and its arguments are one JSON object
    PARTIAL = "partial"  # the stream ended inside them
    UNCONFIRMED = "complete_but_unconfirmed"  # an object, but nothing said that the call ended
    INVALID = "invalid"  # the call ended, and its arguments are not one JSON object
    SUSPECT = "suspect"  # something is missing or contradicts itself in between


class NotDispatchable(StrEnum):
    """Why a call must not be run."""

    NOT_ENDED = "not_ended"
    INVALID = "invalid_arguments"
    SUSPECT = "suspect_arguments"
    NO_NAME = "no_name"
    TURN_INCOMPLETE = "turn_incomplete"
    TURN_CANCELLED = "turn_cancelled"


class StreamFlag(StrEnum):
    """What was unusual about a call or a stream."""

    ID_MISSING = "id_missing"
    ID_CHANGED = "id_changed"
    INDEX_REUSED = "index_reused"
    DUPLICATE_CALL_ID = "duplicate_tool_call_id"
    WEAK_CALL_ID = "weak_tool_call_id"
    SEQUENCE_GAP = "sequence_gap"
    ARGUMENTS_DISAGREE = "arguments_disagree"
    DAMAGED = "damaged_bytes"
    UNREADABLE_EVENT = "unreadable_event"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One tool call as it was received.

    `position` is its place among all calls of the response. `raw` is the arguments' text as far as
    it came; `free_text` says that the tool takes any text. `fault_code` and `fault_at` (characters
    from 0) say why an ended call's arguments are invalid. `flags` holds words of `StreamFlag`, and
    the codes of refused arguments.
    """

    position: int
    call_id: str | None
    name: str | None
    state: ArgumentsState
    raw: str
    free_text: bool = False
    why_not: NotDispatchable | None
    fault_code: str | None = None
    fault_at: int | None = None
    flags: tuple[str, ...] = ()

    @property
    def dispatchable(self) -> bool:
        return self.why_not is None

    @property
    def arguments(self) -> str | None:
        """The JSON object as text, where there is one; it may still be unconfirmed. A free text
        stands in it as `input`."""
        if self.state not in {ArgumentsState.COMPLETE, ArgumentsState.UNCONFIRMED}:
            return None
        if self.free_text:
            return json.dumps({"input": self.raw}, ensure_ascii=False)
        return self.raw if self.raw.strip() else "{}"


class Dispatched(StrEnum):
    """What the dispatcher had done with a call when the stream ended."""

    NOT_STARTED = "not_started"
    IN_FLIGHT = "in_flight"
    RETURNED = "returned"


_NOTHING_DISPATCHED: Final[Mapping[int, Dispatched]] = {}


class Advice(StrEnum):
    """What may be done about the turn."""

    NOTHING = "nothing_to_do"
    REISSUE = "safe_to_reissue"
    LARGER_BUDGET = "reissue_with_larger_budget"
    RECONCILE = "reconcile_first"
    REISSUE_KEYED = "reissue_with_the_stored_result"


class Where(Enum):
    """The five places at which a stream can die."""

    NOTHING_ANNOUNCED = auto()
    ARGUMENTS_STREAMING = auto()
    OUTSTANDING = auto()
    RETURNED = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """Where the stream died and what is safe now, in one sentence for people."""

    where: Where
    advice: Advice
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamRecord:
    """One response as it was received. Instants are seconds of the reader's own monotonic clock.

    `cursor` is the last sequence number where the protocol has one; `gaps` are the numbers that
    never came, each as (first, last). `violations` break the protocol and put the turn in review;
    `warnings` do not. `unseen` names what this way of reading cannot see. `orphans` are fragments
    that belong to no call.
    """

    terminal: Terminal
    calls: tuple[CallRecord, ...] = ()
    reason: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    request_id: str | None = None
    response_id: str | None = None
    model: str | None = None
    usage: Mapping[str, Any] = field(default_factory=dict)
    cursor: int | None = None
    gaps: tuple[tuple[int, int], ...] = ()
    repeated_events: int = 0
    flags: tuple[str, ...] = ()
    violations: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()
    orphans: tuple[str, ...] = ()
    first_byte_at: float | None = None
    last_call_end_at: float | None = None
    terminal_at: float | None = None

    def where_it_died(self, dispatched: Mapping[int, Dispatched] = _NOTHING_DISPATCHED) -> Death:
        """Which of the five places it is, given what was dispatched, by a call's position.

        A call that is outstanding outweighs everything: nobody knows what became of it.
        """
        done = set(dispatched.values())
        if Dispatched.IN_FLIGHT in done:
            return _DEATHS[Where.OUTSTANDING]
        if self.terminal is Terminal.SUCCESS:
            return _DEATHS[Where.ENDED] if self._whole else _DEATHS[Where.ARGUMENTS_STREAMING]
        if Dispatched.RETURNED in done:
            return _DEATHS[Where.RETURNED]
        if self.terminal is Terminal.INCOMPLETE:
            return _OVER_BUDGET
        return _DEATHS[Where.ARGUMENTS_STREAMING if self.calls else Where.NOTHING_ANNOUNCED]

    @property
    def _whole(self) -> bool:
        broken = {ArgumentsState.INVALID, ArgumentsState.SUSPECT}
        return not any(call.state in broken for call in self.calls)


_DEATHS: Final = {
    death.where: death
    for death in (
        Death(
            where=Where.NOTHING_ANNOUNCED,
            advice=Advice.REISSUE,
            says="No call was announced and nothing was dispatched: the turn may be asked again.",
        ),
        Death(
            where=Where.ARGUMENTS_STREAMING,
            advice=Advice.REISSUE,
            says=(
                "A call was announced and nothing was dispatched: it did not run, and the turn may "
                "be asked again. No result is written for it."
            ),
        ),
        Death(
            where=Where.OUTSTANDING,
            advice=Advice.RECONCILE,
            says=(
                "A call was dispatched and has not returned: nobody knows yet whether it took "
                "effect. Find that out before anything is asked again."
            ),
        ),
        Death(
            where=Where.RETURNED,
            advice=Advice.REISSUE_KEYED,
            says=(
                "A dispatched call has returned: asking the turn again is safe only where its "
                "claim answers the repeat with the stored result."
            ),
        ),
        Death(
            where=Where.ENDED,
            advice=Advice.NOTHING,
            says="The message ended as its protocol says: there is nothing to ask again.",
        ),
    )
}
_OVER_BUDGET: Final = Death(
    where=Where.ARGUMENTS_STREAMING,
    advice=Advice.LARGER_BUDGET,
    says=(
        "The response was ended by a limit and nothing was dispatched: asked again as it is, it "
        "ends in the same place. Ask again with a larger budget."
    ),
)
