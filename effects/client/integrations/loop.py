"""One conversation with a model that may call tools, turn after turn, whichever SDK carries it.

What differs between SDKs is a `Hearing`: how a response is asked for, read, and written back into
the conversation. When a response does not end as its protocol says, nothing of it is run or kept,
and the loop ends with what is safe now.
"""

from __future__ import annotations

import contextlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, ClassVar, Final

import httpx2

from effects.client.asking import Received, ToolCall
from effects.client.clock import elapsed_clock_seconds
from effects.client.integrations.toolbox import AsyncToolbox, Definition, Ran, Toolbox, Tools
from effects.core.recovery_messages import RecoveryDecision
from effects.core.streams import (
    ArgumentsState,
    Death,
    Ending,
    Protocol,
    StreamReader,
    StreamRecord,
)
from effects.core.vocabulary import Terminal

__all__ = ["Api", "Hearing", "Loop", "LoopResult", "Stop", "retry_count_of"]

RETRY_COUNT: Final = "x-stainless-retry-count"
"""The header in which the SDKs of Anthropic and OpenAI number the tries of one request."""


class Stop(StrEnum):
    """Why a loop ended."""

    ANSWERED = "answered"  # the model said its last word and called nothing
    DIED = "died"  # a response did not end as its protocol says
    TURNS_MAX = "turns_max"  # the model would have gone on


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """How a loop ended.

    `messages` is the conversation as far as it stands, with the result of every call that ran. Give
    it back with the same conversation to ask the last turn again; `turn` is the index of the turn
    that is asked for next, for those who count with `first_turn`. `records` are the responses in
    order, `ran` all calls that were answered. `error` is what the SDK raised, if it did.
    """

    stop: Stop
    messages: list[Any]
    turn: int
    records: tuple[StreamRecord, ...] = ()
    ran: tuple[Ran, ...] = ()
    error: Exception | None = None
    recovery: RecoveryDecision | None = None

    @property
    def death(self) -> Death:
        """Where the last response ended and what is safe. Nothing of one that died was run."""
        return self.records[-1].where_it_died()


class Hearing(ABC):
    """One response, from the request to the messages that stand for it."""

    protocol: ClassVar[Protocol]
    refusals: ClassVar[tuple[type[Exception], ...]] = (httpx2.HTTPError,)
    """What the SDK raises when no response came; anything else is a mistake in the request."""
    unsupported: ClassVar[frozenset[str]] = frozenset({"stream"})
    """Members of a request that would not do here what they say."""
    goes_on_after: ClassVar[frozenset[str]] = frozenset()
    """Reasons to end after which the model is asked again, although it called no tool of ours."""

    def __init__(
        self,
        messages: Sequence[Any],
        request: Mapping[str, Any],
        keep: Callable[[StreamRecord], None],
    ) -> None:
        self.messages = list(messages)
        self.request = request
        self.retry_count: int | None = None
        self.error: Exception | None = None
        self.record: StreamRecord | None = None
        self._keep = keep
        self._stream: Any = None
        self._reader = StreamReader(self.protocol, from_events=True)

    @classmethod
    @abstractmethod
    def definitions(cls, definitions: Sequence[Definition]) -> list[Any]:
        """The tools as the request names them."""

    @staticmethod
    @abstractmethod
    def turn_index(messages: Sequence[Any]) -> int:
        """The number of the model's responses that the conversation holds."""

    @abstractmethod
    def open(self, client: Any) -> Any:
        """Asks for the response: a context manager of a stream, or an awaitable of one."""

    @abstractmethod
    def committed(self, record: StreamRecord) -> list[Any]:
        """The messages that stand for the response, once it has ended well."""

    @staticmethod
    @abstractmethod
    def results(ran: Sequence[Ran]) -> list[Any]:
        """The messages that tell the model what its calls came to."""

    @abstractmethod
    def error_event(self, error: Exception) -> object:
        """The error event of the stream, where the SDK raised it instead of giving it out."""

    def opened(self, stream: Any) -> None:
        self._stream = stream
        self.retry_count = retry_count_of(stream.response)

    def hear(self, event: Any) -> None:
        self._reader.feed_event(event, at=elapsed_clock_seconds())

    @contextlib.contextmanager
    def to_its_end(self) -> Iterator[None]:
        """Reads the response in the block; `record` is what it amounts to. What the SDK raises is
        how the response ended, and is kept as `error`."""
        ending = Ending.CANCELLED
        try:
            yield
            ending = Ending.CLEAN
        except Exception as error:
            if self._stream is None and not isinstance(error, self.refusals):
                raise
            self.error, ending = error, Ending.RESET
            event = self.error_event(error)
            if event is not None:
                self.hear(event)
        finally:
            self.record = self._reader.close(ending)
            if self._stream is not None:
                self._keep(self.record)


