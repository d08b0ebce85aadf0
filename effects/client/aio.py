"""The async twin: the same client, awaited.

Everything that is decided is decided by the plain client; its requests run in threads of their own,
and only the tool itself runs in the event loop. A report survives the cancellation of the task that
makes it: the effect may have happened, and somebody has to say so.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar
from uuid import UUID

from effects.client.asking import Asked, ToolCall
from effects.client.call import Call
from effects.client.effect_result import Effect
from effects.client.ledger import Ledger, NotGranted, claim_request_of
from effects.client.results import ObjectFrom
from effects.client.spool import Delivered
from effects.client.turn import TurnCall, TurnPlaces
from effects.core.failures import Contract, ErrorRules, NotSent
from effects.core.vocabulary import EffectClass

if TYPE_CHECKING:
    from effects.core.recovery_messages import RecoveryDecision
    from effects.core.streams.record import StreamRecord

__all__ = ["AsyncCall", "AsyncLedger", "AsyncTurn"]

THREADS_MAX: Final = 32
"""Requests to the ledger that one `AsyncLedger` has under way at once; more wait their turn."""

Answered = TypeVar("Answered")


class AsyncCall:
    """A granted attempt, in an async tool. The same as `Call`; what asks the ledger is awaited."""

    def __init__(self, call: Call, ledger: AsyncLedger) -> None:
        self.plain = call
        self._ledger = ledger

    @property
    def key(self) -> str:
        return self.plain.key

    @property
    def marker(self) -> str:
        return self.plain.marker

    @property
    def marker_metadata(self) -> dict[str, str]:
        return self.plain.marker_metadata

    @property
    def claim_id(self) -> UUID:
        return self.plain.claim_id

    @property
    def fence(self) -> int:
        return self.plain.fence

    @property
    def send_seconds_left(self) -> float:
        return self.plain.send_seconds_left

    @property
    def told_to_stop(self) -> bool:
        return self.plain.told_to_stop

    @property
    def effect(self) -> Effect:
        return self.plain.effect

    def check_send(self) -> None:
        """See `Call.check_send`: directly before the request is written."""
        self.plain.check_send()

    async def sent(self, *, marker: bool | None = None) -> None:
        """See `Call.sent`."""
        await self._ledger.in_thread(lambda: self.plain.sent(marker=marker))

    async def complete(
        self, result: Any, *, provider_object: str | None = None, replayed: bool | None = None
    ) -> Effect:
        """See `Call.complete`."""
        return await self._ledger.report(
            lambda: self.plain.complete(result, provider_object=provider_object, replayed=replayed)
        )

    async def with_one_refresh(
        self, send: Callable[[], Awaitable[Answered]], refresh: Callable[[], Awaitable[object]]
    ) -> Answered:
        """See `Call.with_one_refresh`."""
        self.check_send()
        try:
            return await send()
        except Exception as error:
            if not self.plain.was_refused_unauthorised(error):
                raise
        self.plain.forget_check()
        await refresh()
        self.check_send()
        return await send()


class AsyncLedger:
    """`Ledger`, awaited. Takes the same arguments. Use it from one event loop."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        self.plain = Ledger(*arguments, **named)
        self._threads = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="counterfoil")
        self._reports: set[asyncio.Future[Any]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Waits for the reports that are under way, then closes the connections."""
        await asyncio.gather(*self._reports, return_exceptions=True)
        self._threads.shutdown(wait=False)
        self.plain.close()

    async def in_thread(self, ask: Callable[[], Answered]) -> Answered:
        return await asyncio.get_running_loop().run_in_executor(self._threads, ask)

    async def report(self, say: Callable[[], Answered]) -> Answered:
        """Runs to its end whatever happens to the task that waits for it."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, say)
        self._reports.add(future)
        future.add_done_callback(self._reports.discard)
        return await asyncio.shield(future)

    async def begin(self, asked: Asked) -> Call | Effect:
        """See `Ledger.begin`. Cancelled while it asks, it ends what it may have been granted."""
        (begun,) = await self._begun(lambda: [self.plain.begin(asked)])
        return begun

    async def begin_all(self, calls: Sequence[Asked]) -> list[Call | Effect]:
        """See `Ledger.begin_all`."""
        return await self._begun(lambda: self.plain.begin_all(calls))

    async def _begun(self, ask: Callable[[], list[Call | Effect]]) -> list[Call | Effect]:
        asking = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        try:
            return await asyncio.shield(asking)
        except asyncio.CancelledError:
            # The answer is on its way; the tool will not run, and the ledger is told so.
            ending = asyncio.ensure_future(self._end_unsent(asking))
            self._reports.add(ending)
            ending.add_done_callback(self._reports.discard)
            raise

    async def _end_unsent(self, asking: asyncio.Future[list[Call | Effect]]) -> None:
        cancelled = NotSent("The task was cancelled before the tool ran. Nothing was sent.")
        for begun in await asking:
            if isinstance(begun, Call):
                await self.report(partial(begun.fail, cancelled))

    async def status(self, claim: UUID | str) -> Effect:
        """See `Ledger.status`."""
        return await self.in_thread(lambda: self.plain.status(claim))

    async def wait(self, claim_id: UUID | str, seconds: float) -> Effect:
        """See `Ledger.wait`."""
        return await self.in_thread(lambda: self.plain.wait(claim_id, seconds))

    async def recover(
        self, stream: StreamRecord | None, error: BaseException | None = None, **more: Any
    ) -> RecoveryDecision:
        """See `Ledger.recover`."""
        return await self.in_thread(lambda: self.plain.recover(stream, error, **more))

    async def flush(self) -> Delivered:
        """See `Ledger.flush`."""
        return await self.in_thread(self.plain.flush)

    def turn(self, conversation: str, index: int, **more: Any) -> AsyncTurn:
        """See `Ledger.turn`."""
        return AsyncTurn(self, ToolCall(conversation=conversation, turn_index=index, **more))

    @asynccontextmanager
    async def attempt(
        self,
        tool: str,
        arguments: Mapping[str, Any] | str,
        at: ToolCall,
        *,
        effect_class: EffectClass = EffectClass.UNKEYED_WRITE,
        contract: ErrorRules | Contract | None = None,
        object_from: ObjectFrom | None = None,
    ) -> AsyncIterator[AsyncCall]:
        """See `Ledger.attempt`."""
        begun = await self.begin(
            Asked(
                request=claim_request_of(tool, arguments, at, effect_class),
                contract=contract,
                object_from=object_from,
                outside=sys.exception(),
                received=at.received,
            )
        )
        if isinstance(begun, Effect):
            raise NotGranted(begun)
        try:
            with self.plain.kept_alive(begun):
                yield AsyncCall(begun, self)
        except BaseException as error:
            ended = error
            await self.report(lambda: begun.fail(ended))
            raise
        if not begun.ended:
            silent = RuntimeError("The block ended without saying whether the effect happened.")
            await self.report(lambda: begun.fail(silent))


class AsyncTurn(TurnPlaces):
    """`Turn`, awaited: `run_all` runs the calls of the response beside each other."""

    def __init__(self, ledger: AsyncLedger, at: ToolCall) -> None:
        super().__init__(at)
        self._ledger = ledger

    async def run(
        self, tool: Any, arguments: str | dict[str, Any], call_id: str | None = None
    ) -> Effect:
        """See `Turn.run`."""
        call = TurnCall(tool=tool, arguments=arguments, call_id=call_id)
        told: Effect = await tool.run(self.place(tool.name, call.text, call_id), call.text)
        return told

    async def run_all(self, calls: Sequence[TurnCall]) -> list[Effect]:
        """See `Turn.run_all`."""
        prepared = self.prepare_all(calls)
        begun = await self._ledger.begin_all([one.asked for one in prepared if one.asked])
        rest = iter(begun)
        return await asyncio.gather(
            *(one.finish_async(next(rest) if one.asked else None) for one in prepared)
        )
