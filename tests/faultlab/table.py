"""The lab's results as lines for people."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from tests.faultlab.rows import Result

NAME_WIDTH = 58
_printed: list[str] = []


def printed(result: Result) -> str:
    """A line for one row, under its section's heading when that is new; a red row says why."""
    heading = ""
    if not _printed or _printed[-1] != result.section:
        _printed.append(result.section)
        heading = f"\n{result.section} ({result.source})\n"
    word = "green" if result.green else "RED  "
    line = f"  {word}  {result.name:<{NAME_WIDTH}} {result.way:<9} {_facts(result.got)}\n"
    if result.green:
        return heading + line
    return heading + line + f"         expected {_facts(result.expected)}\n{result.trace}"


def summed_up(done: Sequence[Result], results: Path) -> tuple[int, str]:
    """Writes the results down; the command's exit code and its last line."""
    results.parent.mkdir(parents=True, exist_ok=True)
    results.write_text(json.dumps([result.as_json() for result in done], indent=2) + "\n")
    red = sum(not result.green for result in done)
    return (1 if red else 0), f"{len(done) - red} green, {red} red; {results}"


def _facts(said: dict[str, object]) -> str:
    return ", ".join(f"{name} {_word(value)}" for name, value in said.items())


def _word(value: object) -> str:
    if isinstance(value, list):
        return " > ".join(str(one) for one in value)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
