"""The record verified: a sound one passes, and every kind of damage is found and named."""

import io
import json
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection

from effects.core.messages import ClaimRequest, Complete, Fail, Unknown
from effects.core.vocabulary import Outcome, SightingWord, Verdict
from effects.models import Workspace
from ledger import append, claiming, queries
from ledger.append import NewDecision, Observation
from ledger.management.invariants.storage import functions_as_written, links
from tests.support.agents import asked
from tests.support.clock import PRODUCTION

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _productions_clock(db: None) -> None:
    """A test that commits may have left a clock of its own to this worker's database."""
    with connection.cursor() as cursor:
        cursor.execute(PRODUCTION)


def verify(*arguments: str) -> tuple[bool, dict[str, list[dict[str, str]]]]:
    """Whether the record is sound, and the differences by check."""
    out = io.StringIO()
    try:
        call_command("verify_ledger", "--json", *arguments, stdout=out)
        exit_code: object = 0
    except SystemExit as leaving:
        exit_code = leaving.code
    told = json.loads(out.getvalue())
    assert exit_code == (0 if told["sound"] else 1)
    found: dict[str, list[dict[str, str]]] = {}
    for check in told["checks"]:
        found.setdefault(check["id"], []).extend(check["differences"])
    return told["sound"], {
        check: differences for check, differences in found.items() if differences
    }


def claim(workspace: Workspace, **changes: Any) -> UUID:
    answer = claiming.claim(
        workspace.pk, ClaimRequest.model_validate_json(json.dumps(asked(**changes)))
    )
    assert answer.code == "granted", answer
    assert answer.claim_id is not None
    return answer.claim_id


@pytest.fixture
def history(shop, refund, email, person, pass_time) -> dict[str, UUID]:
    """A record with some of everything."""
    done, lost, again = (
        claim(shop, turn_index=turn, call_id=None, arguments=f'{{"n": {turn}}}')
        for turn in (1, 2, 3)
    )
    append.report(
        shop.pk, done, Outcome.COMPLETED, Complete(fence=1, result="1", provider_object="re_1")
    )
    append.report(shop.pk, lost, Outcome.UNKNOWN, Unknown(fence=1))
    append.observe(
        shop.pk, lost, Observation(word=SightingWord.PENDING, fence=1, counts=False, raw=b"{}")
    )
    append.report(shop.pk, again, Outcome.NOT_SENT, Fail(fence=1, proof=Outcome.NOT_SENT))
    claim(shop, turn_index=3, call_id=None, arguments='{"n": 3}')
    for verdict in (Verdict.CLOSE, Verdict.REOPEN, Verdict.RELEASE_SAME):
        append.decide(
            shop.pk,
            lost,
            NewDecision(
                verdict=verdict,
                claim_version=queries.claim(shop.pk, lost).version,
                reason="seen",
                user_id=person.pk,
                hold_seconds=0,
            ),
        )
    claim(shop, turn_index=2, call_id=None, arguments='{"n": 2}')
    return {"done": done, "lost": lost, "again": again}


def test_a_sound_record_is_sound(history):
    assert verify("--clock-may-move") == (True, {})
    assert verify("--clock-may-move", "--all") == (True, {})


def test_an_empty_record_is_sound(db):
    assert verify("--all") == (True, {})


def test_people_are_told_in_sentences(history):
    out = io.StringIO()
    call_command("verify_ledger", "--clock-may-move", stdout=out)

    assert out.getvalue().endswith("The record is sound.\n")
    assert "holds    I10" in out.getvalue()


