"""What a recovery decision is made from, and what it says. Everything travels as JSON.

An agent turn holds several operations: one request to a model, the tool calls of its response, and
the delivery of the answer. What is known of each is told apart here, because a proof about one says
nothing about the others. Instants are aware; digests are of the caller's own making, and only
compared with each other.
"""

from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Final, Literal

from pydantic import AwareDatetime, Field

from effects.core.messages import ERROR_CHARACTERS_MAX, NAME_CHARACTERS_MAX, Message, Name
from effects.core.streams.record import ArgumentsState, Dispatched
from effects.core.vocabulary import EffectClass, Outcome, Terminal

CALLS_MAX: Final = 256
"""Most tool calls of one turn; as many as a stream may announce."""
COUNT_MAX: Final = 1_000_000
SECONDS_MAX: Final = 10 * 365 * 86_400
SENDS_DEFAULT: Final = 3
RESUMES_DEFAULT: Final = 5
REFRESHES_MAX: Final = 1
"""A second refresh would ask the same question again."""

Count = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Seconds = Annotated[int, Field(ge=0, le=SECONDS_MAX)]
Position = Annotated[int, Field(ge=0, le=32_767)]
Instant = Annotated[
    AwareDatetime, Field(ge=datetime(1970, 1, 1, tzinfo=UTC), lt=datetime(3000, 1, 1, tzinfo=UTC))
]
Clause = Annotated[str, Field(max_length=ERROR_CHARACTERS_MAX)]


class Observation(StrEnum):
    """What was seen of a turn. Each is a fact about the evidence, not a stage of the server."""

    NEVER_TRANSMITTED = "never_transmitted"
    REFUSED = "refused"
    MAYBE_SENT = "maybe_sent"
    HEADERS_RECEIVED = "headers_received"
    PARTIAL_RECEIVED = "partial_received"
    TOOL_DISPATCHED = "tool_dispatched"
    SUCCESSFUL_END = "successful_end"
    NO_SUCCESSFUL_END = "no_successful_end"
    CREDENTIALS_REJECTED = "credentials_rejected"
    CANCELLED = "cancelled"


class Mechanism(StrEnum):
    """What repeats: four things that are easily taken for each other, and none of them."""

    RECONNECT = "reconnect"  # a connection is made; nothing says that any work survived
    RESUME = "resume"  # an existing operation is read on from a position
    REPLAY = "replay"  # an operation is submitted again
    CONTINUE = "continue"  # another generation, informed by what is known
    NONE = "none"


class RecoveryStep(StrEnum):
    """The seven answers."""

    SETTLE = "settle_remaining_tools_and_delivery"
    RECONCILE = "reconcile_tool_operation"
    SEND = "bounded_send"
    REFRESH = "bounded_refresh_then_reclassify"
    RESUME = "resume_after_applied_cursor"
    REPLAY = "bounded_replay_with_same_key"
    PRESERVE = "preserve_partial_result_and_report"


class RecoveryReason(StrEnum):
    """Why it is this step."""

    SUCCESS_RECORDED = "success_recorded"
    EFFECT_UNKNOWN = "effect_unknown"
    NEVER_TRANSMITTED = "never_transmitted"
    TURNED_AWAY = "turned_away_for_now"
    CREDENTIALS_REJECTED = "credentials_rejected"
    CREDENTIALS_REFRESHED = "credentials_refreshed"
    RESUMABLE = "resumable"
    REPLAY_GUARANTEED = "replay_guaranteed"
    # Of a turn that is only preserved:
    CANCELLED = "cancelled"
    RECONNECTION_REQUIRED = "reconnection_required"
    REFRESH_UNAVAILABLE = "refresh_unavailable"
    REFUSED = "refused"
    SENDS_SPENT = "sends_spent"
    SUCCESS_NOT_RECORDED = "success_not_recorded"
    ENDED_BY_LIMIT = "ended_by_limit"
    FAILED_IN_STREAM = "failed_in_stream"
    INTERRUPTED = "interrupted"
    NO_ANSWER = "no_answer"


