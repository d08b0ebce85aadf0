"""OpenAI's Chat Completions stream, and the habits of servers that speak it almost.

A call has no end of its own: it has ended when its choice's `finish_reason` came. The next index
proves nothing, because fragments of several calls may interleave. The message ended well when a
finish reason and `[DONE]` came. (Fields: `chat_completion_chunk.py` of the `openai` package.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from effects.core.streams.assembly import Assembly, OpenCall, text_or_none
from effects.core.streams.record import StreamFlag
from effects.core.vocabulary import Terminal

DONE: Final = "[DONE]"
LIMITS: Final = frozenset({"length", "content_filter"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """A piece of one call. `index` is the server's number of the call in its choice, if any."""

    choice: int
    index: int | str | None
    call_id: str | None
    name: str | None
    text: str


class OpenAIChatReader:
    """Reads the chunks of one completion into an assembly."""

    def __init__(self, assembly: Assembly, *, sees_done: bool) -> None:
        self._seen = assembly
        self._sees_done = sees_done
        self._reasons: dict[int, str] = {}
        self._choices: set[int] = set()
        self._calls: dict[int, list[OpenCall]] = {}

    def read(self, _name: str, said: dict[str, Any], exact: Callable[..., str]) -> None:
        """One chunk. `exact` gives the text of a value inside it with every digit."""
        if said.get("error"):
            self._seen.fail(said["error"], request_id=said.get("request_id"))
            return
        self._seen.response_id = text_or_none(said.get("id")) or self._seen.response_id
        self._seen.model = text_or_none(said.get("model")) or self._seen.model
        if isinstance(said.get("usage"), dict):
            self._seen.usage |= said["usage"]
        for place, choice in _objects(said.get("choices")):
            index = choice.get("index")
            index = index if isinstance(index, int) else 0
            self._choices.add(index)
            for fragment in _fragments(index, ("choices", place), choice, exact):
                self._take(fragment)
            reason = text_or_none(choice.get("finish_reason"))
            if reason is not None:
                self._finish(index, reason)

    def done(self) -> None:
        """The marker `[DONE]`, or as much of an end as can be seen without it."""
        limits = [reason for reason in self._reasons.values() if reason in LIMITS]
        if limits:
            self._seen.finish(Terminal.INCOMPLETE, limits[0])
        elif not self._reasons:
            self._seen.violate("done_without_finish_reason")
        elif self._choices <= self._reasons.keys():
            self._seen.finish(Terminal.SUCCESS, next(iter(self._reasons.values())))

    def close(self) -> None:
        """The stream is over. The SDK hides `[DONE]`, so its users have the finish reason alone."""
        if not self._sees_done:
            self._seen.unseen.append("done_marker")
        limited = any(reason in LIMITS for reason in self._reasons.values())
        if self._reasons and (limited or not self._sees_done):
            self.done()

    def _finish(self, choice: int, reason: str) -> None:
        self._reasons.setdefault(choice, reason)
        if reason not in LIMITS:
            for call in self._calls.get(choice, []):
                self._seen.end(call)

    def _take(self, fragment: Fragment) -> None:
        if fragment.choice in self._reasons:
            self._seen.violate(f"delta_after_stop:{fragment.index}")
            self._seen.orphan(fragment.text)
            return
        call = self._known(fragment)
        if call is None and fragment.name is None and fragment.call_id is None:
            self._seen.violate(f"delta_without_start:{fragment.index}")
            self._seen.orphan(fragment.text)
            return
        if call is None or _is_another(call, fragment):
            key = (
                fragment.choice,
                fragment.index,
                None if fragment.index is not None else object(),
            )
            call = self._seen.begin(key, fragment.call_id, fragment.name)
            if call is None:
                return
            self._calls.setdefault(fragment.choice, []).append(call)
        if fragment.call_id is not None and call.call_id not in {None, fragment.call_id}:
            call.flags.add(StreamFlag.ID_CHANGED)
        # The first id and the first name win; what follows is empty, or repeats them.
        call.call_id = call.call_id or fragment.call_id
        call.name = call.name or fragment.name
        call.add(fragment.text)

    def _known(self, fragment: Fragment) -> OpenCall | None:
        """The call that the fragment goes on with. Without an index it is the one with its id, or
        the latest where it brings none."""
        if fragment.index is not None:
            return self._seen.by_key.get((fragment.choice, fragment.index, None))
        calls = self._calls.get(fragment.choice, [])
        if fragment.call_id is None:
            return calls[-1] if calls else None
        return next((call for call in calls if call.call_id == fragment.call_id), None)


def _is_another(call: OpenCall, fragment: Fragment) -> bool:
    """Some servers number every parallel call 0: a new id with a name is a new call. A new id alone
    is only a server that makes up one for every chunk."""
    changed = fragment.call_id is not None and call.call_id not in {None, fragment.call_id}
    return changed and fragment.name is not None


def _fragments(
    index: int, at: tuple[str, int], choice: dict[str, Any], exact: Callable[..., str]
) -> Iterator[Fragment]:
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return
    pieces: list[tuple[tuple[str | int, ...], dict[str, Any]]] = [
        (("tool_calls", place, "function"), piece)
        for place, piece in _objects(delta.get("tool_calls"))
    ]
    if isinstance(delta.get("function_call"), dict):
        # The form before parallel calls: one call, without an id.
        older = {"index": "function_call", "function": delta["function_call"]}
        pieces.append((("function_call",), older))
    for path, piece in pieces:
        function = piece.get("function")
        function = function if isinstance(function, dict) else {}
        said, number = function.get("arguments"), piece.get("index")
        text = exact(*at, "delta", *path, "arguments") if isinstance(said, dict) else said
        yield Fragment(
            choice=index,
            index=number if isinstance(number, (int, str)) else None,
            call_id=text_or_none(piece.get("id")),
            name=text_or_none(function.get("name")),
            text=text if isinstance(text, str) else "",
        )


def _objects(value: object) -> Iterator[tuple[int, dict[str, Any]]]:
    for place, item in enumerate(value if isinstance(value, list) else []):
        if isinstance(item, dict):
            yield place, item
