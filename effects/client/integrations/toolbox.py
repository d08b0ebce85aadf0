"""From the calls of a response to what the model is told of them, whichever SDK read the response.

    tools = Toolbox(ledger, create_refund, find_order)
    ran = tools.run_calls(record, ledger.turn("c-1", 4, response_id=record.response_id))

`record` is what a `StreamReader` makes of the response. Only calls that it calls dispatchable are
claimed, all of them in one request, and each is claimed before it runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar

from effects.client.aio import AsyncLedger
from effects.client.asking import Asked, ToolCall
from effects.client.call import Call
from effects.client.decorate import AsyncTool, Prepared, Tool
from effects.client.effect_result import Effect
from effects.client.integrations.events import Events
from effects.client.integrations.recording import record_stream
from effects.client.integrations.refusals import refused
from effects.client.integrations.schema import arguments_model, description_of, what_is_wrong
from effects.client.integrations.status import STATUS_TOOL, AsyncStatusTool, StatusTool
from effects.client.ledger import Ledger
from effects.client.turn import TurnPlaces
from effects.core.failures import NotSent, SendTooLate
from effects.core.messages import CLAIMS_PER_BATCH_MAX
from effects.core.problems import ArgumentsRefused, LimitExceeded
from effects.core.streams import CallRecord, Dispatched, StreamRecord
from effects.core.vocabulary import Terminal

__all__ = ["AsyncToolbox", "Definition", "Ran", "Toolbox", "dispatched"]

AnyTool = TypeVar("AnyTool", Tool, AsyncTool)
AnyLedger = TypeVar("AnyLedger", Ledger, AsyncLedger)

Ready: TypeAlias = Prepared | Effect | None
"""A call before anything was asked: to be claimed and run, turned away, or not to be run at all."""
Begun: TypeAlias = Call | Effect | None
"""The ledger's answer to it; None where nothing is to be asked."""