class Bar(StrEnum):
    """Why an operation cannot be resumed, or not be replayed."""

    ENDPOINT_CANNOT = "endpoint_cannot"
    NO_OPERATION_ID = "no_operation_id"
    NOT_BACKGROUND = "not_background"
    NOT_STORED = "not_stored"
    NOT_DATED = "not_dated"
    NO_LONGER_KEPT = "no_longer_kept"
    RESUMES_SPENT = "resumes_spent"
    ENDED = "ended"
    NO_KEY = "no_key"
    OTHER_PARAMETERS = "other_parameters"
    OTHER_SCOPE = "other_scope"
    WINDOW_CLOSED = "window_closed"
    CLOCKS_DISAGREE = "clocks_disagree"
    CONCURRENCY_NOT_SAFE = "concurrency_not_safe"
    SENDS_SPENT = "sends_spent"


class Received(StrEnum):
    """How much of a response came."""

    NOTHING = "nothing"
    HEADERS = "headers"  # the status 200 and the stream's beginning
    PARTIAL = "partial"  # some text, or some of a tool call


class Concurrent(StrEnum):
    """What an endpoint does with a key whose first request still runs."""

    REFUSED = "refused"  # it says so and starts nothing
    JOINED = "joined"  # both get the one answer
    UNDOCUMENTED = "undocumented"
    RUNS_BOTH = "runs_both"


class RefreshFailure(StrEnum):
    """How an attempt to refresh credentials failed."""

    REFUSED = "refused"  # for good: a person has to connect the account again
    UNAVAILABLE = "unavailable"  # for now: nobody answered


class Partial(StrEnum):
    """Parts of a cut response that must not be handed on in a continuation."""

    TOOL_USE = "tool_use"
    THINKING = "thinking"


class CallAdvice(StrEnum):
    """What to do with one tool call of the turn."""

    SETTLED = "settled"  # its outcome is known and stands: it is told, and not sent again
    RECONCILE = "reconcile"  # find out first whether it took effect
    SAME_KEY = "retry_with_same_key"  # the provider answers the repeat with the first result
    DISPATCH = "dispatch"  # it has not run, and may: claim it first
    NOT_RUN = "not_run"  # it has not run and is not run now; no result is written for it


class Budget(Message):
    """How often something was done, the time that failed included, and how often it may be."""

    made: Count
    limit: Count

    @property
    def left(self) -> bool:
        return self.made < self.limit


class ReplayContract(Message):
    """What an endpoint documents about a repeated key: for how long it remembers it, counted from
    the first receipt, in which scope, and what it does while the first request still runs.
    `margin_seconds` is what is taken off the end: the longest request, and clocks that differ."""

    window_seconds: Seconds
    margin_seconds: Seconds = 60
    scope: Name | None = None
    concurrent: Concurrent = Concurrent.UNDOCUMENTED


class ResumeContract(Message):
    """That an endpoint lets an operation be read on, and of which operations that is true.
    `kept_seconds` counts from the last event that was received."""

    kept_seconds: Seconds
    only_background: bool = True
    only_stored: bool = True


class EndpointContract(Message):
    """What the model's endpoint documents. What is not documented is None: not promised."""

    resume: ResumeContract | None = None
    replay: ReplayContract | None = None
    supports_refresh: bool = False


class KeyedSend(Message):
    """The first send under a key, and what would be sent now. `scope` is the account, mode and
    endpoint for which the key was used, as the contract names it."""

    key: Name
    sent_digest: Name
    digest: Name
    first_sent_at: Instant
    scope: Name | None = None


class CallFacts(Message):
    """What is known of one tool call. `outcome` is what is known of its effect; None: nobody said.
    `contract` and `keyed` are those of the tool's own provider, not the model's; neither is said of
    a call whose claim a ledger holds, because only the ledger grants its attempts."""

    position: Position
    tool: Name | None = None
    effect_class: EffectClass = EffectClass.UNKEYED_WRITE
    arguments: ArgumentsState
    dispatched: Dispatched = Dispatched.NOT_STARTED
    outcome: Outcome | None = None
    keyed: KeyedSend | None = None
    contract: ReplayContract | None = None
    sends: Budget = Budget(made=0, limit=SENDS_DEFAULT)

    @property
    def has_run(self) -> bool:
        return self.dispatched is not Dispatched.NOT_STARTED or self.outcome is not None

    @property
    def effect_unknown(self) -> bool:
        """Whether it may have changed something, and nobody knows. A read changes nothing. A call
        that returned without another word has returned its result."""
        if self.effect_class is EffectClass.READ:
            return False
        if self.outcome is None:
            return self.dispatched is Dispatched.IN_FLIGHT
        return self.outcome is Outcome.UNKNOWN


