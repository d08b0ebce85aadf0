"""What a ledger kept elsewhere tells this one, as events.

An agent with a table of its own is mirrored by these alone: a claim made, attempts and how they
ended, what providers answered, and the streams in which the calls were announced. Events may come
late, twice and in any order. They are evidence: they say what happened, and grant nothing.

`claim`, `attempt` and `stream` are the sender's own names; together with the event's `source` they
mean one thing for ever. Times are the sender's; only the database's clock judges a lease.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from effects.core.messages import (
    ERROR_CHARACTERS_MAX,
    NAME_CHARACTERS_MAX,
    Delivery,
    Message,
    Name,
    Origin,
)
from effects.core.vocabulary import EffectClass, ItemState, Outcome, SightingWord, Terminal

OBJECTS_MAX: Final = 100
CALLS_PER_STREAM_MAX: Final = 256
NOTE_CHARACTERS_MAX: Final = 10_000

Sequence = Annotated[int, Field(ge=1, le=2_147_483_647)]
Position = Annotated[int, Field(ge=0, le=32_767)]
Index = Annotated[int, Field(ge=0, le=2_147_483_647)]
Error = Annotated[str, Field(max_length=ERROR_CHARACTERS_MAX)]


class OfStream(Message):
    """Something about one stream. `sequence` numbers the stream's events from 1, so that the cursor
    can say up to where everything is applied."""

    stream: Name
    sequence: Sequence | None = None


class StreamOpened(OfStream):
    """A model began to answer."""

    conversation: Name
    turn_index: Index
    response_id: Name | None = None
    model: Name | None = None


class StreamClosed(OfStream):
    """A response ended, or its connection did. `last_sequence` is how many events there were."""

    terminal: Terminal
    error: Error | None = None
    last_sequence: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None


class CallPart(Message):
    """One tool call as far as it was received. `complete`: its arguments ended, at `ended_at` where
    the record of a whole response knows it."""

    position: Position
    ordinal: Position | None = None
    tool: Name | None = None
    call_id: Name | None = None
    arguments: str | None = None
    complete: bool
    ended_at: datetime | None = None


class CallAnnounced(OfStream, CallPart):
    """A stream announced a tool call. A later event for the same position may say more of it."""


class StreamRecorded(Message):
    """One response as a whole, up to `cursor`: everything that was received so far."""

    stream: Name
    conversation: Name
    turn_index: Index
    response_id: Name | None = None
    model: Name | None = None
    opened_at: datetime | None = None
    closed_at: datetime | None = None
    terminal: Terminal | None = None
    error: Error | None = None
    cursor: Annotated[int, Field(ge=0, le=2_147_483_647)] = 0
    last_sequence: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    calls: Annotated[tuple[CallPart, ...], Field(max_length=CALLS_PER_STREAM_MAX)] = ()


class ClaimMade(Origin):
    """An operation was claimed elsewhere, and with it its first attempt. `key` is the idempotency
    key that goes to the provider. Without a conversation and turn or a `caller_key` no repeat of it
    can be recognised; it is recorded all the same."""

    claim: Name
    tool: Name
    effect_class: EffectClass = EffectClass.UNKEYED_WRITE
    arguments: str | None = None
    conversation: Name | None = None
    turn_index: Index | None = None
    position: Position = 0
    ordinal: Position = 0
    response_id: Name | None = None
    call_id: Name | None = None
    caller_key: Name | None = None
    key: Name | None = None


class AttemptStarted(Origin):
    """An attempt of a claim began. `key` where it differs from the claim's; `fence` only where this
    ledger granted that very attempt."""

    claim: Name
    attempt: Name
    key: Name | None = None
    fence: Sequence | None = None


class AttemptSent(Message):
    """The request left. It dates the send; its absence proves nothing."""

    claim: Name
    attempt: Name


class AttemptEnded(Delivery):
    """What every report of an attempt may say besides its outcome."""

    claim: Name
    attempt: Name
    provider_object: Name | None = None
    replayed: bool | None = None
    http_status: Annotated[int, Field(ge=100, le=599)] | None = None
    provider_code: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None
    request_id: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None
    error: Error | None = None


class AttemptCompleted(AttemptEnded):
    """The effect happened. `result` is JSON text."""

    result: str | None = None


class AttemptFailed(AttemptEnded):
    """The attempt provably did nothing; `proof` says by what. Without a proof it is unknown."""

    proof: Literal[Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED]


class AttemptUnknown(AttemptEnded):
    """Nobody can say what became of the attempt."""


class ProviderSighted(Message):
    """What a provider answered to somebody else's question. It is shown, and settles nothing: this
    ledger asks for itself."""

    claim: Name
    word: SightingWord
    objects: Annotated[tuple[Name, ...], Field(max_length=OBJECTS_MAX)] = ()
    route: Name | None = None
    asked_at: datetime | None = None
    request_id: Name | None = None


class ClaimNoted(Message):
    """A note about a claim, by whoever wrote it elsewhere."""

    claim: Name
    text: Annotated[str, Field(min_length=1, max_length=NOTE_CHARACTERS_MAX)]
    by: Name | None = None


STREAM_RECORDED: Final = "stream.recorded"

STREAM_TYPES: Final[dict[str, type[Message]]] = {
    "stream.opened": StreamOpened,
    "stream.closed": StreamClosed,
    STREAM_RECORDED: StreamRecorded,
    "call.announced": CallAnnounced,
}
EVENT_TYPES: Final[dict[str, type[Message]]] = {
    **STREAM_TYPES,
    "claim.made": ClaimMade,
    "claim.noted": ClaimNoted,
    "attempt.started": AttemptStarted,
    "attempt.sent": AttemptSent,
    "attempt.completed": AttemptCompleted,
    "attempt.failed": AttemptFailed,
    "attempt.unknown": AttemptUnknown,
    "provider.sighted": ProviderSighted,
}
"""Every type of event and the message that its `data` is."""


class ItemAnswer(BaseModel):
    """What became of one item. `duplicate`: the same content came before, and `state` says what
    became of it then. `at` is the place of a fault; `waits_for` the parent of a parked item."""

    model_config = ConfigDict(frozen=True)

    index: int
    source: str = ""
    id: str = ""
    word: Literal[
        ItemState.APPLIED,
        ItemState.RECORDED,
        ItemState.PARKED,
        ItemState.FAILED,
        ItemState.CONFLICT,
        ItemState.UNREADABLE,
        "duplicate",
    ]
    state: ItemState
    item: int | None = None
    reason: str | None = None
    says: str | None = None
    at: str | None = None
    mended: tuple[str, ...] = ()
    waits_for: str | None = None
    claim_id: str | None = None
    released: int = 0


class StreamCursor(BaseModel):
    """Up to where a stream's events are applied; a reader that resumes asks for what follows."""

    model_config = ConfigDict(frozen=True)

    source: str
    stream: str
    cursor: int


class IngestAnswer(BaseModel):
    """One answer for each item, in the order in which they were sent."""

    model_config = ConfigDict(frozen=True)

    items: tuple[ItemAnswer, ...] = ()
    counts: dict[str, int] = Field(default_factory=dict)
    streams: tuple[StreamCursor, ...] = ()
