"""Thousands of seeded histories: the ledger answers as the law does, and nothing ends badly."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

# The histories are other processes'; the mark makes their database where this file runs alone.
pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES = 2
HISTORIES = 1_200
HISTORIES_SLOW = 20_000


def simulate(histories: int, environment: dict[str, str]) -> list[dict[str, Any]]:
    """What each process says; each has its own seeds and its own connection."""
    share = histories // PROCESSES
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.laws", str(number * share), str(share)],
            env=environment,
            cwd=settings.BASE_DIR,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(PROCESSES)
    ]
    outputs = [process.communicate()[0] for process in running]
    assert all(outputs), "a simulator died; its complaint stands above"
    return [json.loads(output) for output in outputs]


def complain(said: list[dict[str, Any]]) -> str:
    """The shortest history of each bad outcome, whole."""
    lines: list[str] = []
    for summary in said:
        for name, (seed, log) in summary["shortest"].items():
            lines += [f"--- {name} ({summary['bad'][name]} times), seed {seed}", *log]
    return "\n".join(lines)


def check(histories: int, environment: dict[str, str]) -> None:
    said = simulate(histories, environment)
    assert sum(summary["histories"] for summary in said) == histories
    assert not any(summary["bad"] for summary in said), complain(said)
    # A simulator that no longer reaches the interesting places would pass just as well.
    effects = sum(summary["counted"]["effects"] for summary in said)
    compared = sum(summary["counted"]["answers compared"] for summary in said)
    assert effects > histories // 5
    assert compared > histories * 3


def test_the_ledger_answers_as_the_law_does_and_no_history_ends_badly(
    process_env: dict[str, str],
) -> None:
    check(HISTORIES, process_env)


@pytest.mark.slow
def test_ten_times_as_many_histories_end_as_well(process_env: dict[str, str]) -> None:
    check(HISTORIES_SLOW, process_env)
