"""The named cells of the chaos matrix: which process, which fault, at which moment, what must come.

A test is a cell by its mark. The whole table is printed after every run that met one.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

PROCESSES: Final = frozenset(
    {"api", "worker", "beat", "PostgreSQL", "Valkey", "agent", "provider", "line", "all"}
)
MOMENTS: Final = frozenset(
    {
        "before claim",
        "claim executed, answer not read",
        "granted, before send",
        "sent, before answer",
        "answered, before settle",
        "settle executed, answer not read",
        "during decide",
        "during look-up",
        "look-up due",
        "load",
    }
)
PROPERTY: Final = "chaos cell"


def cell(process: str, fault: str, moment: str, expected: str) -> pytest.MarkDecorator:
    """Name the cell that a test is, in the matrix's own words."""
    assert process in PROCESSES, process
    assert moment in MOMENTS, moment
    return pytest.mark.cell(process, fault, moment, expected)


def note(item: pytest.Item) -> None:
    """Let the cell travel with the test's report, also from another process."""
    for mark in item.iter_markers("cell"):
        item.user_properties.append((PROPERTY, list(mark.args)))


def show(terminal: Any) -> None:
    """Print every cell that was run, one a line, with what came of it."""
    rows: dict[str, tuple[str, ...]] = {}
    for outcome, reports in terminal.stats.items():
        for report in reports:
            properties = getattr(report, "user_properties", ())
            of = [value for name, value in properties if name == PROPERTY]
            # A test may fail after it has passed: then the record was not sound.
            if of and (report.when == "call" or outcome == "error"):
                rows[report.nodeid] = (*of[0], outcome, f"{report.duration:.1f} s")
    if not rows:
        return
    terminal.section(f"chaos matrix: {len(rows)} cells")
    widths = [max(map(len, column)) for column in zip(*rows.values(), strict=True)]
    for row in sorted(rows.values()):
        words = (word.ljust(width) for word, width in zip(row, widths, strict=True))
        terminal.write_line("  ".join(words).rstrip())
