"""Runs a range of seeds against the database and prints what they came to, as JSON.

    python -m tests.laws FIRST COUNT

Every history is a transaction of its own that is rolled back: nothing is left behind. The shortest
history of each bad outcome is printed whole.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import transaction

from effects.core.vocabulary import EffectClass
from effects.models import Tool, Workspace
from ledger import claiming
from tests.laws.outcomes import bad_outcomes
from tests.laws.provider import Provider
from tests.laws.simulator import History
from tests.laws.world import DifferenceError, World
from tests.support.clock import START, FrozenClock, a_clock_of_our_own


@dataclass
class Summary:
    histories: int = 0
    counted: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    shortest: dict[str, tuple[int, list[str]]] = field(default_factory=dict)

    def add(self, seed: int, bad: list[str], log: list[str]) -> None:
        self.histories += 1
        for name in bad:
            self.bad[name] += 1
            known = self.shortest.get(name)
            if known is None or len(log) < len(known[1]):
                self.shortest[name] = (seed, log)

    def as_json(self) -> dict[str, Any]:
        return {
            "histories": self.histories,
            "bad": dict(self.bad),
            "counted": dict(sorted(self.counted.items())),
            "shortest": self.shortest,
        }


def run(first: int, count: int) -> Summary:
    summary = Summary()
    with a_clock_of_our_own():
        for seed in range(first, first + count):
            with transaction.atomic():
                bad, log = one_history(seed, summary.counted)
                transaction.set_rollback(True)
            summary.add(seed, bad, log)
    return summary


def one_history(seed: int, counted: Counter[str]) -> tuple[list[str], list[str]]:
    history = a_history(seed)
    try:
        history.run()
        bad = bad_outcomes(history)
    except DifferenceError as difference:
        history.say(str(difference))
        bad = [f"the ledger and the law differ ({type(difference).__name__})"]
    counted += history.world.counted
    counted["steps"] += len(history.log)
    counted["claims"] += len(history.claims)
    counted["grants"] += sum("granted" in line for line in history.log)
    counted["effects"] += len(history.provider.effects)
    return bad, history.log


def a_history(seed: int) -> History:
    """A workspace, a tool with a contract of its own, and everything that will happen to it."""
    rng = random.Random(seed)
    keyed = rng.random() < 0.6
    window_seconds = 3600 if keyed else None
    claiming.forget_tools()
    workspace = Workspace.objects.create(name="Laws", slug=f"laws-{seed}", created_at=START)
    tool = Tool.objects.create(
        workspace=workspace,
        name="pay",
        effect_class=EffectClass.KEYED_WRITE if keyed else EffectClass.UNKEYED_WRITE,
        window_seconds=window_seconds,
        margin_seconds=90,
        lease_seconds=30,
        attempt_seconds_max=120,
        attempts_max=rng.choice((1, 2, 3)),
        release_lapse_minutes=10,
        hold_in_turn=rng.random() < 0.2,
        agent_may_repeat=rng.random() < 0.3,
        argument_rules={"business": ["order"]} if rng.random() < 0.25 else {},
    )
    window = None if window_seconds is None else timedelta(seconds=window_seconds)
    return History(
        world=World(tool=tool, clock=FrozenClock(replace=False)),
        random=rng,
        provider=Provider(window=window, random=rng),
    )


def main() -> int:
    first, count = int(sys.argv[1]), int(sys.argv[2])
    summary = run(first, count)
    print(json.dumps(summary.as_json()))
    return 1 if summary.bad else 0
