"""A row of the lab: what is done, what must come of it, and what came of it."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from tests.faultlab.lab import Lab, Scene

NO_LEDGER: Final = "-"
"""The way of a row that asks no ledger: it shows what happens without one, or a pure decision."""
HTTP: Final = ("http",)
BOTH: Final = ("http", "postgres")

Run = Callable[["Scene"], dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """`source` is where the row is asked for; `ways` are the client's ways to the ledger."""

    section: str
    source: str
    name: str
    expected: dict[str, Any]
    run: Run
    ways: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    section: str
    source: str
    name: str
    way: str
    expected: dict[str, Any]
    got: dict[str, Any]
    green: bool
    seconds: float
    trace: str = field(default="", repr=False)

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


class Section:
    """Collects the rows of one part of the lab, in the order in which they are written."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self.rows: list[Row] = []

    def row(
        self, name: str, *, ways: tuple[str, ...] = HTTP, **expected: Any
    ) -> Callable[[Run], Run]:
        """The decorated function returns what came of it, by the same names as `expected`."""

        def keep(run: Run) -> Run:
            self.rows.append(
                Row(
                    section=self.name,
                    source=self.source,
                    name=name,
                    expected=expected,
                    run=run,
                    ways=ways,
                )
            )
            return run

        return keep


def carried_out(lab: Lab, rows: Sequence[Row]) -> Iterator[Result]:
    """Runs the rows one after the other, each by each of its ways."""
    for row in rows:
        for way in row.ways:
            yield carry_out(lab, row, way)


def carry_out(lab: Lab, row: Row, way: str) -> Result:
    """One row by one way. What it raises is a red row like any other, with the trace."""
    began = time.monotonic()
    trace = ""
    try:
        with lab.scene(way) as scene:
            got = row.run(scene)
    except Exception as error:  # noqa: BLE001 - the other rows are run all the same
        got, trace = {"raised": f"{type(error).__name__}: {error}"}, traceback.format_exc()
    return Result(
        section=row.section,
        source=row.source,
        name=row.name,
        way=way,
        expected=row.expected,
        got=got,
        green=got == row.expected,
        seconds=round(time.monotonic() - began, 2),
        trace=trace,
    )
