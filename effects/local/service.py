"""One program that may be killed, frozen and started again: crash tests and storms stand on it."""

import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

from effects.local.processes import Program, spawn, stop, wait_until_ready

KILL_SECONDS_MAX = 20


class Service:
    """A program on its leash. `start` waits until it is ready; what it prints goes to `log`."""

    def __init__(self, program: Program, log: Path) -> None:
        self.program = program
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def runs(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, again if it has ended. Raises `NotStarted` if it does not become ready."""
        self.spawn()
        assert self._process is not None
        wait_until_ready(self._process, self.program)

    def spawn(self) -> None:
        """Start it without waiting."""
        self._let_go()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as log:
            self._process = spawn(self.program, stdout=log)

    def stop(self) -> None:
        """Ask it to end, and wait. Nothing happens if it has ended already."""
        if self._process is not None:
            self.send(signal.SIGCONT)
            stop(self._process, self.program)
            self._process = None

    def kill(self) -> None:
        """End every process of it with SIGKILL, and wait until all are gone."""
        if self._process is None:
            return
        self.send(signal.SIGKILL)
        self._process.wait(KILL_SECONDS_MAX)
        self._let_go()

    def send(self, number: signal.Signals) -> None:
        """Send a signal to every process of it, the leash apart."""
        for pid in self.family():
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def send_first(self, number: signal.Signals) -> None:
        """Send a signal to the process that the leash has started."""
        for pid in self.family()[:1]:
            os.kill(pid, number)

    def family(self) -> list[int]:
        """The process ids of the program and its descendants, parents before children."""
        if self._process is None:
            return []
        found, wanted = [], [self._process.pid]
        children = _children_by_parent()
        while wanted:
            below = children.get(wanted.pop(0), [])
            found += below
            wanted += below
        return found

    def _let_go(self) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


def _children_by_parent() -> dict[int, list[int]]:
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=", "-o", "ppid="],  # noqa: S607 - every Unix has it on the path.
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    children: dict[int, list[int]] = {}
    for line in listed.splitlines():
        pid, parent = map(int, line.split())
        children.setdefault(parent, []).append(pid)
    return children
