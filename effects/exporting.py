"""Lists as files: CSV for spreadsheets, and lines of JSON for programs.

CSV is RFC 4180 in UTF-8 with the mark by which spreadsheets recognise it. A text that a spreadsheet
would evaluate is written with an apostrophe in front of it, because names and notes are written by
models; numbers stay numbers. Lines of JSON hold every value exactly as it is kept.

A file is written while it is sent: rows may come from a generator that reads them in portions.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, Final, override

from asgiref.sync import sync_to_async
from django.http import StreamingHttpResponse

from effects.pages.settings import ShownTimes

ROWS_MAX: Final = 50_000
"""Most rows of one file; whoever has more narrows the list, or takes it in parts."""
CHUNK_CHARACTERS: Final = 65_536
"""About how much is handed to the server at once."""
MARK: Final = "\N{BOM}"
EVALUATED: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 - as spreadsheets in Japanese read them.
"""What a cell begins with that spreadsheets evaluate (OWASP, CSV injection)."""
DROPPED: Final = ("\t", "\r", "\n")
"""What some spreadsheets leave out before they look for the above."""


class Kind(StrEnum):
    """What a column holds, which says how it is written."""

    TEXT = "text"
    NUMBER = "number"
    """An integer or a decimal, digit for digit."""
    TIME = "time"
    """An instant: in CSV in the person's zone, in JSON in UTC."""
    JSON = "json"
    """The text of a JSON value, as it was received: in JSON the value itself, in CSV a text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column[Row]:
    """One column: `name` is its member in JSON, `title` its heading in CSV.

    `read` takes the value out of a row; without it the row's member or attribute `name` is taken.
    None is an empty cell, and null in JSON. Raises TypeError where a value is not of the `kind`.
    """

    name: str
    title: str = ""
    kind: Kind = Kind.TEXT
    read: Callable[[Row], object] | None = None

    def value(self, row: Row) -> object:
        if self.read is not None:
            return self.read(row)
        return row[self.name] if isinstance(row, Mapping) else getattr(row, self.name)

    def heading(self, times: ShownTimes) -> str:
        """The title; over times with the zone that they are in."""
        title = self.title or self.name
        return f"{title} ({times.exact_zone})" if self.kind is Kind.TIME else title


def csv_response[Row](
    filename: str, columns: Sequence[Column[Row]], rows: Iterable[Row], *, times: ShownTimes
) -> StreamingHttpResponse:
    """The rows as a CSV file that the browser saves as `filename`."""
    return _Download(
        filename, csv_lines(columns, rows, times=times), content_type="text/csv; charset=utf-8"
    )


def json_lines_response[Row](
    filename: str, columns: Sequence[Column[Row]], rows: Iterable[Row]
) -> StreamingHttpResponse:
    """The rows as lines of JSON, one object for each."""
    return _Download(filename, json_lines(columns, rows), content_type="application/x-ndjson")


def csv_lines[Row](
    columns: Sequence[Column[Row]], rows: Iterable[Row], *, times: ShownTimes
) -> Iterator[str]:
    """The mark, the headings and the rows, each as one line (a cell may hold line breaks)."""
    yield MARK + _csv_line([neutral(column.heading(times)) for column in columns])
    for row in rows:
        yield _csv_line([_cell(column, column.value(row), times) for column in columns])


def json_lines[Row](columns: Sequence[Column[Row]], rows: Iterable[Row]) -> Iterator[str]:
    """Each row as a JSON object on one line, with the columns' names in their order."""
    for row in rows:
        members = (
            f"{json.dumps(column.name)}:{_json_value(column, column.value(row))}"
            for column in columns
        )
        yield f"{{{','.join(members)}}}\n"


def neutral(text: str) -> str:
    """The text as a cell that stays a text."""
    evaluated = text.startswith(DROPPED) or text.lstrip().startswith(EVALUATED)
    return f"'{text}" if evaluated else text


def _csv_line(cells: Iterable[str]) -> str:
    written = io.StringIO()
    csv.writer(written, lineterminator="\r\n").writerow(cells)
    return written.getvalue()


def _cell(column: Column[Any], value: object, times: ShownTimes) -> str:
    if value is None:
        return ""
    if column.kind is Kind.NUMBER:
        return _number(column, value)
    if column.kind is Kind.TIME:
        return _local(_instant(column, value), times)
    return neutral(str(value))


def _json_value(column: Column[Any], value: object) -> str:
    if value is None:
        return "null"
    if column.kind is Kind.NUMBER:
        return _number(column, value)
    if column.kind is Kind.TIME:
        return json.dumps(ShownTimes.iso_exact(_instant(column, value)))
    if column.kind is Kind.JSON and _is_json(str(value)):
        # Line breaks stand between its members only: inside a string they must be escaped.
        return re.sub(r"[\r\n]", " ", str(value))
    return json.dumps(str(value), ensure_ascii=False)


def _number(column: Column[Any], value: object) -> str:
    """The digits, without an exponent: spreadsheets would round what they read as one."""
    if isinstance(value, Decimal) and value.is_finite():
        return f"{value:f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise TypeError(f"The column {column.name} holds exact numbers, and {value!r} is none.")


def _instant(column: Column[Any], value: object) -> datetime:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value
    raise TypeError(f"The column {column.name} holds instants, and {value!r} is none.")


def _local(instant: datetime, times: ShownTimes) -> str:
    """Day and time as spreadsheets read them, in the zone that the heading names.

    In the hour that is there twice when clocks go back, the zone's short name says which it is.
    """
    local = times.local(instant)
    twice = local.utcoffset() != local.replace(fold=1 - local.fold).utcoffset()
    return f"{local:%Y-%m-%d %H:%M:%S %Z}" if twice else f"{local:%Y-%m-%d %H:%M:%S}"


def _is_json(text: str) -> bool:
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and infinities are none of JSON's.


class _Download(StreamingHttpResponse):
    """A file that is written while it is sent, whichever kind of server sends it."""

    def __init__(self, filename: str, lines: Iterable[str], *, content_type: str) -> None:
        # Before anything is sent, the first row is read: what fails then still has an error page.
        chunks = _chunks(lines)
        first = next(chunks, b"")
        headers = {
            "Content-Disposition": f'attachment; filename="{_plain(filename)}"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "no-store",
        }
        self._sent = _after(first, chunks)
        super().__init__(self._sent, content_type=content_type, headers=headers)

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        # Django would read the whole of it into memory first. One thread reads all of it, so that
        # the connection to the database is one, too.
        while chunk := await sync_to_async(self._next)():
            yield chunk

    def _next(self) -> bytes:
        return next(self._sent, b"")


def _chunks(lines: Iterable[str]) -> Iterator[bytes]:
    kept: list[str] = []
    length = 0
    for line in lines:
        kept.append(line)
        length += len(line)
        if length >= CHUNK_CHARACTERS:
            yield "".join(kept).encode()
            kept, length = [], 0
    if kept:
        yield "".join(kept).encode()


def _after(first: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    yield from chunks


def _plain(filename: str) -> str:
    """The name with nothing in it that ends the header, or leaves the folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", filename)
