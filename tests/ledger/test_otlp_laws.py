"""The same spans give the same record: in both encodings, in any batches, in any order."""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import json
from collections.abc import Iterable
from typing import Any

from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import otlp, otlp_json, otlp_protobuf
from ledger.ingest_reading import TRACES, read_item
from ledger.management.verification import checks
from ledger.models import Claim, Event, IngestItem
from ledger.otlp_span import Read, Span, Undecodable, item_of
from tests.ledger.otlp import BEGAN, SECOND, Sent, as_json, cut, of_a_tool, protobuf

INT64 = st.integers(min_value=-(2**63), max_value=2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | INT64 | st.floats() | TEXTS | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)
EVENTS = st.builds(
    lambda name, said: {"name": name, "attributes": said},
    st.sampled_from(["exception", "log", ""]),
    st.dictionaries(TEXTS, VALUES, max_size=2),
)
ANY_SPAN = st.builds(
    lambda said, **rest: of_a_tool(said=said, **rest),
    st.dictionaries(TEXTS, VALUES, max_size=4)
    | st.fixed_dictionaries({"gen_ai.tool.call.arguments": VALUES, "error.type": VALUES}),
    number=st.integers(min_value=1, max_value=2**64 - 1),
    start=st.integers(min_value=0, max_value=2**64 - 1),
    end=st.integers(min_value=1, max_value=2**64 - 1),
    status=st.integers(min_value=0, max_value=3),
    message=TEXTS,
    events=st.lists(EVENTS, max_size=2).map(tuple),
)


def of_tools(read: Iterable[Read]) -> list[Span]:
    found = list(read)
    assert all(isinstance(span, Span) for span in found)
    return [span for span in found if isinstance(span, Span)]


def items(read: Iterable[Read]) -> list[bytes]:
    return [item_of(span) for span in of_tools(read)]


@settings(deadline=None, max_examples=150)
@given(st.lists(ANY_SPAN, max_size=3), TEXTS)
def test_both_encodings_of_a_span_are_the_same_item(spans, worker):
    assert items(otlp_protobuf.spans(protobuf(spans, worker))) == items(
        otlp_json.spans(as_json(spans, worker))
    )


@settings(deadline=None, max_examples=100)
@given(ANY_SPAN, st.randoms())
def test_the_order_of_attributes_says_nothing(span, random):
    pairs = [*span.attributes.items()]
    random.shuffle(pairs)
    turned = dataclasses.replace(span, attributes=dict(pairs))
    assert items(otlp_json.spans(as_json([span]))) == items(otlp_protobuf.spans(protobuf([turned])))


READ_NAMES = (
    *("gen_ai.tool.name", "gen_ai.tool.call.id", "gen_ai.conversation.id", "error.type"),
    *("gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "counterfoil.outcome"),
    *("tool.attempt_failed", "gcp.vertex.agent.tool_response"),
)


@settings(deadline=None, max_examples=300)
@given(
    st.dictionaries(st.sampled_from(READ_NAMES), VALUES),
    st.dictionaries(st.sampled_from(["exception.type", "exception.message"]), VALUES),
)
def test_whatever_the_attributes_are_the_item_is_read_or_says_why(said, thrown):
    events = ({"name": "exception", "attributes": thrown},)
    (raw,) = items(otlp_protobuf.spans(protobuf([of_a_tool(said=said, events=events)])))
    item = read_item(raw, TRACES)
    assert (item.message is None) == bool(item.reason and item.says)


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=200), st.integers(min_value=0), st.binary(max_size=3))
def test_whatever_the_bytes_are_there_is_an_answer(noise, place, put):
    whole = protobuf([cut(), of_a_tool()])
    at = place % len(whole)
    for body in (noise, whole[:at] + put + whole[at + len(put) :]):
        for reader in (otlp_protobuf, otlp_json):
            with contextlib.suppress(Undecodable):
                list(reader.spans(body))


# Any batches in any order

CALLS = ("call_aaaaaaaaaaaaaaaa", "call_bbbbbbbbbbbbbbbb", "call_1", None)


@st.composite
def stories(draw: st.DrawFn) -> list[Sent]:
    """Spans of one conversation: a call id stands for one tool and one set of arguments, since a
    model makes it with them; it may be tried again, in this trace or another."""
    told = []
    for number in range(1, draw(st.integers(min_value=2, max_value=5)) + 1):
        call = draw(st.sampled_from(CALLS))
        said = {
            "gen_ai.tool.call.id": call,
            "gen_ai.tool.call.arguments": None if call == CALLS[1] else json.dumps({"a": call}),
            "gen_ai.tool.call.result": f"result {number}",
        }
        made = draw(st.sampled_from([cut, of_a_tool]))
        start = BEGAN + draw(st.integers(min_value=0, max_value=3)) * SECOND
        trace = draw(st.sampled_from(["a" * 32, "b" * 32]))
        told.append(made(number, said=said, start=start, end=start + number, trace=trace))
    return told


def the_record() -> tuple[Any, ...]:
    """The rows, without what only says when something arrived: ids, fences and our own times."""
    claims = [(*(str(getattr(c, name)) for name in ROW), lines(c)) for c in Claim.objects.all()]
    kept = IngestItem.objects.values_list("source", "event_id", "state", "reason", "digest")
    return sorted(claims), sorted(map(str, kept))


ROW = (
    *("state", "reason", "fence", "open_truth", "result", "flags", "conversation", "key"),
    *("call_id", "effect_class", "arguments", "arguments_digest", "repeat", "call"),
)


def lines(claim: Claim) -> list[tuple[str, ...]]:
    found = Event.objects.filter(claim_id=claim.pk).exclude(kind="granted", fence=1)
    return sorted(
        (
            "started" if e.kind == "granted" else str(e.kind),
            str(e.word),
            *(str((e.data or {}).get(m)) for m in ("said_at", "attempt", "elsewhere", "error")),
        )
        for e in found
    )


@settings(
    deadline=None, max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(stories(), st.randoms(), st.integers(min_value=1, max_value=4))
def test_any_batches_in_any_order_and_twice_give_the_same_rows(shop, refund, story, random, size):
    shuffled = [*story, *story]
    random.shuffle(shuffled)
    records = []
    for batches in (
        [of_tools(otlp_protobuf.spans(protobuf(story)))],
        [of_tools(otlp_json.spans(as_json(batch))) for batch in itertools.batched(shuffled, size)],
    ):
        with transaction.atomic():
            assert sum(otlp.take(shop.pk, None, batch).rejected for batch in batches) == 0
            records.append(the_record())
            assert [d for check in checks(clock_may_move=True) for d in check.find()] == []
            transaction.set_rollback(True)
    assert records[0] == records[1]
