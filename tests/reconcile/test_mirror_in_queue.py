"""An agent that keeps its own ledger and only sends events: in the queue like any other."""

import json
import random
from datetime import timedelta

import pytest

from effects.core.vocabulary import ClaimState, Role, TokenScope
from ledger import append, auth, queries
from ledger.models import Claim
from reconcile import listing
from reconcile.views.filters import Filters
from tests.ledger.mirror import STRONG_ID, claim_made, ended, event, started
from tests.support import desk

STORY = (
    event(
        "o", "stream.opened", stream="s1", sequence=1, conversation="conversation-1", turn_index=3
    ),
    event(
        "a",
        "call.announced",
        stream="s1",
        sequence=2,
        position=0,
        tool="refund",
        call_id=STRONG_ID,
        complete=True,
    ),
    event("x", "stream.closed", stream="s1", sequence=3, terminal="cut", last_sequence=3),
    claim_made(),
    started(attempt="a1", second=1),
    ended("unknown", attempt="a1", second=4, error="ReadTimeout"),
)


@pytest.mark.django_db
@pytest.mark.parametrize("seed", range(6))
def test_events_sent_twice_in_any_order_put_the_call_in_the_queue_with_its_timeline(client, seed):
    shop = desk.a_workspace()
    desk.a_keyed_tool(shop, name="refund")
    _, token = auth.issue(shop, "a mirror", (TokenScope.INGEST,), user=None)
    sent = [*STORY, *STORY]
    random.Random(seed).shuffle(sent)
    for start in range(0, len(sent), 5):
        response = client.post(
            "/api/v1/events",
            "\n".join(json.dumps(item) for item in sent[start : start + 5]),
            content_type="application/x-ndjson",
            headers={"authorization": f"Bearer {token}"},
        )
        assert response.status_code == 200, response.content
    desk.move_clock(timedelta(hours=1))
    append.sweep(10)

    (row,) = listing.queue_page(shop.pk, Filters()).rows
    claim = Claim.objects.get()
    assert (row.claim_id, row.state, row.ended) == (claim.pk, ClaimState.UNKNOWN, "ReadTimeout")
    assert claim.state is ClaimState.UNKNOWN
    assert [e.word for e in queries.events(claim) if e.word] == ["unknown"]

    client.force_login(desk.a_person(shop, Role.ENGINEER))
    turn = client.get("/turns/conversation-1/3").content.decode()
    lines = ["claimed elsewhere", "attempt a1 started elsewhere", "attempt a1: outcome unknown"]
    assert [turn.index(line) for line in lines] == sorted(turn.index(line) for line in lines)
    assert "the connection ended without a last event" in turn
    assert "1 call:" in turn, "the call that the stream announced is the one that was claimed"
