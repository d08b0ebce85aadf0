"""The calls of one model response: their places are counted here, so that nobody has to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from effects.client.asking import ToolCall
from effects.client.effect_result import Effect
from effects.client.results import arguments_text
from effects.core.canonical import canonical_text, parse_arguments
from effects.core.exact_json import Refused

if TYPE_CHECKING:
    from effects.client.decorate import AsyncTool, Prepared, Tool
    from effects.client.ledger import Ledger

__all__ = ["Turn", "TurnCall", "TurnPlaces"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnCall:
    """One call of a response: a decorated tool, the model's arguments as it wrote them (JSON text)
    or as a mapping, and the provider's id of the call."""

    tool: Tool | AsyncTool
    arguments: str | dict[str, Any]
    call_id: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.arguments, str):
            return self.arguments
        return arguments_text(self.arguments)


class TurnPlaces:
    """Counts the places of a response's calls. `at` holds what every call of the turn shares."""

    def __init__(self, at: ToolCall) -> None:
        self._at = at
        self._position = 0
        self._seen: Counter[tuple[str, str]] = Counter()

    def place(self, tool: str, arguments: str, call_id: str | None = None) -> ToolCall:
        """Which call of the model the next one is. Every call of the response is placed, also one
        that is only a read: positions count them all."""
        same = (tool, _comparable(arguments))
        at = replace(self._at, position=self._position, ordinal=self._seen[same], call_id=call_id)
        self._position += 1
        self._seen[same] += 1
        return at

    def prepare_all(self, calls: Sequence[TurnCall]) -> list[Prepared]:
        """The calls, placed and checked, and not asked for yet."""
        placed = [(call, self.place(call.tool.name, call.text, call.call_id)) for call in calls]
        return [call.tool.prepare(at, call.text) for call, at in placed]


class Turn(TurnPlaces):
    """One turn of a conversation. Give it the calls in the order in which the response has them.

    A turn that is asked for again is a new `Turn` with the same conversation and index; its calls
    get the same places, and so are recognised.
    """

    def __init__(self, ledger: Ledger, at: ToolCall) -> None:
        super().__init__(at)
        self._ledger = ledger

    def run(
        self, tool: Tool, arguments: str | dict[str, Any], call_id: str | None = None
    ) -> Effect:
        """Runs the next call of the response. See `Tool.run`."""
        call = TurnCall(tool=tool, arguments=arguments, call_id=call_id)
        return tool.run(self.place(tool.name, call.text, call_id), call.text)

    def run_all(self, calls: Sequence[TurnCall], *, threads: int = 1) -> list[Effect]:
        """Runs the parallel calls of the response: claims them in one request, then runs those that
        may run, in order, or in `threads` at once. Answers in the order of the calls.

        Raises, before anything is asked: `ArgumentsRefused` and TypeError as `Tool.run` does.
        """
        prepared = self.prepare_all(calls)
        begun = self._ledger.begin_all([one.asked for one in prepared if one.asked is not None])
        rest = iter(begun)
        ready = [(one, next(rest) if one.asked is not None else None) for one in prepared]
        if threads <= 1:
            return [one.finish(call) for one, call in ready]
        with ThreadPoolExecutor(max_workers=threads) as pool:
            return list(pool.map(lambda pair: pair[0].finish(pair[1]), ready))


def _comparable(arguments: str) -> str:
    try:
        return canonical_text(parse_arguments(arguments))
    except Refused:
        return arguments