NOT_SENT: Final = frozenset(
    {
        "refused",
        "held",
        "unknown_do_not_retry",
        "attempts_exhausted",
        "mismatch",
        "reissued_differently",
    }
    | {"identities_disagree", "already_done", "ledger_unavailable"}
)
"""Words under which this call itself was not carried out."""
OPEN: Final = frozenset({"unknown", "expired_unanswered", "in_flight", "conflicted"})
"""Words under which it may yet turn out to have happened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """What a model is shown of a tool. `schema` is the JSON schema of its arguments."""

    name: str
    description: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """One call of a response, and what it came to. Without an `effect` it was not run, because the
    response broke off: no result is written for it, and nobody asks for one."""

    call: CallRecord
    effect: Effect | None = None

    @property
    def dispatched(self) -> Dispatched:
        """What `StreamRecord.where_it_died` has to know of it."""
        if self.effect is None or self.effect.status in NOT_SENT or self.effect.nothing_sent:
            return Dispatched.NOT_STARTED
        return Dispatched.IN_FLIGHT if self.effect.status in OPEN else Dispatched.RETURNED


def dispatched(ran: Sequence[Ran]) -> Mapping[int, Dispatched]:
    """What was done with the calls of one response, by their position."""
    return {one.call.position: one.dispatched for one in ran}


class Tools(Generic[AnyTool, AnyLedger]):
    """The tools that a model is offered. Raises TypeError for a tool without words, and for two of
    one name."""

    def __init__(
        self, ledger: AnyLedger, tools: Sequence[AnyTool], events: Events | None = None
    ) -> None:
        self.ledger: AnyLedger = ledger
        self.events = events
        self.by_name: dict[str, AnyTool] = {}
        self.definitions: list[Definition] = []
        self._arguments = {tool.name: arguments_model(tool) for tool in tools}
        for tool in tools:
            if tool.name in self.by_name:
                raise TypeError(f"Two tools are called {tool.name}. Give each a name of its own.")
            self.by_name[tool.name] = tool
            schema = self._arguments[tool.name].model_json_schema()
            words = description_of(tool, None)
            self.definitions.append(Definition(name=tool.name, description=words, schema=schema))

    def keep(self, record: StreamRecord, at: ToolCall) -> None:
        """Keeps how a response was received, if there is a way to tell the ledger."""
        if self.events is not None:
            record_stream(self.events, record, at)

    def prepared(self, name: str | None, text: str, at: ToolCall) -> Prepared | Effect:
        """A call that is checked, or the effect of one that is turned away before anything is
        asked."""
        tool = self.by_name.get(name or "")
        if tool is None:
            return refused(f"There is no tool {name!r}.", "Nothing was sent. Use another tool.")
        wrong = what_is_wrong(self._arguments[tool.name], text)
        if wrong is not None:
            return refused(f"The arguments of {tool.name} are wrong. {wrong}")
        try:
            return tool.prepare(at, text)
        except (ArgumentsRefused, LimitExceeded, TypeError) as error:
            return refused(str(error))

    def prepared_all(self, record: StreamRecord, places: TurnPlaces) -> list[Ready]:
        """Every call of the response. All of them are placed: positions count also those that are
        not run."""
        ended = record.terminal is Terminal.SUCCESS
        return [self._prepared_of(call, places, ended=ended) for call in record.calls]

    def _prepared_of(self, call: CallRecord, places: TurnPlaces, *, ended: bool) -> Ready:
        text = call.raw if call.arguments is None else call.arguments
        at = places.place(call.name or "", text, call.call_id)
        if call.dispatchable:
            return self.prepared(call.name, text, at)
        if not ended:
            return None
        # The message stands in the conversation, so each of its calls needs an answer.
        return refused(f"The call was not received whole ({call.why_not}). It was not run.")


def _batches(ready: Sequence[Ready]) -> Iterator[list[Asked]]:
    """What is to be claimed, in as few requests as possible."""
    asked = [one.asked for one in ready if isinstance(one, Prepared) and one.asked is not None]
    for first in range(0, len(asked), CLAIMS_PER_BATCH_MAX):
        yield asked[first : first + CLAIMS_PER_BATCH_MAX]


def _pairs(ready: Sequence[Ready], begun: Sequence[Call | Effect]) -> list[tuple[Ready, Begun]]:
    """Each call with the ledger's answer to it, where it was asked."""
    rest = iter(begun)
    return [
        (one, next(rest) if isinstance(one, Prepared) and one.asked is not None else None)
        for one in ready
    ]


def may_still_run(begun: Begun) -> Effect | None:
    """The effect of a call whose turn came too late, because those before it took so long."""
    if isinstance(begun, Call):
        try:
            begun.check_grant()
        except SendTooLate as late:
            return begun.fail(late)
    return None


def could_not_read(name: str, error: Exception) -> Effect:
    """The effect of a tool that changes nothing and failed. Its error is for the agent's log: what
    it says was not written for a model."""
    told = {
        "status": "failed",
        "detail": f"{name} failed ({type(error).__name__}). It changes nothing.",
        "next_step": "It may be called again.",
    }
    return Effect(status="failed", for_model=told, error=error)


def _give_back(begun: Iterable[Begun]) -> None:
    """Ends what was granted and will not be run."""
    for call in begun:
        if isinstance(call, Call):
            call.fail(NotSent("The agent stopped before this call was run. Nothing was sent."))