class RecoveryRecord(Message):
    """What is durably known of one turn.

    `terminal` is how the response ended as far as anybody saw, `result_recorded` whether what was
    received is kept where a crash does not lose it. `operation_id` is the provider's id of the
    response; `client_operation_id` only correlates, and opens nothing. `cursor` is the last event
    that was durably *applied*, not the last that was seen. `open_sends` counts earlier sends of the
    same request whose outcome is not known either. `refreshes_made` counts refreshes of the
    credentials, `refresh_failed` says how the last one failed.
    """

    terminal: Terminal | None = None
    result_recorded: bool = False
    received: Received = Received.NOTHING
    last_event_at: Instant | None = None
    operation_id: Name | None = None
    client_operation_id: Name | None = None
    background: bool = False
    stored: bool = False
    cursor: Count | None = None
    keyed: KeyedSend | None = None
    calls: Annotated[tuple[CallFacts, ...], Field(max_length=CALLS_MAX)] = ()
    sends: Budget = Budget(made=1, limit=SENDS_DEFAULT)
    open_sends: Count = 0
    resumes: Budget = Budget(made=0, limit=RESUMES_DEFAULT)
    refreshes_made: Count = 0
    refresh_failed: RefreshFailure | None = None
    cancelled: bool = False

    @property
    def success_recorded(self) -> bool:
        """The provider's own successful end, kept. The end of a connection is not one, and neither
        is a successful end that a crash would lose."""
        return self.terminal is Terminal.SUCCESS and self.result_recorded

    @property
    def was_cancelled(self) -> bool:
        return self.cancelled or self.terminal is Terminal.CANCELLED

    @property
    def untouched(self) -> bool:
        """Whether nothing shows that the provider ever had the request: what proves something about
        the last send then proves it about the operation."""
        declared = {Terminal.SUCCESS, Terminal.INCOMPLETE, Terminal.ERROR_EVENT}
        return (
            self.received is Received.NOTHING
            and self.operation_id is None
            and self.terminal not in declared
            and self.open_sends == 0
        )


class RequestFailure(Message):
    """How the last request about the turn failed, sorted as for a tool. `in_stream`: it is an error
    event of a response that had begun with 200. `refreshed`: the request carried credentials that
    were refreshed before it."""

    outcome: Literal[Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED, Outcome.UNKNOWN] = (
        Outcome.UNKNOWN
    )
    http_status: Annotated[int, Field(ge=100, le=599)] | None = None
    provider_code: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None
    in_stream: bool = False
    refreshed: bool = False
    retry_after_seconds: Seconds | None = None
    why: Clause = ""

    @property
    def rejected_credentials(self) -> bool:
        """A 401 at the gate. An error event can name the same cause, but comes after work began;
        and what was not sent was not rejected."""
        answered = self.outcome is not Outcome.NOT_SENT and not self.in_stream
        return answered and self.http_status == 401


class RecoveryRequest(Message):
    """Asks what may be done about a turn that did not go to its end."""

    record: RecoveryRecord
    failure: RequestFailure = RequestFailure()
    contract: EndpointContract = EndpointContract()


class CallStep(Message):
    """What to do with one call. `key` and `until`: which key to send again, and until when."""

    position: Position
    tool: Name | None = None
    advice: CallAdvice
    key: Name | None = None
    until: AwareDatetime | None = None
    not_replayed: Bar | None = None


class RecoveryDecision(Message):
    """What may be done, by which mechanism, why, and on which observations it rests.

    `mechanism` is what repeats; `none`: nothing does. `continue` is an offer: another generation
    costs again, says other words, and is the application's choice; `exclude` are the parts of the
    cut response that it must leave out. `cursor` is the last event applied, after which a resumed
    `operation_id` is read on, None from the beginning; `key` and `until` are for a replay.
    `not_resumed` and `not_replayed` say why the model's request is neither.
    """

    step: RecoveryStep
    mechanism: Mechanism
    reason: RecoveryReason
    says: str
    observations: Annotated[tuple[Observation, ...], Field(min_length=1)]
    operation_id: Name | None = None
    cursor: Count | None = None
    key: Name | None = None
    until: AwareDatetime | None = None
    wait_seconds: Seconds | None = None
    exclude: tuple[Partial, ...] = ()
    calls: tuple[CallStep, ...] = ()
    not_resumed: Bar | None = None
    not_replayed: Bar | None = None
