"""Looking at processes from outside: whose children they are, and whether they still live."""

import subprocess
import time
from collections.abc import Iterable


def descendants(pid: int) -> set[int]:
    """Return the process ids of all children of `pid`, their children, and so on."""
    table = _ask_ps("pid=,ppid=")
    found: set[int] = set()
    edge = {pid}
    while edge:
        edge = {int(child) for child, parent in table if int(parent) in edge} - found
        found |= edge
    return found


def alive(pids: Iterable[int]) -> set[int]:
    """Return those that still run. One that ended and waits to be collected does not."""
    states = {int(pid): state for pid, state in _ask_ps("pid=,stat=")}
    return {pid for pid in pids if not states.get(pid, "Z").startswith("Z")}


def still_alive_after(pids: Iterable[int], *, seconds: float) -> set[int]:
    """Wait until all have ended, at most `seconds`; return those that have not."""
    give_up_at = time.monotonic() + seconds
    left = set(pids)
    while left and time.monotonic() < give_up_at:
        left = alive(left)
        time.sleep(0.1)
    return left


def _ask_ps(columns: str) -> list[tuple[str, str]]:
    listed = subprocess.run(
        ["ps", "-A", "-o", columns.split(",", maxsplit=1)[0], "-o", columns.split(",")[1]],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    rows = (line.split() for line in listed.splitlines())
    return [(row[0], row[1]) for row in rows if len(row) >= 2]
