"""One foreground process that owns the whole stack.

It starts programs in order, prefixes what they print with their name, restarts what crashes with a
growing delay, and stops everything in reverse order when it is asked to.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from types import FrameType
from typing import IO, Self, cast

from effects.local.processes import (
    LEASH_GRACE_SECONDS,
    READY_POLL_SECONDS,
    NotStarted,
    Program,
    spawn,
)

RESTART_SECONDS_FIRST = 0.5
RESTART_SECONDS_MAX = 30.0
# A program that ran this long had started well: its next crash is a first crash again.
HEALTHY_AFTER_SECONDS = 60.0
# With the pauses between them these take a minute and a half. What dies so often does not mend by
# itself, and a stack that stands there without it would only look alive.
DEATHS_IN_A_ROW_MAX = 8
WATCH_SECONDS = 0.5
LINE_BYTES_MAX = 16_384
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class GaveUp(Exception):
    """A program ended so often in a row that starting it again helps nobody."""


class Stopped(Exception):
    """Somebody asked us to stop while the stack was still starting."""


@dataclass(slots=True, kw_only=True)
class _Child:
    program: Program
    process: subprocess.Popen[bytes]
    started_at: float
    crashes: int = 0
    restart_at: float | None = None
    unfinished: bytes = b""
    # Where lines go instead of the screen, if somebody wants them.
    kept_lines: list[str] | None = None


def restart_delay_seconds(crashes: int) -> float:
    """Return how long to wait after the given number of crashes in a row (1 is the first)."""
    return min(RESTART_SECONDS_MAX, RESTART_SECONDS_FIRST * 2.0 ** (crashes - 1))


class Supervisor:
    """Use as a context: leaving it, for whatever reason, stops everything that it started."""

    def __init__(self, *, say: Callable[[str, str], None]) -> None:
        self._say = say
        # Programs that started side by side are stopped side by side.
        self._groups: list[list[_Child]] = []
        self._selector = selectors.DefaultSelector()
        self._stop_requests = 0

    def __enter__(self) -> Self:
        for number in STOP_SIGNALS:
            signal.signal(number, self._on_signal)
        self._wake_fd, waking_fd = os.pipe()
        for fd in (self._wake_fd, waking_fd):
            os.set_blocking(fd, False)
        # A signal becomes a byte that ends a wait at once.
        signal.set_wakeup_fd(waking_fd, warn_on_full_buffer=False)
        self._selector.register(self._wake_fd, selectors.EVENT_READ)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop_everything()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stop_requests += 1

    # -- Starting

    def start(self, programs: Sequence[Program]) -> None:
        """Start programs side by side and wait until all are ready.

        Raises `NotStarted` if one ends or takes too long, `Stopped` if we are asked to stop.
        """
        fresh = [self._spawn(program) for program in programs]
        self._groups.append(fresh)
        waiting = list(fresh)
        while waiting:
            self._pump(READY_POLL_SECONDS)
            waiting = [child for child in waiting if not self._is_up(child)]

    def run_once(self, program: Program, *, seconds_max: float) -> list[str]:
        """Run a program that ends by itself and return the lines that it printed.

        Raises `NotStarted` if it fails or takes longer than `seconds_max`, and shows the lines.
        """
        child = self._spawn(program)
        lines: list[str] = []
        child.kept_lines = lines
        self._groups.append([child])
        try:
            self._wait_for_end(child, seconds_max=seconds_max)
        except NotStarted:
            for line in lines:
                self._say(program.name, line)
            raise
        self._groups.pop()
        _cut_lifeline(child.process)
        return lines

    def _wait_for_end(self, child: _Child, *, seconds_max: float) -> None:
        while child.process.poll() is None:
            self._pump(READY_POLL_SECONDS)
            if time.monotonic() > child.started_at + seconds_max:
                raise NotStarted(f"{child.program.name} took longer than {seconds_max:.0f} s")
        self._drain(child)
        if child.process.returncode != 0:
            code = child.process.returncode
            raise NotStarted(f"{child.program.name} failed with {code}, as it says above")

    def _is_up(self, child: _Child) -> bool:
        program = child.program
        if child.process.poll() is not None:
            self._drain(child)
            code = child.process.returncode
            where = f"see {program.log}" if program.log else "as it says above"
            raise NotStarted(f"{program.name} ended with {code} while starting, {where}")
        if program.ready is None or program.ready():
            return True
        if time.monotonic() > child.started_at + program.ready_seconds:
            raise NotStarted(f"{program.name} was not ready after {program.ready_seconds:.0f} s")
        return False

    def _spawn(self, program: Program) -> _Child:
        process = spawn(program, stdout=subprocess.PIPE)
        child = _Child(program=program, process=process, started_at=time.monotonic())
        self._listen(child)
        return child

    def _listen(self, child: _Child) -> None:
        output = _output(child)
        os.set_blocking(output.fileno(), False)
        self._selector.register(output, selectors.EVENT_READ, child)

    # -- Running

    def run(self) -> None:
        """Watch until we are asked to stop; restart what crashes.

        Raises `GaveUp` for a program that ends again and again before it ran for a minute.
        """
        while not self._stop_requests:
            self._pump_quietly(WATCH_SECONDS)
            for child in chain.from_iterable(self._groups):
                self._keep_alive(child, time.monotonic())

    def _keep_alive(self, child: _Child, now: float) -> None:
        if child.restart_at is not None:
            if now >= child.restart_at:
                child.restart_at, child.started_at = None, now
                child.process = spawn(child.program, stdout=subprocess.PIPE)
                self._listen(child)
                self._say("counterfoil", f"{child.program.name} started again")
        elif child.process.poll() is not None:
            ran_seconds = now - child.started_at
            child.crashes = 1 if ran_seconds > HEALTHY_AFTER_SECONDS else child.crashes + 1
            _cut_lifeline(child.process)
            name, code = child.program.name, child.process.returncode
            if child.crashes >= DEATHS_IN_A_ROW_MAX:
                self._drain(child)
                where = f"see {child.program.log}" if child.program.log else "it says why above"
                raise GaveUp(
                    f"{name} ended with {code}, {child.crashes} times in a row and never after more"
                    f" than {HEALTHY_AFTER_SECONDS:.0f} s; {where}. Everything is stopped: mend it,"
                    " then start again."
                )
            delay = restart_delay_seconds(child.crashes)
            child.restart_at = now + delay
            self._say("counterfoil", f"{name} ended with {code}; again in {delay:g} s")

    # -- Output

    def _pump(self, seconds: float) -> None:
        self._pump_quietly(seconds)
        if self._stop_requests:
            raise Stopped

    def _pump_quietly(self, seconds: float) -> None:
        for key, _ in self._selector.select(seconds):
            if isinstance(key.data, _Child):
                self._read(key.data, cast("IO[bytes]", key.fileobj))
            else:
                os.read(self._wake_fd, 4096)

    def _read(self, child: _Child, output: IO[bytes]) -> bool:
        """Show the whole lines that arrived; say whether there may be more."""
        try:
            data = os.read(output.fileno(), 65_536)
        except BlockingIOError:
            return False
        *lines, child.unfinished = (child.unfinished + data).split(b"\n")
        if child.unfinished and (not data or len(child.unfinished) > LINE_BYTES_MAX):
            lines, child.unfinished = [*lines, child.unfinished], b""
        for line in lines:
            self._show(child, line.decode(errors="replace").rstrip())
        if not data:
            self._selector.unregister(output)
            output.close()
        return bool(data)

    def _show(self, child: _Child, line: str) -> None:
        if child.kept_lines is not None:
            child.kept_lines.append(line)
        elif child.program.log is not None:
            with child.program.log.open("a", encoding="utf-8") as log:
                log.write(line + "\n")
        elif line:
            self._say(child.program.name, line)

    def _drain(self, child: _Child) -> None:
        """Show what a program that has ended still had to say."""
        output = _output(child)
        while not output.closed and self._read(child, output):
            pass

    # -- Stopping

    def _stop_everything(self) -> None:
        for group in reversed(self._groups):
            running = [child for child in group if child.process.poll() is None]
            self._stop_group(running)
            for child in group:
                self._drain(child)
                _cut_lifeline(child.process)

    def _stop_group(self, running: list[_Child]) -> None:
        asked_at = time.monotonic()
        impatient_from = self._stop_requests + 1
        for child in running:
            child.process.terminate()
        while running:
            self._pump_quietly(READY_POLL_SECONDS)
            seconds = time.monotonic() - asked_at
            for child in running:
                if self._stop_requests >= impatient_from:
                    child.process.terminate()  # Asked twice, the leash kills at once.
                if seconds > child.program.stop_seconds + LEASH_GRACE_SECONDS:
                    child.process.kill()
            impatient_from = max(impatient_from, self._stop_requests + 1)
            for child in [child for child in running if child.process.poll() is not None]:
                running.remove(child)
                self._say("counterfoil", f"{child.program.name} stopped in {seconds:.1f} s")


def _output(child: _Child) -> IO[bytes]:
    assert child.process.stdout is not None
    return child.process.stdout


def _cut_lifeline(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
