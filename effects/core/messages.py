"""What the agent and the ledger say to each other over HTTP.

Strict: `false` is not 0 and "3" is not 3. Read with `Model.model_validate_json(body)`: in JSON,
strictness still allows identifiers, times and words as strings. Arguments and results travel as
JSON *text*, never as JSON values: a number that passes through a float is another amount.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    Flag,
    KeyWindow,
    Outcome,
    Reason,
    Verdict,
)

NAME_CHARACTERS_MAX = 255
RESULT_BYTES_MAX = 1024 * 1024
ERROR_CHARACTERS_MAX = 2000
WAIT_SECONDS_MAX = 60
CLAIMS_PER_BATCH_MAX = 64

Name = Annotated[str, Field(min_length=1, max_length=NAME_CHARACTERS_MAX)]


class Message(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")


class Delivery(Message):
    """How this request reached the worker: evidence about duplicates, never an identity."""

    worker: Name | None = None
    delivery_count: Annotated[int, Field(ge=0, le=1_000_000)] | None = None
    retry_count: Annotated[int, Field(ge=0, le=1_000_000)] | None = None


class Origin(Delivery):
    """Who executes a call, and from where: evidence about duplicates as well. `checkpoint` is the
    state that the run began from. `user_spoke`: a user's message stands between the agent's turn
    before and this one; null says that nobody looked."""

    agent: Name | None = None
    checkpoint: Name | None = None
    user_spoke: bool | None = None


class ClaimRequest(Origin):
    """Asks for the right to run one tool call. `nonce` is 16 random bytes in hex, made for this one
    request in this process's memory: it alone lets a lost answer be given again."""

    tool: Name
    effect_class: EffectClass = EffectClass.UNKEYED_WRITE
    arguments: str
    conversation: Name | None = None
    turn_index: Annotated[int, Field(ge=0, le=2_147_483_647)] | None = None
    position: Annotated[int, Field(ge=0, le=32_767)] = 0
    ordinal: Annotated[int, Field(ge=0, le=32_767)] = 0
    response_id: Name | None = None
    call_id: Name | None = None
    caller_key: str | None = None
    repeat_of: UUID | None = None
    nonce: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")] | None = None


class DecisionShown(Message):
    """A decision as the agent may see it."""

    decision_id: int
    verdict: Verdict
    reason: str
    decided_at: datetime
    effective_at: datetime
    pending: bool


class OfflineTerms(Message):
    """What an agent must know of a tool that may be sent while the ledger cannot be asked, to make
    the very key that the ledger would have given: the workspace's number and the argument rules."""

    workspace: int
    window_seconds: Annotated[int, Field(ge=1)]
    margin_seconds: Annotated[int, Field(ge=0)]
    lease_seconds: Annotated[int, Field(ge=1)]
    argument_rules: dict[str, Any] = {}


class ClaimAnswer(Message):
    """The answer to a claim request, a report or a status question.

    `key`, `marker` and `send_within_seconds` are there only when the code permits a send.
    `send_within_seconds` counts from before the client asked, by its own monotonic clock.
    `key_window` says what a missing `safe_retry_until` means: no key, or a window that nobody
    published and that counts as closed.
    `for_model` is the exact object to hand to the model as the tool's result.
    `offline` comes with every answer about a tool that may be sent while the ledger is away.
    """

    code: AnswerCode | None = None
    claim_id: UUID | None = None
    state: ClaimState | None = None
    effect_class: EffectClass | None = None
    tool: str | None = None
    reason: Reason | None = None
    fence: int = 0
    generation: int = 0
    key: str | None = None
    marker: str | None = None
    send_within_seconds: float | None = None
    lease_until: datetime | None = None
    safe_retry_until: datetime | None = None
    key_window: KeyWindow | None = None
    retry_after_seconds: int | None = None
    flags: tuple[Flag, ...] = ()
    blocker: UUID | None = None
    provider_object: str | None = None
    result: str | None = None
    result_stored: bool | None = None
    decision: DecisionShown | None = None
    decision_pending: bool = False
    for_model: dict[str, Any] | None = None
    link: str | None = None
    offline: OfflineTerms | None = None


class Settle(Delivery):
    """One attempt's report, whatever it says. `fence` names the attempt. `retry_count` is how often
    the library behind the tool repeated the request within this attempt, as far as it says."""

    fence: Annotated[int, Field(ge=1, le=2_147_483_647)]
    provider_object: Name | None = None
    replayed: bool | None = None
    marker_sent: bool | None = None
    response_id: Name | None = None
    call_id: Name | None = None
    http_status: Annotated[int, Field(ge=100, le=599)] | None = None
    provider_code: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None
    request_id: Annotated[str, Field(max_length=NAME_CHARACTERS_MAX)] | None = None
    error: Annotated[str, Field(max_length=ERROR_CHARACTERS_MAX)] | None = None


class Complete(Settle):
    """The effect happened. `result` is JSON text, or null with `result_stored: false` where the
    tool's result could not be serialised."""

    result: str | None = None
    result_stored: bool = True


class Fail(Settle):
    """The effect provably did not happen in this attempt; `proof` says by what."""

    proof: Literal[Outcome.NOT_SENT, Outcome.REFUSED, Outcome.REFUSED_STORED]


class Unknown(Settle):
    """Nobody can say what became of this attempt."""


class OfflineEnd(Settle):
    """How an attempt ended that the ledger did not grant. It was the only one that its agent knew
    of, so its `fence` is 1 whatever the ledger will call it."""

    outcome: Outcome
    ended_at: AwareDatetime
    result: str | None = None


class OfflineCall(Message):
    """One attempt that was sent while the ledger could not be asked, told afterwards.

    `attempt` is 16 random bytes in hex and names it for ever, so telling it twice is harmless; its
    `end` may be told later. `key` is what went to the provider, `claimed_at` when the record of the
    request was on the agent's disk, by its clock. The request carries no nonce.
    """

    workspace: int
    attempt: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    key: Name
    claimed_at: AwareDatetime
    request: ClaimRequest
    end: OfflineEnd | None = None


class Sent(Message):
    """A hint that dates the send. Its absence proves nothing."""

    fence: Annotated[int, Field(ge=1, le=2_147_483_647)]


class Heartbeat(Message):
    fence: Annotated[int, Field(ge=1, le=2_147_483_647)]


class HeartbeatAnswer(Message):
    word: Literal["ok", "stop"]
    lease_until: datetime | None = None


class Problem(BaseModel):
    """RFC 9457 problem details with a stable `code`, and the claim's answer where there is one."""

    model_config = ConfigDict(extra="allow")

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    answer: ClaimAnswer | None = None


class ClaimBatch(Message):
    """Several claim requests, each a `ClaimRequest`. They are read one by one, so that one that is
    not well formed does not cost the others their answer."""

    claims: tuple[Any, ...]


class BatchItem(Message):
    """One claim's answer in a batch: the answer, or the problem for which nothing was recorded."""

    answer: ClaimAnswer | None = None
    problem: Problem | None = None


class BatchAnswer(Message):
    """The answers to a batch of claims, in the order asked."""

    answers: tuple[BatchItem, ...]
