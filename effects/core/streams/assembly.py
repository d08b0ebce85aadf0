"""Calls put together from fragments, whatever the protocol.

A protocol's reader says what it saw: a call began, a piece of its arguments came, it ended. What is
then true of the arguments is judged once, here, when the stream is over.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from effects.core.canonical import parse_arguments
from effects.core.exact_json import Refused
from effects.core.identity import call_id_is_strong
from effects.core.streams.record import (
    ArgumentsState,
    CallRecord,
    NotDispatchable,
    StreamFlag,
    StreamRecord,
)
from effects.core.vocabulary import Terminal

CALLS_MAX: Final = 256
"""Most calls of one response; a later one is a violation and is not read."""
FRAGMENT_CHARACTERS_MAX: Final = 16 * 1024 * 1024
"""Most characters of one call's arguments that are kept. More makes them suspect."""
NOTES_MAX: Final = 100
"""Most violations, warnings and orphans that are kept of each."""

_SUSPICIOUS: Final = frozenset(
    {StreamFlag.DAMAGED, StreamFlag.ARGUMENTS_DISAGREE, StreamFlag.UNREADABLE_EVENT}
)


@dataclass(slots=True)
class OpenCall:
    """A call while its stream goes on. `whole`: its arguments also came in one piece, as the
    protocol's own last word, so a gap between fragments does not matter. `free_text`: the tool
    takes any text, not a JSON object."""

    position: int
    call_id: str | None
    name: str | None
    fragments: list[str] = field(default_factory=list)
    characters: int = 0
    ended: bool = False
    whole: bool = False
    free_text: bool = False
    flags: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        self.characters += len(text)
        if self.characters > FRAGMENT_CHARACTERS_MAX:
            self.flags.add(StreamFlag.DAMAGED)
        elif text:
            self.fragments.append(text)

    def replace(self, text: str) -> None:
        """The protocol repeats the arguments whole. They win where a fragment may be missing, and
        contradict where none is."""
        joined = self.text
        if joined and joined != text and StreamFlag.SEQUENCE_GAP not in self.flags:
            self.flags.add(StreamFlag.ARGUMENTS_DISAGREE)
        self.fragments, self.characters, self.whole = [], 0, True
        self.add(text)

    @property
    def text(self) -> str:
        return _joined(self.fragments)


@dataclass(slots=True)
class Assembly:
    """Everything that was seen of one response so far."""

    calls: list[OpenCall] = field(default_factory=list)
    by_key: dict[Hashable, OpenCall] = field(default_factory=dict)
    terminal: Terminal | None = None
    reason: str | None = None
    error_type: str | None = None
    error_message: str | None = None
    request_id: str | None = None
    response_id: str | None = None
    model: str | None = None
    usage: dict[str, Any] = field(default_factory=dict)
    cursor: int | None = None
    gaps: list[tuple[int, int]] = field(default_factory=list)
    repeated_events: int = 0
    flags: set[str] = field(default_factory=set)
    violations: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    orphans: list[str] = field(default_factory=list)
    first_byte_at: float | None = None
    last_call_end_at: float | None = None
    terminal_at: float | None = None
    at: float | None = None

    # What a protocol's reader says

    def begin(self, key: Hashable, call_id: str | None, name: str | None) -> OpenCall | None:
        """A call begins. A key that was used before belongs to the new call from here on."""
        if len(self.calls) >= CALLS_MAX:
            self.violate(f"too_many_calls:{CALLS_MAX}")
            return None
        call = OpenCall(position=len(self.calls), call_id=call_id or None, name=name or None)
        if key in self.by_key:
            call.flags.add(StreamFlag.INDEX_REUSED)
        self.calls.append(call)
        self.by_key[key] = call
        return call

    def end(self, call: OpenCall) -> None:
        call.ended = True
        self.last_call_end_at = self.at

    def finish(self, terminal: Terminal, reason: str | None = None) -> None:
        """The message ended as its protocol says. The first such word stands."""
        if self.terminal is None:
            self.terminal, self.reason, self.terminal_at = terminal, reason, self.at

    def fail(self, error: object, *, request_id: object = None) -> None:
        """The provider sent an error inside the stream, in whichever dress."""
        said = error if isinstance(error, dict) else {"message": error}
        if self.terminal is None:
            self.error_type = text_or_none(said.get("type")) or text_or_none(said.get("code"))
            self.error_message = text_or_none(said.get("message"))
            self.request_id = text_or_none(request_id) or self.request_id
        self.finish(Terminal.ERROR_EVENT, self.error_type)

    def violate(self, what: str) -> None:
        _note(self.violations, what)

    def warn(self, what: str) -> None:
        _note(self.warnings, what)

    def orphan(self, text: str) -> None:
        _note(self.orphans, text)

    def suspect_open_calls(self, flag: StreamFlag) -> None:
        """Something was lost: it may have belonged to any call that has not ended."""
        self.flags.add(flag)
        for call in self.calls:
            if not call.ended:
                call.flags.add(flag)

    # What it amounts to

    def record(self) -> StreamRecord:
        assert self.terminal is not None
        seen = Counter(call.call_id for call in self.calls if call.call_id)
        for call in self.calls:
            call.flags |= set(_id_flags(call, seen))
        flags = self.flags.union(*(call.flags for call in self.calls))
        return StreamRecord(
            terminal=self.terminal,
            calls=tuple(_judged(call, self.terminal) for call in self.calls),
            reason=self.reason,
            error_type=self.error_type,
            error_message=self.error_message,
            request_id=self.request_id,
            response_id=self.response_id,
            model=self.model,
            usage=self.usage,
            cursor=self.cursor,
            gaps=tuple(self.gaps),
            repeated_events=self.repeated_events,
            flags=tuple(sorted(flags)),
            violations=tuple(self.violations),
            warnings=tuple(self.warnings),
            unseen=tuple(self.unseen),
            orphans=tuple(self.orphans),
            first_byte_at=self.first_byte_at,
            last_call_end_at=self.last_call_end_at,
            terminal_at=self.terminal_at,
        )


