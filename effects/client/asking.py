"""What a claim request says about a tool call, and how often our own requests are repeated."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass
from typing import Final, Self
from uuid import UUID

from pydantic import ValidationError

from effects.client.clock import elapsed_clock_seconds
from effects.client.results import ObjectFrom
from effects.core.failures import Contract, ErrorRules
from effects.core.messages import ClaimRequest
from effects.core.problems import BadRequest
from effects.core.vocabulary import EffectClass

__all__ = ["Asked", "Patience", "Received", "ToolCall", "claim_request"]

_BORN: Final = secrets.token_hex(8)


def _this_process() -> str:
    """Not the process id alone: in containers it is often the same after a restart."""
    return f"{os.getpid()}-{_BORN}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """When this process received a model's response, by a clock that does not stop with the
    machine. In another process, a forked one or one that it was sent to, it says nothing: a call
    that waited in a queue may be older than its key."""

    at: float
    process: str

    @classmethod
    def now(cls) -> Self:
        """To be asked where the response arrives, and never for one that was stored."""
        return cls(at=elapsed_clock_seconds(), process=_this_process())

    @property
    def here(self) -> bool:
        return self.process == _this_process()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """Which call of the model this is.

    `turn_index` is the number of assistant messages committed before the model was asked; a turn
    that is asked for again has the same one. `position` is the call's place among all calls of its
    response, `ordinal` the number of earlier calls there of the same tool with equal arguments.
    `response_id` and `call_id` are the provider's, or None: never invent one. `caller_key` is a key
    of the agent's own that names the operation. `repeat_of` is an earlier claim that this call
    repeats on purpose. Without conversation and turn, or a `caller_key`, a repeat cannot be
    recognised and the ledger refuses the claim.

    `received` says when this process received the response itself; without it the call is never
    sent while the ledger is away.

    `worker`, `delivery_count` and `retry_count` say how the job reached this worker, `agent` and
    `checkpoint` who runs it and from which saved state; `user_spoke` is whether a user's message
    stands between the agent's turn before and this one. They are evidence when something happened
    twice, and change no answer.
    """

    conversation: str | None = None
    turn_index: int | None = None
    position: int = 0
    ordinal: int = 0
    response_id: str | None = None
    call_id: str | None = None
    caller_key: str | None = None
    repeat_of: UUID | None = None
    received: Received | None = None
    worker: str | None = None
    delivery_count: int | None = None
    retry_count: int | None = None
    agent: str | None = None
    checkpoint: str | None = None
    user_spoke: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How often the client repeats its own requests to the ledger. It never repeats a tool's.

    A claim whose answer was lost is asked for again with the same nonce, which gets the same grant
    again; a report may be repeated because the same report is the same fact. `beats_per_lease` is
    how often a running call keeps its lease: three outlive two that are lost, 0 is never.
    """

    claim_tries_max: int = 3
    report_tries_max: int = 6
    pause_seconds_first: float = 0.1
    pause_seconds_max: float = 3.0
    beats_per_lease: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A claim to be asked for, and how the ends of its attempt are read: by which `contract` errors
    are sorted, where a result names the provider's object, and the exception that was being handled
    when the call began, which is no part of what it meets. `received`: see `ToolCall`."""

    request: ClaimRequest
    contract: ErrorRules | Contract | None = None
    object_from: ObjectFrom | None = None
    outside: BaseException | None = None
    received: Received | None = None


def claim_request(
    *, tool: str, effect_class: EffectClass, arguments: str, at: ToolCall
) -> ClaimRequest:
    """The claim request for one call, with a new nonce. Raises `BadRequest` if a value is out of
    its limits; nothing has been asked then."""
    try:
        return ClaimRequest(
            tool=tool,
            effect_class=effect_class,
            arguments=arguments,
            conversation=at.conversation,
            turn_index=at.turn_index,
            position=at.position,
            ordinal=at.ordinal,
            response_id=at.response_id,
            call_id=at.call_id,
            caller_key=at.caller_key,
            repeat_of=at.repeat_of,
            worker=at.worker,
            delivery_count=at.delivery_count,
            retry_count=at.retry_count,
            agent=at.agent,
            checkpoint=at.checkpoint,
            user_spoke=at.user_spoke,
            nonce=secrets.token_hex(16),
        )
    except ValidationError as error:
        raise BadRequest(f"The claim for {tool} is not well formed: {error}") from error
