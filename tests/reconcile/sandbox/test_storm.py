"""The storm: everything goes wrong at once; the account is made against the provider's truth."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from reconcile.sandbox.stories import CONVERSATIONS_MIN

ROOT = Path(__file__).resolve().parents[3]
STORM_SECONDS_MAX = 400
BIG_STORM_SECONDS_MAX = 1200
CHAOS = ("--chaos", "--settle-seconds", "5")
"""Three workers, the broker and the database are killed in the middle. What their look-ups would
have found out a lease later is not waited for; the big storm waits."""


def raise_storm(
    env: dict[str, str], *arguments: str, seconds_max: int = STORM_SECONDS_MAX
) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "manage.py", "sandbox", "storm", "--seed", "7", "--json", *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=seconds_max,
        check=False,
    )
    assert done.stdout, done.stderr[-4000:]
    return done.returncode, json.loads(done.stdout)


def assert_the_law_held(code: int, told: dict[str, Any]) -> None:
    assert told["violations"] == []
    assert code == 0
    assert told["disagreements"] == 0
    assert told["unsound"] == []
    assert told["effects"] > 0
    assert told["settled_by_rule"] > 0
    assert min(told["faults"].values()) >= 5
    assert min(told["mishaps"].values()) >= 3


def killed(told: dict[str, Any]) -> dict[str, int]:
    return dict(Counter(blow["killed"] for blow in told["havoc"]["struck"]))


def test_a_storm_in_which_everything_is_killed_ends_as_the_provider_says(
    process_env: dict[str, str],
):
    code, told = raise_storm(process_env, "--conversations", str(CONVERSATIONS_MIN), *CHAOS)
    assert_the_law_held(code, told)
    assert killed(told) == {"worker": 3, "broker": 1, "database": 1}


@pytest.mark.slow
def test_forty_conversations_beside_a_database_that_was_given(process_env: dict[str, str]):
    code, told = raise_storm(process_env, "--conversations", "40")
    assert_the_law_held(code, told)
    assert killed(told) == {}


@pytest.mark.slow
def test_two_hundred_conversations_while_everything_is_killed(process_env: dict[str, str]):
    code, told = raise_storm(
        process_env, "--conversations", "200", "--chaos", seconds_max=BIG_STORM_SECONDS_MAX
    )
    assert_the_law_held(code, told)
    assert killed(told) == {"worker": 3, "broker": 1, "database": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(("--conversations", "3"), "no room for every fault", id="too small"),
        pytest.param(("--kill-workers", "21"), "from 0 to 20 workers", id="too much"),
    ],
)
def test_a_storm_that_cannot_be_is_refused(
    process_env: dict[str, str], arguments: tuple[str, ...], words: str
):
    with pytest.raises(AssertionError, match=words):
        raise_storm(process_env, *arguments)


def test_the_same_storm_without_claims_pays_twice(process_env: dict[str, str]):
    code, told = raise_storm(
        process_env, "--conversations", str(CONVERSATIONS_MIN), "--without-claims"
    )
    assert code == 1
    assert told["too_many_effects"]
    assert told["claims"] == {}