def text_or_none(value: object) -> str | None:
    """What stands in a place for a text: some servers put a number or nothing there."""
    if isinstance(value, str):
        return value or None
    return None if value is None or isinstance(value, (dict, list)) else str(value)


def _id_flags(call: OpenCall, seen: Counter[str]) -> Iterator[str]:
    if call.call_id is None:
        yield StreamFlag.ID_MISSING
        return
    if seen[call.call_id] > 1:
        yield StreamFlag.DUPLICATE_CALL_ID
    if call.name is not None and not call_id_is_strong(call.call_id, call.name):
        yield StreamFlag.WEAK_CALL_ID


def _judged(call: OpenCall, terminal: Terminal) -> CallRecord:
    text = call.text
    fault = None if call.free_text else _fault(text)
    state = _state(call, text, fault)
    invalid = state is ArgumentsState.INVALID and fault is not None
    return CallRecord(
        position=call.position,
        call_id=call.call_id,
        name=call.name,
        state=state,
        raw=text,
        free_text=call.free_text,
        why_not=_why_not(call, state, terminal),
        fault_code=fault.code if invalid and fault else None,
        fault_at=fault.at if invalid and fault else None,
        flags=tuple(sorted(call.flags | ({fault.code} if invalid and fault else set()))),
    )


def _state(call: OpenCall, text: str, fault: Refused | None) -> ArgumentsState:
    missing = StreamFlag.SEQUENCE_GAP in call.flags and not call.whole
    if missing or call.flags & _SUSPICIOUS:
        return ArgumentsState.SUSPECT
    if call.ended:
        return ArgumentsState.INVALID if fault else ArgumentsState.COMPLETE
    # An empty text is `{}` only of a call that is known to have ended.
    return ArgumentsState.PARTIAL if fault or not text.strip() else ArgumentsState.UNCONFIRMED


def _why_not(call: OpenCall, state: ArgumentsState, terminal: Terminal) -> NotDispatchable | None:
    match state:
        case ArgumentsState.PARTIAL | ArgumentsState.UNCONFIRMED:
            return NotDispatchable.NOT_ENDED
        case ArgumentsState.INVALID:
            return NotDispatchable.INVALID
        case ArgumentsState.SUSPECT:
            return NotDispatchable.SUSPECT
        case ArgumentsState.COMPLETE:
            pass
    if call.name is None:
        return NotDispatchable.NO_NAME
    if terminal is Terminal.INCOMPLETE:
        return NotDispatchable.TURN_INCOMPLETE
    return NotDispatchable.TURN_CANCELLED if terminal is Terminal.CANCELLED else None


def _fault(text: str) -> Refused | None:
    try:
        parse_arguments(text)
    except Refused as fault:
        return fault
    return None


def _joined(fragments: list[str]) -> str:
    """The text of the fragments. A character outside the basic plane may have been cut between two
    of them into its surrogates, which belong together again."""
    text = "".join(fragments)
    if any("\ud800" <= character <= "\udfff" for character in text):
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


def _note(notes: list[str], what: str) -> None:
    if len(notes) < NOTES_MAX:
        notes.append(what)