DAMAGE: dict[str, tuple[str, str, str]] = {
    "a state that no event says": (
        "UPDATE ledger_claim SET state = 'completed', completed_at = now() WHERE id = %(again)s",
        "I10",
        "state is completed, its events say in_flight",
    ),
    "a claim called settled while its truth is open": (
        "UPDATE ledger_claim SET open_truth = false WHERE id = %(again)s",
        "I10",
        "open_truth is False, its events say True",
    ),
    "a generation that was never granted": (
        "UPDATE ledger_claim SET generation = 9 WHERE id = %(done)s",
        "I10",
        "generation is 9, its events say 1",
    ),
    "a completion without its date": (
        "UPDATE ledger_claim SET completed_at = NULL WHERE id = %(done)s",
        "I10",
        "completed_at is set is False, its events say True",
    ),
    "a claim without events": (
        "DELETE FROM ledger_event WHERE claim_id = %(done)s",
        "I10",
        "the claim has no event",
    ),
    "a fence that was never granted": (
        "UPDATE ledger_claim SET fence = 5 WHERE id = %(done)s",
        "I4",
        "the fence is 5; attempts 1 to 1 were granted, 1 of them",
    ),
    "an attempt granted twice": (
        (
            "INSERT INTO ledger_event (claim_id, seq, at, kind, fence, generation)"
            " VALUES (%(done)s, 3, now(), 'granted', 1, 1)"
        ),
        "I3",
        "attempt 1 was granted 2 times",
    ),
    "an event that was taken out": (
        "DELETE FROM ledger_event WHERE claim_id = %(lost)s AND seq = 3",
        "I4",
        "numbered 1 to",
    ),
    "more attempts than the budget": (
        "UPDATE ledger_claim SET budget = 1 WHERE id = %(again)s",
        "I5",
        "2 attempts; the budget with its releases is 1",
    ),
    "two effects called one": (
        (
            "INSERT INTO ledger_event (claim_id, seq, at, kind, word, fence, generation, object)"
            " VALUES (%(done)s, 3, now(), 'reported', 'completed', 1, 1, 're_2')"
        ),
        "I7",
        "2 different provider objects were reported, and the claim is completed",
    ),
    "a decision that says something else now": (
        "UPDATE ledger_decision SET reason = 'nothing to see' WHERE chain_number = 2",
        "I18",
        "the chain breaks at its hash",
    ),
    "a decision that was taken out": (
        "DELETE FROM ledger_decision WHERE chain_number = 1",
        "I18",
        "the chain breaks at its number",
    ),
    "a claim moved to another workspace": (
        "UPDATE ledger_claim SET workspace_id = %(neighbour)s WHERE id = %(done)s",
        "I19",
        "is another workspace's",
    ),
    "a payload whose claim is gone": (
        "UPDATE ledger_payload SET claim_id = uuidv7() WHERE claim_id = %(lost)s",
        "I19",
        "there is no such row in ledger_claim",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_named(history, neighbour, kind):
    sql, check, says = DAMAGE[kind]
    with connection.cursor() as cursor:
        for table in ("ledger_event", "ledger_decision"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
        cursor.execute(sql, history | {"neighbour": neighbour.pk})
        for table in ("ledger_event", "ledger_decision"):
            cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")

    sound, found = verify("--clock-may-move")

    assert not sound
    assert any(says in difference["says"] for difference in found[check]), found
    assert "I12" not in found, "the guard was put back"


@pytest.mark.parametrize("table", ["ledger_event", "ledger_decision"])
@pytest.mark.parametrize(
    "act",
    [
        "ALTER TABLE {table} DISABLE TRIGGER USER",
        "ALTER TABLE {table} ENABLE REPLICA TRIGGER {table}_append_only",
        "DROP TRIGGER {table}_append_only ON {table}",
    ],
    ids=["disabled", "for replicas only", "dropped"],
)
def test_a_table_without_its_guard_is_found(db, table, act):
    with connection.cursor() as cursor:
        cursor.execute(act.format(table=table))

    assert verify() == (
        False,
        {"I12": [{"of": table, "says": "no enabled trigger refuses a change"}]},
    )


def test_a_guard_that_refuses_nothing_is_found(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION ledger_refuse_change() RETURNS trigger LANGUAGE plpgsql"
            " AS $$ begin return null; end $$"
        )

    sound, found = verify()

    assert not sound
    assert [difference["of"] for difference in found["functions"]] == ["ledger_refuse_change"]


def test_a_clock_that_somebody_moved_is_found_unless_it_may_move(pass_time: Callable[..., None]):
    pass_time(hours=1)

    sound, found = verify()

    assert not sound
    assert found == {
        "functions": [
            {
                "of": "ledger_clock",
                "says": "the function is not the one that the migrations made",
            }
        ]
    }
    assert verify("--clock-may-move") == (True, {})


def test_every_function_of_the_record_is_compared(db):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace"
            " AND proname LIKE 'ledger\\_%'"
        )
        installed = {name for (name,) in cursor.fetchall()}

    assert set(functions_as_written()) == installed


def test_every_parent_of_the_records_rows_is_followed():
    followed = {f"{link.table}.{link.column}" for link in links() if link.compare_workspace}

    assert {
        "ledger_claim.tool_id",
        "ledger_payload.claim_id",
        "ledger_decision.claim_id",
        "ledger_heldrequest.blocker_id",
        "ledger_case.claim_id",
        "ledger_due.claim_id",
    } <= followed
