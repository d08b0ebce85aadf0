"""The door for events: every framing, every kind of bad item, and what is refused as a whole."""

import json

import pytest

from effects.core.vocabulary import TokenScope
from ledger.ingest_framing import INGEST_BODY_BYTES_MAX, ITEMS_PER_BATCH_MAX
from ledger.models import Claim, IngestItem
from tests.ledger.mirror import SOURCE, claim_made, ended, event, started

JSON = "application/json"


@pytest.fixture
def mirror(hire, shop, refund):
    return hire(shop, TokenScope.INGEST)


def written(*events):
    return json.dumps(list(events)).encode()


def words(answer):
    assert answer.status == 200, answer.body
    return [item["word"] for item in answer.json["items"]]


MADE = json.dumps(claim_made()).encode()
CLOUD = json.dumps(claim_made() | {"specversion": "1.0"}).encode()


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param(JSON, MADE, id="one"),
        pytest.param(JSON, b"[" + MADE + b"]", id="an array"),
        pytest.param("application/x-ndjson", MADE + b"\n\n", id="lines"),
        pytest.param("application/cloudevents+json", CLOUD, id="a structured CloudEvent"),
        pytest.param("application/cloudevents-batch+json", b"[" + CLOUD + b"]", id="a batch"),
    ],
)
def test_one_event_in_every_framing(mirror, kind, body):
    assert words(mirror.post("events", body, **{"Content-Type": kind})) == ["applied"]
    assert words(mirror.post("events", MADE)) == ["duplicate"], "its content is what counts"


def test_a_cloudevent_in_binary_mode(mirror):
    made = claim_made()
    headers = {f"ce-{name}": made[name] for name in ("id", "source", "type", "time")}
    answer = mirror.post("events", made["data"], **headers, **{"ce-specversion": "1.0"})
    assert words(answer) == ["applied"]


def result(text: bytes, event_id: str) -> bytes:
    head = {"id": event_id, "source": SOURCE, "type": "attempt.completed"}
    named = b'"data":{"claim":"k1","attempt":"a1","result":' + text + b"}}"
    return json.dumps(head)[:-1].encode() + b"," + named


@pytest.mark.parametrize(
    ("text", "word", "mark"),
    [
        pytest.param(b'{"t":"cut \\ud83d"}', "applied", "lone_surrogate", id="lone surrogate"),
        pytest.param(b'{"t":"\\uD83D\\uDE00"}', "applied", None, id="a valid pair"),
        pytest.param(b'{"t":"a\\u0000b"}', "applied", "nul", id="NUL"),
        pytest.param(b'{"t":"\xff"}', "applied", "invalid_utf8", id="invalid UTF-8"),
        pytest.param(b'{"score":1e999}', "applied", None, id="an exponent too large for a float"),
        pytest.param(b'{"score":1e200000}', "applied", None, id="and too large for jsonb"),
        pytest.param(b'{"price":' + b"9" * 100_000 + b"}", "applied", None, id="100,000 digits"),
        pytest.param(b'{"score":NaN}', "unreadable", None, id="NaN"),
        pytest.param(b"[" * 64 + b"0" + b"]" * 64, "applied", None, id="64 levels"),
        pytest.param(b"[" * 2000 + b"0" + b"]" * 2000, "unreadable", None, id="2,000 levels"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, "unreadable", None, id="100,000 levels"),
        pytest.param(b'{"a":1,"a":2}', "applied", None, id="a member twice in a result"),
    ],
)
def test_one_bad_item_never_costs_its_neighbours_and_its_bytes_are_kept(
    mirror, client, text, word, mark
):
    odd = result(text, "odd")
    body = b"[" + b",".join([MADE, odd, json.dumps(started()).encode()]) + b"]"
    answer = mirror.post("events", body)
    assert words(answer) == ["applied", word, "applied"]
    assert answer.json["items"][1].get("mended", []) == ([mark] if mark else [])
    item = IngestItem.objects.get(pk=answer.json["items"][1]["item"])
    assert bytes(item.raw or b"") == odd


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        pytest.param({"id": "x"}, "name_missing", id="no source"),
        pytest.param(event("x", "no.such"), "type_unknown", id="unknown type"),
        pytest.param(event("x", "claim.made"), "data_invalid", id="data that lacks members"),
        pytest.param(event("x" * 256, "claim.made"), "limit_exceeded", id="an id too long"),
        pytest.param(event("x", "claim.made", time="today"), "time_unreadable", id="no time"),
        pytest.param(event("\ud83d", "claim.made"), "name_unstorable", id="an id cut in two"),
        pytest.param(3, "not_an_object", id="a number"),
    ],
)
def test_what_cannot_be_read_is_kept_and_says_why(mirror, item, reason):
    answer = mirror.post("events", json.dumps([item]).encode())
    assert words(answer) == ["unreadable"]
    assert answer.json["items"][0]["reason"] == reason


