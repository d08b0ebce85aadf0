"""Heartbeats beside running tools: one thread for all calls of a ledger."""

from __future__ import annotations

import heapq
import itertools
import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from effects.client.clock import elapsed_clock_seconds

__all__ = ["Beating", "Pulse"]

PAUSE_SECONDS_MIN: Final = 0.2


@dataclass(slots=True, order=True)
class Beating:
    """A call that is kept alive. `beat` answers whether it goes on."""

    due_at: float
    number: int
    pause_seconds: float = field(compare=False)
    beat: Callable[[], bool] = field(compare=False)
    over: bool = field(compare=False, default=False)


class Pulse:
    """Beats for every call that was given to it, until it is told that the call is over.

    The thread starts with the first call, and is made anew in a forked child.
    """

    def __init__(self) -> None:
        self._wake = threading.Condition()
        self._due: list[Beating] = []
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None
        self._pid = 0

    def begin(self, pause_seconds: float, beat: Callable[[], bool]) -> Beating:
        """Beats from now on, with that pause before each."""
        pause_seconds = max(pause_seconds, PAUSE_SECONDS_MIN)
        beating = Beating(
            due_at=elapsed_clock_seconds() + pause_seconds,
            number=next(self._numbers),
            pause_seconds=pause_seconds,
            beat=beat,
        )
        if self._pid != os.getpid():
            # A forked child has neither its parent's thread nor its parent's calls.
            self._wake, self._due, self._thread = threading.Condition(), [], None
            self._pid = os.getpid()
        with self._wake:
            heapq.heappush(self._due, beating)
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="counterfoil-pulse", daemon=True
                )
                self._thread.start()
            self._wake.notify()
        return beating

    def end(self, beating: Beating) -> None:
        beating.over = True

    def _run(self) -> None:
        while True:
            beating = self._next()
            if beating.over or not beating.beat() or beating.over:
                continue
            beating.due_at = elapsed_clock_seconds() + beating.pause_seconds
            with self._wake:
                heapq.heappush(self._due, beating)

    def _next(self) -> Beating:
        with self._wake:
            while True:
                while self._due and self._due[0].over:
                    heapq.heappop(self._due)
                if not self._due:
                    self._wake.wait()
                    continue
                left_seconds = self._due[0].due_at - elapsed_clock_seconds()
                if left_seconds <= 0:
                    return heapq.heappop(self._due)
                self._wake.wait(left_seconds)
