"""What an agent's worker is given, and what it says back. Plain values: they cross processes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from reconcile.sandbox.faults import Fault
from reconcile.sandbox.tools import ToolName

WAIT_FOR_A_WORD_SECONDS_MAX: Final = 10.0


class Mishap(StrEnum):
    """What befalls the worker itself during its first send."""

    NONE = "none"
    KILLED_BEFORE_SEND = "killed_before_send"  # SIGKILL after the grant, before the request
    KILLED_AFTER_SEND = "killed_after_send"  # SIGKILL once the provider has the request
    FROZEN_BEFORE_CHECK = "frozen_before_check"  # SIGSTOP before it asks whether it may send
    FROZEN_BEFORE_SEND = "frozen_before_send"  # SIGSTOP after that, before the request

    @property
    def kills(self) -> bool:
        return self in {Mishap.KILLED_BEFORE_SEND, Mishap.KILLED_AFTER_SEND}

    @property
    def freezes(self) -> bool:
        return self in {Mishap.FROZEN_BEFORE_CHECK, Mishap.FROZEN_BEFORE_SEND}


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where an agent works. Without a `ledger_url` it works as agents without a ledger do.

    `speaks`: every worker prints what it is told.
    """

    provider_url: str
    ledger_url: str | None = None
    token: str = ""
    request_seconds_max: float = 5.0
    wait_seconds_max: float = 30.0
    speaks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One tool call of the model, as a queue hands it to a worker.

    `fault` and `mishap` meet the first send of this delivery only. `discount` is taken off by the
    tool itself: what is sent then differs from what the model asked for. `waits_for_a_word`: the
    tool does not send before whoever started the worker says so, or WAIT_FOR_A_WORD_SECONDS_MAX.
    """

    worker: str
    conversation: str
    turn_index: int
    position: int
    response_id: str
    call_id: str
    delivery_count: int
    tool: ToolName
    arguments: Mapping[str, Any]
    fault: Fault = Fault.NONE
    fault_seconds: float | None = None
    mishap: Mishap = Mishap.NONE
    discount: int = 0
    waits_for_a_word: bool = False
    gives_up: bool = False

    @property
    def order(self) -> str:
        """The operation that this call is about, whoever asks for it and however often."""
        return str(self.arguments["order"])


class Stage(StrEnum):
    """What a worker says on its way."""

    GRANTED = "granted"  # it may send, and is about to run the tool
    FROZEN = "frozen"  # it is about to freeze
    TOLD = "told"  # the tool call came back; it may not be the end
    ENDED = "ended"  # nothing more will come


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One thing that a worker says. `status` and `for_model` are what the model is told."""

    stage: Stage
    pid: int
    status: str = ""
    for_model: Mapping[str, Any] = field(default_factory=dict)
    claim_id: UUID | None = None
    sends: int = 0
