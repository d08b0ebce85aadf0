"""What is killed in the middle of a storm, while agents and look-ups go on.

Everything here is SIGKILL to every process of a service, and a start afterwards: nothing is asked
to end, nothing is given time to write down what it was about.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from effects.local.service import Service
from reconcile.sandbox.surroundings import Surroundings

KILLED_WORKERS_MAX: Final = 20
AWAY_SECONDS: Final = 0.5
"""How long what was killed stays away before somebody starts it again."""
POLL_SECONDS: Final = 0.05


class Blow(StrEnum):
    """One thing that is killed and started again."""

    WORKER = "worker"
    BROKER = "broker"
    DATABASE = "database"


@dataclass(frozen=True, slots=True, kw_only=True)
class Havoc:
    """How much is to be killed during one storm."""

    kill_workers: int = 0
    restart_broker: bool = False
    restart_database: bool = False

    @property
    def any(self) -> bool:
        return bool(self.kill_workers or self.restart_broker or self.restart_database)

    def blows(self, seed: int) -> list[Blow]:
        """Every blow, in an order that the seed decides. Raises ValueError for too many."""
        if not 0 <= self.kill_workers <= KILLED_WORKERS_MAX:
            raise ValueError(
                f"kill from 0 to {KILLED_WORKERS_MAX} workers, not {self.kill_workers}"
            )
        blows = [Blow.WORKER] * self.kill_workers
        blows += [Blow.BROKER] * self.restart_broker
        blows += [Blow.DATABASE] * self.restart_database
        random.Random(seed).shuffle(blows)  # noqa: S311 - a story, not a secret.
        return blows


@dataclass(slots=True, kw_only=True)
class Progress:
    """How many operations have been played; the blows are spread over them evenly."""

    operations: int
    played: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def one_more(self) -> None:
        with self._lock:
            self.played += 1

    def reached(self, blow: int, blows: int) -> bool:
        """Whether it is time for the blow with this number, of so many."""
        return self.played >= self.operations * (blow + 1) // (blows + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Struck:
    """A blow that fell: after how many operations, and how long the service was gone."""

    blow: Blow
    after_operations: int
    away_seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "killed": str(self.blow),
            "after_operations": self.after_operations,
            "away_seconds": round(self.away_seconds, 2),
        }


@contextmanager
def striking(
    place: Surroundings, blows: list[Blow], progress: Progress, say: Callable[[str], None]
) -> Iterator[list[Struck]]:
    """Let the blows fall while the block runs; what fell is in the list once it has ended."""
    struck: list[Struck] = []
    over = threading.Event()
    strikes = (place, blows, progress, over, struck, say)
    thread = threading.Thread(target=_strike_all, args=strikes)
    thread.start()
    try:
        yield struck
    finally:
        over.set()
        thread.join()


def _strike_all(
    place: Surroundings,
    blows: list[Blow],
    progress: Progress,
    over: threading.Event,
    struck: list[Struck],
    say: Callable[[str], None],
) -> None:
    for number, blow in enumerate(blows):
        while not progress.reached(number, len(blows)):
            if over.wait(POLL_SECONDS):
                return
        after, began = progress.played, time.monotonic()
        _strike(_victim(place, blow, number))
        seconds = time.monotonic() - began
        struck.append(Struck(blow=blow, after_operations=after, away_seconds=seconds))
        say(f"the {blow} was killed after {after} operations, and is back after {seconds:.1f} s")


def _victim(place: Surroundings, blow: Blow, number: int) -> Service:
    victim = {
        Blow.WORKER: place.workers[number % len(place.workers)],
        Blow.BROKER: place.broker,
        Blow.DATABASE: place.database,
    }[blow]
    assert victim is not None, "a place that is to be broken has all of them"
    return victim


def _strike(service: Service) -> None:
    service.kill()
    time.sleep(AWAY_SECONDS)
    service.start()
