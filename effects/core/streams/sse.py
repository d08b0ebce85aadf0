"""Server-sent events from bytes, as the WHATWG HTML standard frames them (section 9.2).

Lines end in LF, CR or CRLF, mixed as a server likes; nothing else ends a line, in particular not
the separators of Unicode, which may stand inside a JSON string. How the bytes were cut into chunks
never changes what is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

EVENT_BYTES_MAX: Final = 16 * 1024 * 1024
"""Most bytes of one event that are kept; the rest of a longer one is read and dropped."""

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """One event. `damaged`: it is not whole UTF-8, or was longer than the limit. `unfinished`: the
    stream ended before the blank line that would have completed it."""

    name: str
    data: str
    id: str | None = None
    damaged: bool = False
    unfinished: bool = False


class SseDecoder:
    """Bytes in, events out, however they are cut."""

    def __init__(self) -> None:
        self._line: list[bytes] = []
        self._after_return = False
        self._first_line = True
        self._name = ""
        self._data: list[str] = []
        self._id: str | None = None
        self._damaged = False
        self._size_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """The events that this chunk completes."""
        if self._after_return and chunk:
            # The line ended with the CR before; its LF is not another, empty line.
            chunk = chunk.removeprefix(b"\n")
            self._after_return = False
        at = 0
        for end in _LINE_END.finditer(chunk):
            self._keep(chunk[at : end.start()])
            at = end.end()
            event = self._end_line()
            if event is not None:
                yield event
        self._after_return = chunk.endswith(b"\r")
        self._keep(chunk[at:])

    def close(self) -> SseEvent | None:
        """What stood in the stream without a blank line after it, or None.

        The standard drops such an event. Whoever reads on must know that it may be cut short.
        """
        if self._line:
            self._end_line()
        return self._take(unfinished=True)

    def _keep(self, piece: bytes) -> None:
        self._size_bytes += len(piece)
        if self._size_bytes > EVENT_BYTES_MAX:
            self._damaged = True
        elif piece:
            self._line.append(piece)

    def _end_line(self) -> SseEvent | None:
        raw = b"".join(self._line)
        self._line.clear()
        if self._first_line:
            raw = raw.removeprefix(_BYTE_ORDER_MARK)
            self._first_line = False
        if not raw:
            return self._take(unfinished=False)
        if raw.startswith(b":"):
            return None
        try:
            line = raw.decode()
        except UnicodeDecodeError:
            line = raw.decode(errors="surrogateescape")
            self._damaged = True
        field, _, value = line.partition(":")
        self._read_field(field, value.removeprefix(" "))
        return None

    def _read_field(self, field: str, value: str) -> None:
        match field:
            case "data":
                self._data.append(value)
            case "event":
                self._name = value
            case "id" if "\0" not in value:
                self._id = value
            case _:
                pass  # The standard: a field that is not known is ignored.

    def _take(self, *, unfinished: bool) -> SseEvent | None:
        event = None
        if self._data:
            event = SseEvent(
                name=self._name,
                data="\n".join(self._data),
                id=self._id,
                damaged=self._damaged,
                unfinished=unfinished,
            )
        self._name, self._data, self._damaged, self._size_bytes = "", [], False, 0
        return event
