"""Rounds in which the sides take turns, so that what slows the machine slows all of them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from tests.bench.clients import rate
from tests.bench.sides import Side

KNOWN_KEY = "known"
"""The key whose effect has happened before the rounds begin."""


class Runner(Protocol):
    """Somebody who can be measured: in this process or in another one."""

    @property
    def name(self) -> str: ...

    def rate(self, what: str, tag: str, *, clients: int, seconds: float) -> float:
        """Operations a second of `what` ("fresh" or "again"); `tag` makes its keys new."""
        ...


@dataclass(frozen=True, slots=True)
class Threads:
    """A side whose clients are threads of this process."""

    side: Side

    @property
    def name(self) -> str:
        return self.side.name

    def rate(self, what: str, tag: str, *, clients: int, seconds: float) -> float:
        work = self.side.fresh if what == "fresh" else self.side.again
        return rate(
            lambda key: work(KNOWN_KEY if what == "again" else f"{tag}-{key}"),
            self.side.end_thread,
            clients=clients,
            seconds=seconds,
        )


def compare(
    runners: Sequence[Runner], what: str, *, clients: int, seconds: float, rounds: int
) -> dict[str, float]:
    """The median rate of each side over rounds in which they take turns, each time in another
    order."""
    rates: dict[str, list[float]] = {runner.name: [] for runner in runners}
    for number in range(rounds):
        turn = number % len(runners)
        for runner in [*runners[turn:], *runners[:turn]]:
            tag = f"{what}{clients}r{number}t{time.time_ns()}"
            measured = runner.rate(what, tag, clients=clients, seconds=seconds)
            rates[runner.name].append(measured)
    return {name: median(measured) for name, measured in rates.items()}
