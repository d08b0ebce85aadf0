"""The short way of a claim and of a report leaves what the long way would, to the letter."""

from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction

from effects.core.messages import ClaimRequest, Complete
from effects.core.vocabulary import EffectClass, Outcome
from ledger import claiming, reporting
from ledger.models import Claim, Event, Payload
from tests.support.clock import FrozenClock

LONG = '{"text": "%s"}' % ("x" * 3000)
PLAIN: dict[str, Any] = {
    "tool": "refund",
    "effect_class": EffectClass.KEYED_WRITE,
    "arguments": '{"charge": "ch_1", "amount": 4200}',
    "conversation": "c",
    "turn_index": 1,
    "response_id": "response-1",
    "call_id": "call_aaaaaaaaaaaaaaaaaaaaaaaa",
}
SHAPES = [
    pytest.param({}, id="everything said"),
    pytest.param({"nonce": "0" * 32, "worker": "w", "delivery_count": 2}, id="with its delivery"),
    pytest.param({"call_id": "refund"}, id="a weak id"),
    pytest.param({"call_id": None, "response_id": None}, id="no ids"),
    pytest.param({"caller_key": "order-7"}, id="a key of the caller too"),
    pytest.param({"conversation": None, "turn_index": None, "caller_key": "k"}, id="a key alone"),
    pytest.param({"arguments": LONG}, id="long arguments"),
    pytest.param({"tool": "unknown-tool"}, id="a tool that nobody registered"),
]
OWN = ("id", "claim_id")
"""What two equal claims do not have in common."""


@pytest.fixture(autouse=True)
def still(db):
    """The clock stands, so that instants can be compared."""
    return FrozenClock()


def written(model):
    return [
        {name: value for name, value in row.items() if name not in OWN}
        for row in model.objects.order_by("pk").values()
    ]


def left_by(work):
    """The answer and the whole record as `work` leaves it, taken back afterwards."""
    with transaction.atomic():
        answer = work()
        found = [written(model) for model in (Claim, Event, Payload)]
        transaction.set_rollback(True)
    return answer, found


def claim_by(monkeypatch, function, workspace_id, request):
    statement = claiming.CLAIM.replace("ledger_claim_v1", function)
    with monkeypatch.context() as patched:
        patched.setattr(claiming, "CLAIM", statement)
        answer = claiming.claim(workspace_id, request)
    own = {"claim_id": None, "marker": None}
    return answer.model_copy(update=own)


@pytest.mark.parametrize("changes", SHAPES)
def test_a_new_claim(shop, refund, monkeypatch, changes):
    request = ClaimRequest(**(PLAIN | changes))
    elsewhere = {"conversation": "another", "tool": request.tool}
    claiming.claim(shop.pk, ClaimRequest(**(PLAIN | elsewhere)))

    short, long = (
        left_by(lambda function=function: claim_by(monkeypatch, function, shop.pk, request))
        for function in ("ledger_claim_v1", "ledger_weigh_v1")
    )

    assert short == long
    assert short[0].code == "granted"


@pytest.mark.parametrize("changes", SHAPES)
def test_a_repeat_of_what_has_completed(shop, refund, monkeypatch, changes):
    request = ClaimRequest(**(PLAIN | changes))
    claim_id = claiming.claim(shop.pk, request).claim_id
    assert isinstance(claim_id, UUID)
    done = Complete(fence=1, provider_object="re_1", result='{"id": "re_1"}')
    reporting.report(shop.pk, claim_id, Outcome.COMPLETED, done)

    short, long = (
        left_by(lambda function=function: claim_by(monkeypatch, function, shop.pk, request))
        for function in ("ledger_claim_v1", "ledger_weigh_v1")
    )

    assert short == long
    assert short[0].code == "replayed"


REPORTS = [
    pytest.param({"provider_object": "re_1", "result": '{"id": "re_1"}'}, id="object and result"),
    pytest.param({"result": "null"}, id="a result that is null"),
    pytest.param({}, id="nothing"),
    pytest.param({"result_stored": False}, id="a result that could not be kept"),
    pytest.param({"result": LONG}, id="a long result"),
    pytest.param({"replayed": True, "marker_sent": True, "http_status": 200}, id="how it was"),
]


@pytest.mark.parametrize("said", REPORTS)
def test_a_first_report(shop, refund, monkeypatch, said):
    claim_id = claiming.claim(shop.pk, ClaimRequest(**PLAIN)).claim_id
    report = Complete(fence=1, **said)
    assert isinstance(claim_id, UUID)

    def told(statement):
        with monkeypatch.context() as patched:
            patched.setattr(reporting, "REPORT", statement)
            return reporting.reported(shop.pk, claim_id, Outcome.COMPLETED, report)

    # The long way: the report itself, and then a look at what it made of the claim.
    long_statement = """
      WITH said AS (SELECT %s::bigint AS w, %s::uuid AS c, %s::int AS f, %s::ledger_event_word AS o,
        %s::text AS b, %s::boolean AS r, %s::boolean AS m, %s::text AS t, %s::boolean AS s,
        %s::jsonb AS d, %s::text AS u)
      SELECT (shown).*, version FROM said, LATERAL tests_long_way(w, c, f, o, b, r, m, t, s, d, u)
    """
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(LONG_WAY)
        short = left_by(lambda: told(reporting.REPORT))
        long = left_by(lambda: told(long_statement))

    assert short == long
    assert short[1][0][0]["state"] == "completed"


LONG_WAY = """
CREATE FUNCTION tests_long_way(w bigint, c uuid, f int, o ledger_event_word, b text, r boolean,
  m boolean, t text, s boolean, d jsonb, u text, OUT shown ledger_shown, OUT version int)
LANGUAGE plpgsql AS $$
BEGIN
  PERFORM ledger_report_v1(w, c, f, o, b, r, m, t, s, d);
  shown := ledger_shown_v1(w, c, u);
  version := (SELECT k.version FROM ledger_claim k WHERE k.id = c);
END $$
"""