class Loop:
    """The turns of one conversation, without their input and output."""

    def __init__(
        self,
        hearing: type[Hearing],
        conversation: str,
        messages: Sequence[Any],
        *,
        turns_max: int,
        first_turn: int | None,
        request: Mapping[str, Any],
    ) -> None:
        if turns_max < 1:
            raise ValueError("turns_max is the most responses that are asked for: at least 1.")
        for name in hearing.unsupported & request.keys():
            raise ValueError(
                f"The loop sends the whole conversation and reads one streamed answer, so {name} is"
                " not for it. Leave it out, or write a loop of your own."
            )
        self._hearing = hearing
        self._conversation = conversation
        self._messages = list(messages)
        self._turns_left = turns_max
        self._index = hearing.turn_index(messages) if first_turn is None else first_turn
        self._request = request
        self._records: list[StreamRecord] = []
        self._ran: list[Ran] = []
        self._error: Exception | None = None
        self._stop: Stop | None = None

    def hearings(self, tools: Tools[Any, Any]) -> Iterator[Hearing]:
        """A hearing for each response that is to be asked for, until the loop has ended. Each is
        recorded, also one that was cancelled."""
        offered = [*self._hearing.definitions(tools.definitions), *self._request.get("tools", ())]
        while self._stop is None:
            if not self._turns_left:
                self._stop = Stop.TURNS_MAX
                return
            self._turns_left -= 1
            yield self._hearing(
                self._messages,
                {**self._request, "tools": offered},
                partial(tools.keep, at=self._at()),
            )

    def heard(self, hearing: Hearing) -> StreamRecord | None:
        """Takes the response into the conversation: its record, if its calls are to be run."""
        record = hearing.record
        assert record is not None, "it was read to its end"
        self._records.append(record)
        if not _whole(record):
            self._stop, self._error = Stop.DIED, hearing.error
            return None
        self._messages += hearing.committed(record)
        if not record.calls:
            self._stop = None if record.reason in hearing.goes_on_after else Stop.ANSWERED
            self._index += 1
            return None
        return record

    def _at(self) -> ToolCall:
        return ToolCall(conversation=self._conversation, turn_index=self._index)

    def turn(self, hearing: Hearing, record: StreamRecord) -> dict[str, Any]:
        """Which turn its calls belong to, as arguments of `Ledger.turn`. Asked when the response
        has just ended: this process received it now."""
        return {
            "conversation": self._conversation,
            "index": self._index,
            "response_id": record.response_id,
            "retry_count": hearing.retry_count,
            "received": Received.now(),
        }

    def answered(self, hearing: Hearing, ran: Sequence[Ran]) -> None:
        """The calls of the response have ended; the model is told."""
        self._ran += ran
        self._messages += hearing.results(ran)
        self._index += 1

    def lost(self) -> tuple[StreamRecord, Exception | None] | None:
        """The response that died, and what was raised."""
        return (self._records[-1], self._error) if self._stop is Stop.DIED else None

    def result(self, recovery: RecoveryDecision | None) -> LoopResult:
        assert self._stop is not None
        return LoopResult(
            stop=self._stop,
            messages=self._messages,
            turn=self._index,
            records=tuple(self._records),
            ran=tuple(self._ran),
            error=self._error,
            recovery=recovery,
        )