def test_a_corrected_item_may_come_under_the_same_id(mirror):
    bad = claim_made() | {"data": {"claim": "k1"}}
    assert words(mirror.post("events", written(bad))) == ["unreadable"]
    assert words(mirror.post("events", MADE)) == ["applied"]


def test_the_same_id_with_other_content_is_a_conflict_and_both_are_kept(mirror):
    other = claim_made(position=4)
    assert words(mirror.post("events", written(claim_made(), other))) == ["applied", "conflict"]
    assert words(mirror.post("events", written(other))) == ["conflict"]
    first, second = IngestItem.objects.order_by("id")
    assert (second.conflicts_with, second.times_seen, first.holds_id) == (first.pk, 2, True)


def test_duplicates_inside_one_batch(mirror):
    answer = mirror.post("events", written(claim_made(), claim_made()))
    assert words(answer) == ["applied", "duplicate"]
    assert Claim.objects.count() == 1


def test_a_broken_body_is_refused_whole_and_kept(mirror):
    answer = mirror.post("events", b"[" + MADE + b', {"id": "cut')
    assert (answer.status, answer.code, answer.json["kept"]) == (400, "body_unreadable", 1)
    assert IngestItem.objects.get().state == "unreadable"
    assert not Claim.objects.exists()


def test_limits_are_answered_with_their_names(mirror):
    many = mirror.post("events", b"[" + b",".join([b"1"] * (ITEMS_PER_BATCH_MAX + 1)) + b"]")
    assert (many.status, many.json["limit"]) == (413, "ITEMS_PER_BATCH_MAX")
    large = mirror.post("events", b" " * (INGEST_BODY_BYTES_MAX + 1))
    assert (large.status, large.json["limit"], large.json["kept"]) == (
        413, "INGEST_BODY_BYTES_MAX", 0,
    )  # fmt: skip


def test_only_the_scope_ingest_opens_the_door(agent, mirror):
    assert agent.post("events", MADE).status == 403
    assert mirror.claim().status == 403
    assert mirror.post("events", MADE, **{"Content-Type": "text/plain"}).status == 415


# Streams


def test_a_cursor_says_up_to_where_everything_is_applied(mirror):
    opened = event("o", "stream.opened", stream="s", conversation="c/1", turn_index=2, sequence=1)
    call = event("c", "call.announced", stream="s", position=0, tool="refund", complete=True,
                 sequence=2)  # fmt: skip
    closed = event("z", "stream.closed", stream="s", terminal="cut", sequence=3, last_sequence=3)
    assert words(mirror.post("streams", written(closed))) == ["parked"]
    answer = mirror.post("streams", written(opened))
    assert answer.json["streams"] == [{"source": SOURCE, "stream": "s", "cursor": 1}]
    assert mirror.post("streams", written(call)).json["streams"][0]["cursor"] == 3


def test_a_record_of_a_stream_shows_in_its_turn(mirror, agent):
    record = {"id": "r1", "source": SOURCE, "data": {
        "stream": "s", "conversation": "a/b c", "turn_index": 2, "terminal": "cut", "cursor": 9,
        "calls": [{"position": 0, "tool": "refund", "arguments": '{"am', "complete": False}],
    }}  # fmt: skip
    assert words(mirror.post("streams", written(record))) == ["applied"]
    turn = agent.get("turns/a%2Fb%20c/2")
    assert turn.status == 200
    (call,) = turn.json["calls"]
    assert (call["dispatched"], turn.json["streams"][0]["terminal"]) == ("no", "cut")


def test_a_mirrored_claim_shows_in_its_turn(mirror, agent):
    mirror.post("events", written(claim_made(), started(), ended("unknown")))
    turn = agent.get("turns/conversation-1/3").json
    assert [line["words"] for line in turn["lines"]] == [
        "claimed elsewhere", "attempt a1 started elsewhere", "attempt a1: outcome unknown",
    ]  # fmt: skip
    assert turn["calls"][0]["dispatched"] == "cannot_tell"
