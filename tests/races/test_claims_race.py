"""Real processes that ask at the same instant: the database decides, and it decides once."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from django.conf import settings

from effects.core.messages import ClaimRequest, Fail
from effects.core.vocabulary import AnswerCode, EffectClass, Outcome
from effects.models import Tool, Workspace
from ledger import append, claiming, queries

pytestmark = pytest.mark.django_db(transaction=True)
ROUNDS = 3
CROWD = 32


@pytest.fixture
def workspace() -> Workspace:
    workspace = Workspace.objects.create(name="Race", slug="race", created_at=queries.clock())
    Tool.objects.create(
        workspace=workspace,
        name="pay",
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
        attempts_max=1000,
    )
    return workspace


def ask_at_once(
    rounds: list[list[dict[str, Any]]], environment: dict[str, str]
) -> list[list[list[Any]]]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.races.crowd"],
        input=json.dumps(rounds),
        env=environment,
        cwd=settings.BASE_DIR,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said: list[list[list[Any]]] = json.loads(done.stdout)
    return said


def asked(workspace: Workspace, conversation: str, **changes: Any) -> dict[str, Any]:
    usual = {
        "workspace": workspace.pk,
        "tool": "pay",
        "effect_class": "keyed_write",
        "arguments": '{"amount":100}',
        "conversation": conversation,
        "turn_index": 1,
    }
    return usual | changes


def codes(answers: list[list[Any]]) -> list[str]:
    return sorted(code for code, _, _ in answers)


def test_thirty_two_processes_ask_for_one_call_and_one_is_granted(
    workspace: Workspace, process_env: dict[str, str]
) -> None:
    rounds = [[asked(workspace, f"c{n}")] * CROWD for n in range(ROUNDS)]
    for answers in ask_at_once(rounds, process_env):
        assert codes(answers) == ["granted"] + ["in_flight"] * (CROWD - 1)


def test_two_turns_with_equal_arguments_in_one_instant_get_one_grant(
    workspace: Workspace, process_env: dict[str, str]
) -> None:
    rounds = [
        [asked(workspace, f"c{n}", turn_index=1), asked(workspace, f"c{n}", turn_index=2)]
        for n in range(20)
    ]
    for answers in ask_at_once(rounds, process_env):
        assert codes(answers) == ["granted", "held"]


def test_a_regrant_against_a_first_grant_of_the_same_thing_gets_one_grant(
    workspace: Workspace, process_env: dict[str, str]
) -> None:
    rounds = []
    for n in range(20):
        first = asked(workspace, f"c{n}")
        request = {name: value for name, value in first.items() if name != "workspace"}
        answer = claiming.claim(workspace.pk, ClaimRequest.model_validate_json(json.dumps(request)))
        assert answer.claim_id
        fail = Fail(fence=1, proof=Outcome.NOT_SENT)
        append.report(workspace.pk, answer.claim_id, Outcome.NOT_SENT, fail)
        rounds.append([first, asked(workspace, f"c{n}", turn_index=2)])
    for answers in ask_at_once(rounds, process_env):
        assert codes(answers) in (["granted", "held"], ["granted", "in_flight"])
        assert AnswerCode.GRANTED in codes(answers)


def test_many_repeats_of_two_acts_never_deadlock(
    workspace: Workspace, process_env: dict[str, str]
) -> None:
    """Locks are taken in one order, whatever the order in which digests come."""
    rounds = [
        [
            asked(
                workspace,
                f"c{n}",
                turn_index=turn,
                position=amount,
                arguments=f'{{"amount":{amount}}}',
            )
            for turn in range(4)
            for amount in (1, 2)
        ]
        for n in range(5)
    ]
    for answers in ask_at_once(rounds, process_env):
        assert set(codes(answers)) <= {"granted", "held", "in_flight"}
