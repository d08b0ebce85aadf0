"""A consumer that keeps its own table reads a resumed stream: nothing twice, nothing skipped."""

import json
import sqlite3
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.streams import Protocol, StreamGap, StreamReader, unapplied
from effects.core.vocabulary import Terminal
from tests.effects.streams.wire import arguments, item, response
from tests.support.stack import ROOT

STREAM = (
    response("created", 0),
    item("added", 1),
    arguments("delta", 2, '{"amount":'),
    arguments("delta", 3, "4200}"),
    item("done", 4, arguments='{"amount":4200}', status="completed"),
    response("completed", 5),
)


def numbers(events, cursor):
    return [number for number, _ in unapplied(events, cursor)]


@given(st.integers(-1, 5), st.integers(0, 5))
def test_an_overlap_is_handed_out_once_whatever_its_length(applied, seen):
    cursor = None if applied < 0 else applied
    first, again = STREAM[applied + 1 : max(applied + 1, seen)], STREAM[: seen + 1]
    assert numbers([*first, *again, *STREAM], cursor) == list(range(applied + 1, 6))


def test_objects_of_an_sdk_are_read_as_well():
    assert numbers([SimpleNamespace(sequence_number=4), SimpleNamespace(sequence_number=5)], 4) == [
        5
    ]


@pytest.mark.parametrize(
    ("events", "says"),
    [
        (STREAM[3:], "Event 2 never came. Resume after 1."),
        (STREAM[5:], "Event 2 to 4 never came. Resume after 1."),
        (({"type": "error"},), "An event has no number. Resume after 1."),
        (({"sequence_number": True},), "An event has no number. Resume after 1."),
    ],
)
def test_what_is_missing_is_refused_and_not_skipped(events, says):
    with pytest.raises(StreamGap, match=says) as refused:
        numbers(events, 1)
    assert refused.value.applied == 1


def test_what_came_before_a_gap_is_handed_out_and_then_the_cursor_is_said():
    reading = unapplied([*STREAM[:2], STREAM[4]], None)
    assert [next(reading)[0], next(reading)[0]] == [0, 1]
    with pytest.raises(StreamGap) as refused:
        next(reading)
    assert refused.value.applied == 1


# A consumer that is killed

CONSUMER = """
import json, os, signal, sqlite3, sys
from effects.core.streams import unapplied

table, events, dies_at = sqlite3.connect(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3])
(cursor,) = table.execute("SELECT max(number) FROM applied").fetchone()
for number, event in unapplied(events, cursor):
    table.execute("INSERT INTO effects VALUES (?)", (number,))
    if number == dies_at:
        os.kill(os.getpid(), signal.SIGKILL)
    table.execute("INSERT INTO applied VALUES (?, ?)", (number, json.dumps(event)))
    table.commit()
"""


def test_a_consumer_killed_between_an_effect_and_its_cursor_applies_each_event_once(tmp_path):
    path = tmp_path / "own.db"
    table = sqlite3.connect(path)
    table.execute("CREATE TABLE effects (number INTEGER)")
    table.execute("CREATE TABLE applied (number INTEGER, event TEXT)")
    table.commit()

    def consume(dies_at):
        argv = [sys.executable, "-c", CONSUMER, str(path), json.dumps(STREAM), str(dies_at)]
        return subprocess.run(argv, cwd=ROOT, check=False, timeout=60).returncode

    assert consume(dies_at=3) == -9
    assert [n for (n,) in table.execute("SELECT number FROM effects")] == [0, 1, 2]
    assert consume(dies_at=-1) == 0
    assert [n for (n,) in table.execute("SELECT number FROM effects")] == list(range(6))

    reader = StreamReader(Protocol.OPENAI_RESPONSES)
    for (event,) in table.execute("SELECT event FROM applied ORDER BY number"):
        reader.feed_event(json.loads(event))
    table.close()
    record = reader.close()
    assert (record.terminal, record.cursor, record.gaps) == (Terminal.SUCCESS, 5, ())
    assert record.calls[0].dispatchable
