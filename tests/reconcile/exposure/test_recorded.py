"""Real streams, read from their bytes by the agent's own reader and ingested, give their window."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import pytest

from effects.client.asking import ToolCall
from effects.client.clock import elapsed_clock_seconds
from effects.client.integrations.recording import stream_recorded
from effects.core.events import StreamRecorded
from effects.core.streams import Ending, Protocol, StreamReader
from effects.core.vocabulary import Terminal
from effects.models import Workspace
from ledger import queries
from ledger.models import Stream
from reconcile.exposure import measuring, rollup
from reconcile.models import StreamDay, ToolDay
from tests.ledger.mirror import answer, event
from tests.support import desk
from tests.support.model_wire import Names, Wire, body_of, wants

GAP_SECONDS = 0.03
BEFORE_THE_END = b"event: message_delta"


def read(clock: Callable[[], float], *, cut: bool = False) -> StreamRecorded:
    """A response of Anthropic's protocol as the agent keeps it: the provider takes GAP_SECONDS
    between the end of its only call and its last words, or says no more."""
    body = body_of(Wire.ANTHROPIC, wants(("charge_card", {"n": 1})), Names(), streamed=True)
    begin, end = body.split(BEFORE_THE_END)
    reader = StreamReader(Protocol.ANTHROPIC)
    reader.feed(begin, at=clock())
    time.sleep(GAP_SECONDS)
    if not cut:
        reader.feed(BEFORE_THE_END + end, at=clock())
    record = reader.close(Ending.RESET if cut else Ending.CLEAN)
    return stream_recorded(record, ToolCall(conversation="talk", turn_index=1), "s-1")


def keep(shop: Workspace, record: StreamRecorded) -> None:
    data = json.loads(record.model_dump_json(exclude_none=True))
    answer(shop.pk, event("e-1", "stream.recorded", **data), streams=True)
    assert rollup.roll(queries.clock().date())


@pytest.mark.django_db
def test_the_gap_that_a_provider_left_is_the_gap_that_is_measured() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    keep(shop, read(elapsed_clock_seconds))
    stream = Stream.objects.get()
    assert stream.opened_at is not None
    assert stream.closed_at is not None
    assert stream.opened_at <= stream.closed_at <= stream.received_at
    ((number, n),) = ToolDay.objects.get(tool=tool).gap.items()
    assert n == 1
    assert GAP_SECONDS * 0.98 <= measuring.middle_of(int(number)) < GAP_SECONDS + 1


@pytest.mark.django_db
def test_a_response_that_was_cut_before_its_end_has_no_gap_and_fails() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    record = read(elapsed_clock_seconds, cut=True)
    assert record.terminal is Terminal.CUT
    desk.a_call(
        tool,
        conversation="talk",
        turn_index=1,
        response_id=record.response_id,
        call_id=record.calls[0].call_id,
    )
    keep(shop, record)
    assert ToolDay.objects.get(tool=tool).gap == {}
    day = StreamDay.objects.get(workspace=shop)
    assert (day.cut, day.in_window) == (1, 1)


@pytest.mark.parametrize("off", [-7200.0, 3600.0, float("-inf")])
def test_an_instant_of_another_clock_is_no_time_of_day(off: float) -> None:
    record = read(lambda: max(0.0, elapsed_clock_seconds() + off))
    assert record.opened_at is None
    assert record.closed_at is None
    assert record.calls[0].ended_at is None
