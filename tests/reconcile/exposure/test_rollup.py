"""Days are summed up from real claims and real streams, and doing it again changes nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection

from effects.core.vocabulary import SightingWord
from effects.models import Tool, Workspace
from ledger import queries
from reconcile.exposure import measuring, rollup, tasks
from reconcile.models import (
    ExposureLevel,
    ImportedEvidence,
    RolledDay,
    StreamDay,
    ToolDay,
    ToolSlot,
    UnsureCall,
)
from tests.ledger.mirror import answer, event
from tests.support import desk

pytestmark = pytest.mark.django_db

BEGAN = datetime(2026, 11, 2, 9, 0, tzinfo=UTC)


def today() -> date:
    return queries.clock().astimezone(UTC).date()


def a_response(shop: Workspace, name: str, *, terminal: str = "success", **said: Any) -> None:
    """One response that called charge_card, told as a record of the whole. The arguments of its
    call ended 3 s after it began, and the response itself 240 ms later."""
    ended = BEGAN + timedelta(seconds=3)
    call = {
        "position": 0,
        "tool": "charge_card",
        "call_id": f"toolu_{name}",
        "arguments": "{}",
        "complete": True,
        "ended_at": ended.isoformat(),
    } | said.pop("call", {})
    usual: dict[str, Any] = {
        "stream": name,
        "conversation": f"talk-{name}",
        "turn_index": 1,
        "response_id": f"msg_{name}",
        "opened_at": BEGAN.isoformat(),
        "closed_at": (ended + timedelta(milliseconds=240)).isoformat(),
        "terminal": terminal,
        "calls": [call],
    }
    time = said.pop("time", None)
    told = event(f"e-{name}", "stream.recorded", time=time, **(usual | said))
    answer(shop.pk, told, streams=True)


def its_call(tool: Tool, name: str, **said: Any) -> Any:
    """The claim that a dispatcher makes for the call of that response."""
    usual: dict[str, Any] = {
        "conversation": f"talk-{name}",
        "turn_index": 1,
        "response_id": f"msg_{name}",
        "call_id": f"toolu_{name}",
    }
    return desk.a_call(tool, **(usual | said))


def rolled() -> None:
    assert rollup.roll(today())


def everything() -> list[Any]:
    return [
        list(model.objects.order_by(*order).values_list(*fields))
        for model, order, fields in (
            (ToolDay, ["tool_id"], ["tool_id", "responses", "in_window", "latency", "gap"]),
            (StreamDay, ["workspace_id"], ["success", "cut", "error_event", "in_window"]),
            (ToolSlot, ["at", "tool_id"], ["tool_id", "at", "calls", "unknown"]),
            (UnsureCall, ["claim_id"], ["claim_id", "unknown_at", "ended_at", "by", "race_at"]),
        )
    ]


def test_a_gap_is_measured_between_the_last_call_and_the_terminal_event() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    for number in range(3):
        a_response(shop, f"s{number}")
    rolled()
    day = ToolDay.objects.get(tool=tool)
    assert day.responses == 3
    counts = {int(number): n for number, n in day.gap.items()}
    assert counts == {measuring.bin_of(0.240): 3}


@pytest.mark.parametrize(
    "said",
    [
        {"call": {"ended_at": None}},  # the sender knows no time of its own for the call
        {"call": {"ended_at": None}, "time": BEGAN.isoformat()},  # the record's time is another
        {"closed_at": None},
        {"terminal": "cut"},  # a gap that was cut short is no gap
        {"call": {"complete": False, "ended_at": None}},
        {"closed_at": BEGAN.isoformat()},  # the sender's clock went back
    ],
)
def test_a_gap_that_nobody_saw_is_not_guessed(said: dict[str, Any]) -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    a_response(shop, "s", **said)
    rolled()
    assert ToolDay.objects.get(tool=tool).gap == {}


def test_a_call_told_by_an_event_of_its_own_ended_when_the_event_says() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    opened = event("o", "stream.opened", stream="s", conversation="c", turn_index=1)
    begun = event("b", "call.announced", stream="s", position=0, tool=tool.name, complete=False)
    whole = event("w", "call.announced", stream="s", position=0, tool=tool.name, complete=True)
    closed = event("z", "stream.closed", stream="s", terminal="success")
    for number, one in enumerate((opened, begun, whole, closed)):
        one["time"] = (BEGAN + timedelta(seconds=number)).isoformat()
    answer(shop.pk, opened, begun, whole, closed, streams=True)
    rolled()
    counts = {int(number): n for number, n in ToolDay.objects.get(tool=tool).gap.items()}
    assert counts == {measuring.bin_of(1.0): 1}


def test_a_response_that_failed_after_its_call_was_granted_failed_in_the_window() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    for name, terminal in (("cut", "cut"), ("error", "error_event"), ("fine", "success")):
        its_call(tool, name)
        a_response(shop, name, terminal=terminal)
    a_response(shop, "before", terminal="cut", call={"complete": False, "ended_at": None})
    # The turn is asked again and claims its call: that says nothing of the response that was cut.
    its_call(tool, "before", response_id="msg_again", call_id="toolu_again")
    # What provably never left leaves nothing behind.
    desk.not_sent(tool, its_call(tool, "unsent"))
    a_response(shop, "unsent", terminal="cut")
    rolled()
    of = StreamDay.objects.get(workspace=shop)
    assert (of.success, of.cut, of.error_event, of.in_window) == (1, 3, 1, 2)
    assert ToolDay.objects.get(tool=tool).in_window == 2


@pytest.mark.parametrize("knows", ["claim", "stream", "neither"])
def test_without_both_response_ids_the_call_id_of_a_whole_call_tells(knows: str) -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    its_call(tool, "s", **({} if knows == "claim" else {"response_id": None}))
    a_response(shop, "s", terminal="cut", response_id="msg_s" if knows == "stream" else None)
    its_call(tool, "weak", response_id=None)
    a_response(shop, "weak", terminal="cut", call={"complete": False, "ended_at": None})
    rolled()
    assert StreamDay.objects.get(workspace=shop).in_window == 1


def test_latency_is_measured_from_the_send_to_the_answer_of_answered_attempts() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    desk.complete(tool, desk.a_call(tool))
    desk.a_lost_call(tool)
    desk.not_sent(tool, desk.a_call(tool))
    rolled()
    counts = ToolDay.objects.get(tool=tool).latency
    assert sum(counts.values()) == 1


def test_the_latency_of_a_mirrored_attempt_is_by_its_senders_clock() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    made = event("m", "claim.made", claim="c", tool=tool.name, conversation="t", turn_index=1)
    started = event("a", "attempt.started", claim="c", attempt="1")
    sent = event("s", "attempt.sent", claim="c", attempt="1")
    done = event("d", "attempt.completed", claim="c", attempt="1")
    for seconds, one in ((0, made), (0.1, started), (0.18, sent), (1.0, done)):
        one["time"] = (BEGAN + timedelta(seconds=seconds)).isoformat()
    answer(shop.pk, made, started, sent, done)
    rolled()
    counts = {int(number): n for number, n in ToolDay.objects.get(tool=tool).latency.items()}
    assert counts == {measuring.bin_of(0.82): 1}


def test_rolling_a_day_again_gives_the_same() -> None:
    shop = desk.a_workspace()
    tool, voucher = desk.a_keyed_tool(shop), desk.an_unkeyed_tool(shop)
    for name, terminal in (("a", "success"), ("b", "cut")):
        desk.complete(tool, its_call(tool, name))
        a_response(shop, name, terminal=terminal)
    desk.a_lost_call(voucher)
    rolled()
    first = everything()
    assert all(first)
    rolled()
    assert everything() == first


def test_what_comes_late_is_in_the_next_roll_of_its_day() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    claim_id = desk.a_lost_call(tool)
    rollup.roll_due()
    before = UnsureCall.objects.get(claim_id=claim_id)
    assert (before.ended_at, before.by) == (None, "")
    desk.see(tool, claim_id, SightingWord.FOUND, counts=True, objects=("pi_9",))
    assert rollup.roll_due() >= 1
    after = UnsureCall.objects.get(claim_id=claim_id)
    assert after.by == "rule"
    assert after.ended_at is not None
    assert after.race_at == after.ended_at


def test_a_day_of_the_past_is_rolled_again_when_a_call_of_it_is_settled() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    claim_id = desk.a_lost_call(tool)
    day = today()
    rolled()
    desk.move_clock(timedelta(days=3))
    with connection.cursor() as cursor:
        cursor.execute("UPDATE effects_workspace SET created_at = created_at - interval '9 days'")
    rollup.roll_due()
    RolledDay.objects.filter(day__lt=day).update(rolled_at=BEGAN)  # so others are older
    desk.see(tool, claim_id, SightingWord.FOUND, counts=True, objects=("pi_9",))
    rollup.roll_due()
    assert UnsureCall.objects.get(claim_id=claim_id).by == "rule"


def test_a_window_that_closed_before_anybody_decided_was_missed() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop, window_seconds=3600)
    desk.a_lost_call(tool)
    rolled()
    call = UnsureCall.objects.get()
    assert call.race_at == call.window_until is not None


def test_a_late_word_about_a_call_that_is_done_is_no_doubt() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    asked = desk.a_call(tool)
    desk.complete(tool, asked)
    desk.lose(tool, asked)
    rolled()
    assert not UnsureCall.objects.exists()
    assert list(ToolSlot.objects.values_list("calls", "unknown")) == [(1, 0)]


def test_calls_are_counted_in_quarters_of_an_hour() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    desk.a_call(tool)
    desk.a_lost_call(tool)
    rolled()
    slot = ToolSlot.objects.get()
    assert (slot.calls, slot.unknown) == (2, 1)
    assert slot.at.minute % 15 == slot.at.second == slot.at.microsecond == 0


def test_another_workspace_is_summed_up_apart() -> None:
    shop, other = desk.a_workspace(), desk.a_workspace("other")
    desk.a_lost_call(desk.a_keyed_tool(shop))
    desk.complete(desk.a_keyed_tool(other), desk.a_call(Tool.objects.get(workspace=other)))
    rolled()
    assert UnsureCall.objects.get().workspace_id == shop.pk
    assert sorted(ToolSlot.objects.values_list("workspace_id", "calls")) == sorted(
        [(shop.pk, 1), (other.pk, 1)]
    )


def test_requests_that_a_provider_recorded_are_compared_with_the_granted_keys() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    claim = queries.claim(shop.pk, desk.claim_id_of(desk.a_call(tool)))
    granted = f"{claim.key}-1"
    keys = (granted, f'"{granted}"', "another", f"{claim.key}-2", None)
    for number, key in enumerate(keys):
        ImportedEvidence.objects.create(
            workspace=shop,
            source="provider",
            name=str(number),
            at=BEGAN,
            claim_id=claim.pk,
            facts={"key_seen": True} | ({"key": key} if key else {}),
            imported_at=BEGAN,
            run=uuid4(),
        )
    rolled()
    day = ToolDay.objects.get(tool=tool)
    assert (day.wire_same, day.wire_other, day.wire_missing) == (2, 2, 1)


def test_the_clock_rolls_what_is_due_and_keeps_the_level_of_the_hour() -> None:
    shop = desk.a_workspace()
    desk.a_lost_call(desk.a_keyed_tool(shop))
    (planned,) = [
        one for one in settings.CELERY_BEAT_SCHEDULE.values() if one["task"] == tasks.roll.name
    ]
    assert planned["schedule"] == 60.0
    tasks.roll()
    assert ToolSlot.objects.get().unknown == 1
    assert ExposureLevel.objects.filter(workspace=shop, bucket="all").get().calls == 1


def test_a_day_of_long_ago_is_rolled_again_in_its_turn_and_forgotten_in_the_end() -> None:
    desk.a_workspace()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE effects_workspace SET created_at = created_at - interval '20 days'")
    for _ in range(4):
        rollup.roll_due()
    assert not RolledDay.objects.filter(rolled_at=None).exists()
    oldest = RolledDay.objects.order_by("rolled_at").exclude(day=today()).first()
    assert oldest is not None
    rollup.roll_due()
    again = RolledDay.objects.get(day=oldest.day)
    assert oldest.rolled_at is not None
    assert again.rolled_at is not None
    assert again.rolled_at > oldest.rolled_at
    desk.move_clock(timedelta(days=rollup.KEPT_DAYS + 30))
    rollup.roll_due()
    assert not RolledDay.objects.filter(day=oldest.day).exists()
