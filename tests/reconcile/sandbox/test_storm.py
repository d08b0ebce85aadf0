"""The storm: everything goes wrong at once; the account is made against the provider's truth."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reconcile.sandbox.stories import CONVERSATIONS_MIN

ROOT = Path(__file__).resolve().parents[3]
STORM_SECONDS_MAX = 400


def raise_storm(env: dict[str, str], *arguments: str) -> tuple[int, dict[str, Any]]:
    done = subprocess.run(
        [sys.executable, "manage.py", "sandbox", "storm", "--seed", "7", "--json", *arguments],
        cwd=ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=STORM_SECONDS_MAX,
        check=False,
    )
    assert done.stdout, done.stderr[-4000:]
    return done.returncode, json.loads(done.stdout)


def test_forty_conversations_in_a_storm_end_as_the_provider_says(process_env: dict[str, str]):
    code, told = raise_storm(process_env, "--conversations", "40")
    assert told["violations"] == []
    assert code == 0
    assert told["disagreements"] == 0
    assert told["effects"] > 0
    assert told["settled_by_rule"] > 0
    assert min(told["faults"].values()) >= 5
    assert min(told["mishaps"].values()) >= 3


def test_the_same_storm_without_claims_pays_twice(process_env: dict[str, str]):
    code, told = raise_storm(
        process_env, "--conversations", str(CONVERSATIONS_MIN), "--without-claims"
    )
    assert code == 1
    assert told["too_many_effects"]
    assert told["claims"] == {}


def test_a_storm_that_is_too_small_for_its_faults_is_refused(process_env: dict[str, str]):
    with pytest.raises(AssertionError, match="no room for every fault"):
        raise_storm(process_env, "--conversations", "3")
