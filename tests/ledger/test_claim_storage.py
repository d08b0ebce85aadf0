"""What the claim function relies on: isolation, cheap updates, losers that are tried again."""

from __future__ import annotations

import re

import pytest
from django.db import connection, transaction
from django.db.utils import InternalError

from effects.core.vocabulary import Outcome
from ledger.functions import TRIES_MAX, call
from tests.ledger.claims import a_world, granted
from tests.support.desk import a_call, a_keyed_tool, a_workspace

CHANGING = (
    *("state", "reason", "version", "fence", "generation", "budget", "fresh_key", "open_truth"),
    *("completed_at", "decided_at", "lease_until", "window_until", "grant_until", "pending_at"),
    *("pending_decision_id", "nonce", "flags", "object", "result", "result_stored"),
)

FAILS_AT_FIRST = """
CREATE SEQUENCE tests_tries;
CREATE FUNCTION tests_fails_at_first(p_times int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE tried bigint := nextval('tests_tries');
BEGIN
  IF tried <= p_times THEN RAISE EXCEPTION 'lost a race' USING errcode = '40001'; END IF;
  RETURN tried;
END $$
"""


@pytest.mark.case("X04")
@pytest.mark.django_db(transaction=True)
def test_a_claim_in_another_isolation_than_read_committed_is_refused() -> None:
    tool = a_keyed_tool(a_workspace())
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        with pytest.raises(InternalError, match="wrong_isolation"):
            a_call(tool)
        transaction.set_rollback(True)
    assert a_call(tool).claim_id, "the next request, in its usual isolation, is granted"


@pytest.mark.django_db
def test_no_index_of_claims_names_a_column_that_changes() -> None:
    rows = call("SELECT indexdef FROM pg_indexes WHERE tablename = 'ledger_claim'", ())
    assert len(rows) >= 6
    for (definition,) in rows:
        _, _, columns = definition.partition(" USING ")
        assert not set(re.findall(r"\w+", columns)) & set(CHANGING), definition


@pytest.mark.django_db
def test_settling_a_claim_is_a_heap_only_update() -> None:
    world = a_world()
    before = claims_updated_in_place()
    for turn in range(5):
        answer = granted(world, turn_index=turn, call_id=None, arguments=f'{{"amount":{turn}}}')
        assert answer.claim_id
        world.report(answer.claim_id, 1, Outcome.COMPLETED, f"pi_{turn}")
    updated, in_place = claims_updated_in_place()
    assert (updated - before[0], in_place - before[1]) == (5, 5)


def claims_updated_in_place() -> tuple[int, int]:
    """Updates of claims that this session has not yet reported, and how many were heap-only.

    They include those of earlier transactions (PostgreSQL reports about once a second, and never
    within one), so only a difference says something.
    """
    ((updated, in_place),) = call(
        "SELECT pg_stat_get_xact_tuples_updated('ledger_claim'::regclass),"
        " pg_stat_get_xact_tuples_hot_updated('ledger_claim'::regclass)",
        (),
    )
    return updated, in_place


@pytest.mark.django_db(transaction=True)
def test_a_loser_of_a_race_is_tried_again_and_in_the_end_heard_of() -> None:
    with connection.cursor() as cursor:
        cursor.execute(FAILS_AT_FIRST)
    try:
        assert call("SELECT tests_fails_at_first(%s)", (TRIES_MAX - 1,)) == [(TRIES_MAX,)]
        with pytest.raises(Exception, match="lost a race"):
            call("SELECT tests_fails_at_first(%s)", (TRIES_MAX * 3,))
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION tests_fails_at_first; DROP SEQUENCE tests_tries")
