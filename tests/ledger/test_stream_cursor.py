"""A stream's cursor means applied: both or neither, whatever dies, and an overlap counts once."""

import json
import random
import subprocess
import sys

import pytest
from django.db import connection, transaction

from ledger import ingest, ingest_streams, queries
from ledger.models import Call, IngestItem, Stream
from tests.ledger.doomed_ingest import MOMENTS
from tests.ledger.mirror import answer, event
from tests.support.stack import ROOT


def opened(event_id="o", stream="s"):
    return event(
        event_id, "stream.opened", stream=stream, conversation="c", turn_index=2, sequence=1
    )


def announced(position, sequence, stream="s", **said):
    usual = {"stream": stream, "position": position, "tool": "refund", "complete": True}
    name = f"{stream}-c{position}"
    return event(name, "call.announced", sequence=sequence, **(usual | said))


def closed():
    return event("z", "stream.closed", stream="s", terminal="success", sequence=4, last_sequence=4)


WHOLE = (opened(), announced(0, 2), announced(1, 3), closed())


def told(workspace, *events):
    """The words of the items, and the cursor that the answer tells."""
    said = answer(workspace.pk, *events, streams=True)
    return [str(item.word) for item in said.items], said.streams[0].cursor if said.streams else None


def stored(name="s"):
    stream = Stream.objects.get(name=name)
    calls = Call.objects.filter(stream=stream).order_by("position")
    return stream.cursor, [(c.position, c.tool, c.complete) for c in calls], stream.terminal


def test_a_process_killed_while_it_applies_leaves_both_or_neither(
    transactional_db, process_env, shop
):
    for moment in MOMENTS:
        told(shop, opened(f"o-{moment}", moment))
    died = subprocess.run(
        [sys.executable, "-m", "tests.ledger.doomed_ingest", str(shop.pk)],
        cwd=ROOT,
        env=process_env,
        input=json.dumps({moment: announced(0, 2, moment) for moment in MOMENTS}),
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert died.returncode == 0, died.stderr
    assert json.loads(died.stdout) == dict.fromkeys(MOMENTS, -9)

    whole = (2, [(0, "refund", True)], None)
    nothing: tuple[int, list[object], None] = (1, [], None)
    assert [stored(moment) for moment in MOMENTS] == [nothing, nothing, whole]

    # Whoever sent them heard nothing, and sends them again.
    words = [told(shop, announced(0, 2, moment)) for moment in MOMENTS]
    assert words == [(["applied"], 2), (["applied"], 2), (["duplicate"], 2)]
    for moment in MOMENTS:
        assert told(shop, announced(0, 2, moment)) == (["duplicate"], 2)
        assert stored(moment) == whole


def test_a_statement_that_fails_after_the_application_takes_it_back(shop, monkeypatch):
    told(shop, opened())

    def fails(*_, **__):
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")

    with monkeypatch.context() as patched:
        patched.setattr(ingest_streams, "_advance", fails)
        assert told(shop, announced(0, 2))[0] == ["failed"]
        assert stored() == (1, [], None)

    # Its sender never comes back; the next tick applies it.
    IngestItem.objects.update(last_seen_at=queries.clock().replace(year=2020))
    assert ingest.retry(10) == 1
    assert stored() == (2, [(0, "refund", True)], None)


def test_what_is_kept_and_not_applied_is_behind_no_cursor(shop):
    assert told(shop, announced(0, 2)) == (["parked"], None)
    assert told(shop, opened()) == (["applied"], 2), "and it is applied with its parent"


@pytest.mark.parametrize("renamed", [False, True])
def test_a_resumed_stream_overlaps_and_every_event_is_applied_once(shop, renamed):
    """A sender that resumes may know its events' own ids, or only their numbers."""
    told(shop, *WHOLE[:3])
    before = stored()
    again = [dict(e, id=f"{e['id']}-again") if renamed else e for e in WHOLE[1:3]]
    words, cursor = told(shop, *again)
    assert words == ["applied" if renamed else "duplicate"] * 2
    assert (cursor, stored()) == (3, before)
    assert told(shop, closed())[1] == 4


def test_the_order_and_the_number_of_deliveries_make_no_difference(shop):
    shuffled, outcomes = random.Random(4), set()
    for _ in range(8):
        events = [*WHOLE, *(dict(e, id=f"{e['id']}-again") for e in WHOLE)]
        shuffled.shuffle(events)
        with transaction.atomic():
            for one in events:
                told(shop, one)
            outcomes.add(str(stored()))
            transaction.set_rollback(True)
    assert outcomes == {str((4, [(0, "refund", True), (1, "refund", True)], "success"))}


def test_a_gap_holds_the_cursor_and_what_came_after_it_counts_once_it_is_filled(shop):
    assert told(shop, opened(), announced(1, 3), closed())[1] == 1
    assert told(shop, announced(0, 2))[1] == 4


def record(event_id, cursor, *calls, **said):
    usual = {"stream": "s", "conversation": "c", "turn_index": 2, "cursor": cursor, "calls": calls}
    return event(event_id, "stream.recorded", **(usual | said))


def test_an_older_record_of_a_stream_takes_nothing_back(shop):
    half = {"position": 0, "tool": "refund", "arguments": '{"am', "complete": False}
    full = {"position": 0, "tool": "refund", "arguments": '{"amount":1}', "complete": True}
    assert told(shop, record("r2", 9, full, terminal="success"))[1] == 9
    assert told(shop, record("r1", 5, half, terminal="cut"))[1] == 9
    assert stored() == (9, [(0, "refund", True)], "success")