@dataclass(frozen=True, slots=True)
class Api:
    """The loop and its parts, for one API of a provider."""

    hearing: type[Hearing]

    def tool_definitions(self, tools: Toolbox | AsyncToolbox) -> list[Any]:
        """The tools for the request, the status tool among them."""
        return self.hearing.definitions(tools.definitions)

    def turn_index(self, messages: Sequence[Any]) -> int:
        """The turn that is asked for next: how many responses a whole conversation holds."""
        return self.hearing.turn_index(messages)

    def tool_results(self, ran: Sequence[Ran]) -> list[Any]:
        """The messages with the results of the calls of a response that ended. Where the API can
        mark one as an error, only a call is marked that provably did nothing: a model that reads
        "error" tries again."""
        return self.hearing.results(ran)

    def run_loop(
        self,
        client: Any,
        tools: Toolbox,
        *,
        conversation: str,
        messages: Sequence[Any],
        turns_max: int = 10,
        first_turn: int | None = None,
        **request: Any,
    ) -> LoopResult:
        """Asks the model, runs what it calls, and asks again until it calls nothing.

        `client` is the SDK's. `conversation` is your own stable name. `request` goes to the SDK as
        it is: `model`, limits, further `tools` that the provider runs. A conversation whose older
        messages were dropped needs `first_turn`, the number of responses before this call.

        Returns also when a response dies: see `LoopResult.death`. Asked again with
        `result.messages`, the same calls get their first results. Raises what the ledger refuses
        (`TokenRefused`, `ScopeMissing`), and what is wrong with the request itself; nothing of the
        turn ran then.
        """
        loop = Loop(
            self.hearing,
            conversation,
            messages,
            turns_max=turns_max,
            first_turn=first_turn,
            request=request,
        )
        for hearing in loop.hearings(tools):
            with hearing.to_its_end(), hearing.open(client) as stream:
                hearing.opened(stream)
                for event in stream:
                    hearing.hear(event)
            record = loop.heard(hearing)
            if record is not None:
                turn = tools.ledger.turn(**loop.turn(hearing, record))
                loop.answered(hearing, tools.run_calls(record, turn))
            tools.tell_records()
        lost = loop.lost()
        return loop.result(None if lost is None else tools.ledger.recover(*lost))

    async def run_loop_async(
        self,
        client: Any,
        tools: AsyncToolbox,
        *,
        conversation: str,
        messages: Sequence[Any],
        turns_max: int = 10,
        first_turn: int | None = None,
        **request: Any,
    ) -> LoopResult:
        """See `run_loop`. The calls of one response run beside each other."""
        loop = Loop(
            self.hearing,
            conversation,
            messages,
            turns_max=turns_max,
            first_turn=first_turn,
            request=request,
        )
        for hearing in loop.hearings(tools):
            with hearing.to_its_end():
                opened = hearing.open(client)
                async with await opened if inspect.isawaitable(opened) else opened as stream:
                    hearing.opened(stream)
                    async for event in stream:
                        hearing.hear(event)
            record = loop.heard(hearing)
            if record is not None:
                turn = tools.ledger.turn(**loop.turn(hearing, record))
                loop.answered(hearing, await tools.run_calls(record, turn))
            await tools.tell_records()
        lost = loop.lost()
        return loop.result(None if lost is None else await tools.ledger.recover(*lost))


def _whole(record: StreamRecord) -> bool:
    """Whether the response ended as its protocol says and nothing is missing in between."""
    suspect = any(call.state is ArgumentsState.SUSPECT for call in record.calls)
    return record.terminal is Terminal.SUCCESS and not suspect


def retry_count_of(response: Any) -> int | None:
    """Which try of the SDK the response answers: 0 is the first, None where nobody says."""
    said = response.request.headers.get(RETRY_COUNT, "")
    return int(said) if said.isdecimal() else None