class Toolbox(Tools[Tool, Ledger]):
    """The tools of an agent and its ledger, with the status tool, called `status`. With `events`
    the ledger is also told how each response was received. See `Tools`."""

    def __init__(
        self,
        ledger: Ledger,
        *tools: Tool,
        status: str = STATUS_TOOL,
        events: Events | None = None,
    ) -> None:
        super().__init__(ledger, [*tools, StatusTool(ledger, status)], events)

    def tell_records(self) -> None:
        """Tells the ledger of the responses that were kept."""
        if self.events is not None:
            self.events.send()

    def run_calls(self, record: StreamRecord, turn: TurnPlaces) -> list[Ran]:
        """Runs the calls of a response that may be run, one after the other, and says what each
        came to, in the order of the response. `turn` is `ledger.turn(...)` of this response.

        Raises `TokenRefused`, `ScopeMissing` or `NoIdentity`, which the agent's author has to
        correct; nothing ran then.
        """
        ready = self.prepared_all(record, turn)
        begun: list[Call | Effect] = []
        try:
            for asked in _batches(ready):
                begun += self.ledger.begin_all(asked)
        except BaseException:
            _give_back(begun)
            raise
        effects = self._carried_out(_pairs(ready, begun))
        calls = zip(record.calls, effects, strict=True)
        return [Ran(call=call, effect=effect) for call, effect in calls]

    def run_one(self, prepared: Prepared, begun: Begun) -> Effect:
        """Carries out one call after the ledger's answer to it."""
        late = may_still_run(begun)
        if late is not None or prepared.asked is not None:
            return late or prepared.finish(begun)
        try:
            return prepared.finish(None)
        except Exception as error:  # noqa: BLE001 - whatever a read meets, it changed nothing
            return could_not_read(prepared.tool.name, error)

    def _carried_out(self, pairs: list[tuple[Ready, Begun]]) -> list[Effect | None]:
        effects: list[Effect | None] = []
        try:
            for prepared, begun in pairs:
                effects.append(
                    self.run_one(prepared, begun) if isinstance(prepared, Prepared) else prepared
                )
        except BaseException:
            _give_back(begun for _, begun in pairs[len(effects) + 1 :])
            raise
        return effects


class AsyncToolbox(Tools[AsyncTool, AsyncLedger]):
    """`Toolbox`, awaited: the calls of a response run beside each other."""

    def __init__(
        self,
        ledger: AsyncLedger,
        *tools: AsyncTool,
        status: str = STATUS_TOOL,
        events: Events | None = None,
    ) -> None:
        super().__init__(ledger, [*tools, AsyncStatusTool(ledger, status)], events)

    async def tell_records(self) -> None:
        """See `Toolbox.tell_records`."""
        if self.events is not None:
            await self.ledger.in_thread(self.events.send)

    async def run_calls(self, record: StreamRecord, turn: TurnPlaces) -> list[Ran]:
        """See `Toolbox.run_calls`. Cancelled, it reports what runs as unknown and what has not
        begun as not sent."""
        ready = self.prepared_all(record, turn)
        begun: list[Call | Effect] = []
        waiting: dict[int, Begun] = {}
        try:
            for asked in _batches(ready):
                begun += await self.ledger.begin_all(asked)
                waiting = dict(enumerate(begun))
            waiting = {place: call for place, (_, call) in enumerate(_pairs(ready, begun))}
            effects = await asyncio.gather(
                *(self._carried_out(place, one, waiting) for place, one in enumerate(ready))
            )
        except BaseException:
            await self.ledger.report(partial(_give_back, waiting.values()))
            raise
        calls = zip(record.calls, effects, strict=True)
        return [Ran(call=call, effect=effect) for call, effect in calls]

    async def _carried_out(
        self, place: int, prepared: Ready, waiting: dict[int, Begun]
    ) -> Effect | None:
        begun = waiting.pop(place)
        return await self.run_one(prepared, begun) if isinstance(prepared, Prepared) else prepared

    async def run_one(self, prepared: Prepared, begun: Begun) -> Effect:
        """See `Toolbox.run_one`."""
        if prepared.asked is not None:
            return await prepared.finish_async(begun)
        try:
            return await prepared.finish_async(None)
        except Exception as error:  # noqa: BLE001 - whatever a read meets, it changed nothing
            return could_not_read(prepared.tool.name, error)
