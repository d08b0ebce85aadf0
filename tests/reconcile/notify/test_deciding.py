"""Whom to tell now: a table of situations, and what holds for every one of them."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.money import Money
from reconcile.notify.deciding import ACK_MAX, LEAD, ack_until, quiet_end, standing, what_to_send
from reconcile.notify.facts import Ack, Condition, Quiet, Rule, Subject, Told, Why

NOW = datetime(2027, 1, 15, 12, 0, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
C = Condition
NIGHT = Quiet(start=time(22), end=time(7), zone="Europe/Berlin")  # 21:00 to 06:00 UTC in January
IN_THE_NIGHT = datetime(2027, 1, 15, 23, 0, tzinfo=UTC)
MORNING = datetime(2027, 1, 16, 6, 0, tzinfo=UTC)


def rule(condition: Condition = C.CLOSING, **more: Any) -> Rule:
    usual: dict[str, Any] = {"id": 1, "repeat": 4 * HOUR, "within": 2 * HOUR}
    return Rule(condition=condition, **(usual | more))


def call(number: int = 1, *, amount: str | None = "149.00", **more: Any) -> Subject:
    claim_id = UUID(int=number)
    usual: dict[str, Any] = {
        "claim_id": claim_id,
        "tool": "charge_card",
        "effect_class": "keyed_write",
        "money": Money(amount=Decimal(amount), currency="EUR") if amount else None,
        "deadline": NOW + HOUR,
        "needs": True,
        "untaken_since": NOW - HOUR,
    }
    return Subject(key=f"call:{claim_id}", **(usual | more))


def keys(*about: Any) -> list[list[str]]:
    return [[item.subject.key for item in notice.items] for notice in what_to_send(*about)]


def tells(a_rule: Rule, subject: Subject, now: datetime = NOW, acks: Any = (), log: Any = ()):
    return bool(what_to_send(now, [a_rule], [subject], acks, log))


ONE = call(1)
CLOSES = f"closes {ONE.deadline.isoformat()}" if ONE.deadline else ""


def told(at: datetime, situation: str = CLOSES, key: str = ONE.key, rule_id: int = 1) -> Told:
    return Told(rule_id=rule_id, key=key, situation=situation, at=at)


def ack(at: datetime, until: datetime, situation: str = CLOSES, key: str = ONE.key) -> Ack:
    return Ack(rule_id=1, key=key, situation=situation, at=at, until=until)


@pytest.mark.parametrize(
    ("a_rule", "subject", "speaks"),
    [
        (rule(), call(deadline=NOW + 2 * HOUR), False),
        (rule(), call(deadline=NOW + 2 * HOUR - timedelta(seconds=1)), True),
        (rule(), call(deadline=NOW), False),  # it came too late to be of use
        (rule(), call(deadline=NOW - HOUR), False),
        (rule(), call(deadline=None), False),  # no key, or nobody publishes how long
        (rule(), call(needs=False), False),
        (rule(), call(resting=True), False),  # put off, or a decision is held
        (rule(C.UNTAKEN), call(untaken_since=NOW - 2 * HOUR), True),
        (rule(C.UNTAKEN), call(untaken_since=NOW - 2 * HOUR + MINUTE), False),
        (rule(C.UNTAKEN), call(untaken_since=None), False),
        (rule(C.UNTAKEN), call(untaken_since=NOW - 9 * HOUR, deadline=NOW - HOUR), True),
        (rule(C.UNTAKEN), call(untaken_since=NOW - 9 * HOUR, resting=True), False),
        (rule(C.OTHERWISE), call(otherwise="told otherwise at 7", needs=False), True),
        (rule(C.OTHERWISE), call(otherwise="conflicted", resting=True), False),
        (rule(C.OTHERWISE), call(), False),
        (rule(C.LOOKUPS), call(ended="asking ended"), True),
        (rule(C.LOOKUPS), Subject(key="connection:3", ended="left alone"), True),
        (rule(C.LOOKUPS, tool="charge_card"), Subject(key="connection:3", ended="x"), False),
        (rule(C.LOOKUPS), call(), False),
        (rule(C.SECOND_PERSON), call(waits="request 5", waits_until=NOW + HOUR), True),
        (rule(C.SECOND_PERSON), call(waits="request 5", waits_until=NOW), False),
        (rule(C.SECOND_PERSON), call(), False),
        (rule(tool="refund"), call(), False),
        (rule(tool="charge_card"), call(), True),
        (rule(effect_class="unkeyed_write"), call(), False),
        (rule(amount_from=Decimal(149)), call(), True),
        (rule(amount_from=Decimal("149.01")), call(), False),
        (rule(amount_from=Decimal(1), currency="USD"), call(), False),
        (rule(amount_from=Decimal(10**6)), call(amount=None), True),  # not known counts as large
        (rule(C.EXPOSURE, amount=Decimal(149), currency="EUR"), call(), False),
        (rule(C.EXPOSURE, amount=Decimal("148.99"), currency="EUR"), call(), True),
        (rule(C.EXPOSURE, amount=Decimal(1), currency="USD"), call(), False),
        (rule(C.EXPOSURE, amount=Decimal(1), currency="EUR"), call(amount=None), False),
        (rule(C.EXPOSURE, amount=Decimal(1), currency="EUR"), call(needs=False), False),
    ],
)
def test_a_rule_is_true_of_what_it_says_and_of_nothing_else(
    a_rule: Rule, subject: Subject, *, speaks: bool
) -> None:
    assert tells(a_rule, subject) is speaks


@pytest.mark.parametrize(
    ("acks", "log", "speaks"),
    [
        ([], [told(NOW - HOUR)], False),
        ([], [told(NOW - 4 * HOUR)], True),  # the repeat is due
        ([], [told(NOW - HOUR, "closes another time")], True),  # its situation changed
        ([], [told(NOW - HOUR, key="call:other")], True),
        ([], [told(NOW - HOUR, rule_id=2)], True),
        ([], [told(NOW - 9 * HOUR), told(NOW - HOUR)], False),
        # Flapping: what was told lately is not told again because something else came between.
        ([], [told(NOW - 2 * HOUR), told(NOW - HOUR, "closes another time")], False),
        ([ack(NOW - MINUTE, NOW + MINUTE)], [told(NOW - 9 * HOUR)], False),
        ([ack(NOW - HOUR, NOW)], [told(NOW - 2 * HOUR)], True),  # it ended, and it is still so
        ([ack(NOW - HOUR, NOW - MINUTE)], [told(NOW - MINUTE)], False),  # that was told
        ([ack(NOW - MINUTE, NOW + HOUR, "closes another time")], [], True),
        ([ack(NOW - MINUTE, NOW + HOUR, key="call:other")], [], True),  # hides no other call
        # Half an hour before the end nothing is silenced, whatever was stored.
        ([ack(NOW - 31 * MINUTE, NOW + 9 * HOUR)], [told(NOW - 2 * HOUR)], False),
    ],
)
def test_what_was_told_or_acknowledged_silences_that_alone_and_for_a_time(
    acks: list[Ack], log: list[Told], *, speaks: bool
) -> None:
    assert tells(rule(), ONE, acks=acks, log=log) is speaks


def test_in_the_last_half_hour_of_a_window_an_acknowledgement_has_ended() -> None:
    stored = ack(NOW - HOUR, NOW + 9 * HOUR)
    log = [told(NOW - 2 * HOUR)]
    assert not tells(rule(), ONE, NOW + HOUR - LEAD - MINUTE, [stored], log)
    assert tells(rule(), ONE, NOW + HOUR - LEAD, [stored], log)


@pytest.mark.parametrize(
    ("deadline", "until"),
    [
        (None, NOW + ACK_MAX),
        (NOW + 30 * HOUR, NOW + ACK_MAX),
        (NOW + 3 * HOUR, NOW + 3 * HOUR - LEAD),
        (NOW + LEAD, None),  # too late: it is spoken of until somebody decides
        (NOW - HOUR, NOW + ACK_MAX),  # a closed window hurries nobody
    ],
)
def test_a_call_is_silenced_for_a_day_and_to_half_an_hour_before_its_end_at_most(
    deadline: datetime | None, until: datetime | None
) -> None:
    assert ack_until(NOW, deadline) == until


@pytest.mark.parametrize(
    ("condition", "deadline", "wake", "why"),
    [
        (C.CLOSING, MORNING + LEAD, None, None),  # there is time enough after the night
        (C.CLOSING, MORNING + LEAD - MINUTE, None, Why.CLOSES_FIRST),
        (C.CLOSING, IN_THE_NIGHT + HOUR, None, Why.CLOSES_FIRST),
        (C.CLOSING, MORNING + HOUR, 9 * HOUR, Why.WAKES),
        (C.CLOSING, MORNING + HOUR, 7 * HOUR, None),
        (C.UNTAKEN, None, None, None),
        (C.UNTAKEN, IN_THE_NIGHT - HOUR, 9 * HOUR, None),  # closed already: it can wait
        (C.UNTAKEN, IN_THE_NIGHT + HOUR, None, Why.CLOSES_FIRST),
        (C.SECOND_PERSON, MORNING + 9 * HOUR, None, Why.CLOSES_FIRST),  # the request expires
    ],
)
def test_quiet_hours_hold_back_what_can_wait_and_nothing_else(
    condition: Condition, deadline: datetime | None, wake: timedelta | None, why: Why | None
) -> None:
    a_rule = rule(condition, within=20 * HOUR, quiet=replace(NIGHT, wake_below=wake))
    subject = call(
        deadline=deadline,
        untaken_since=NOW - 20 * HOUR,
        waits="request 5",
        waits_until=MORNING,
    )
    state = standing(IN_THE_NIGHT, [a_rule], [subject], [], [])[1]
    assert [notice.why for notice in what_to_send(IN_THE_NIGHT, [a_rule], [subject], [], [])] == (
        [why] if why else []
    )
    assert bool(state.held) is (why is None)
    assert state.quiet_until == MORNING
    if why is None:
        assert tells(a_rule, subject, MORNING), "it is told at their end"


@pytest.mark.parametrize(
    ("now", "quiet", "end"),
    [
        (IN_THE_NIGHT, NIGHT, MORNING),
        (datetime(2027, 1, 16, 5, 59, tzinfo=UTC), NIGHT, MORNING),
        (MORNING, NIGHT, None),
        (datetime(2027, 1, 15, 20, 59, tzinfo=UTC), NIGHT, None),
        (NOW, Quiet(start=time(12), end=time(13), zone="UTC"), NOW + HOUR),
        (NOW, Quiet(start=time(12), end=time(12), zone="UTC"), None),
        (NOW, None, None),
        # The night in which the clocks go forward is an hour shorter: 7:00 is 5:00 UTC then.
        (datetime(2027, 3, 27, 23, 0, tzinfo=UTC), NIGHT, datetime(2027, 3, 28, 5, tzinfo=UTC)),
        (datetime(2027, 10, 30, 22, 0, tzinfo=UTC), NIGHT, datetime(2027, 10, 31, 6, tzinfo=UTC)),
    ],
)
def test_quiet_hours_are_of_their_zone_and_go_over_midnight(
    now: datetime, quiet: Quiet | None, end: datetime | None
) -> None:
    assert quiet_end(now, quiet) == end


def test_one_notice_holds_all_calls_of_a_rule_the_most_urgent_first() -> None:
    soon, small, large = (
        call(1, deadline=NOW + MINUTE),
        call(2, amount="1.00"),
        call(3, amount="900.00"),
    )
    unknown = call(4, amount=None)
    (notice,) = what_to_send(NOW, [rule()], [unknown, small, large, soon], [], [told(NOW, key="x")])
    assert [item.subject for item in notice.items] == [soon, large, small, unknown]
    assert notice.of_all == 4


def test_exposure_tells_the_sum_with_what_is_put_off_and_names_what_is_not() -> None:
    a_rule = rule(C.EXPOSURE, amount=Decimal(200), currency="EUR")
    (notice,) = what_to_send(NOW, [a_rule], [call(1), call(2, resting=True)], [], [])
    assert notice.total == Money(amount=Decimal("298.00"), currency="EUR")
    assert [item.subject.key for item in notice.items] == [call(1).key]
    assert keys(
        NOW,
        [a_rule],
        [call(1), call(3), call(4)],
        [],
        [told(NOW - MINUTE, "above 200 EUR", call(one).key) for one in (1, 3)],
    ) == [[call(4).key]], "a new call is told, and the others not again"


# Laws

offsets = st.integers(-40, 40).map(lambda n: timedelta(minutes=37 * n))
instants = offsets.map(lambda offset: NOW + offset)
quiets = st.builds(
    Quiet,
    start=st.times(),
    end=st.times(),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]),
    wake_below=st.none() | st.sampled_from([HOUR, 9 * HOUR]),
)
rules = st.builds(
    rule,
    st.sampled_from(list(Condition)),
    id=st.integers(1, 3),
    within=st.sampled_from([30 * MINUTE, 2 * HOUR, 20 * HOUR]),
    repeat=st.sampled_from([15 * MINUTE, 4 * HOUR]),
    amount=st.sampled_from([Decimal(0), Decimal(200)]),
    currency=st.just("EUR"),
    quiet=st.none() | quiets,
)
calls = st.builds(
    call,
    st.integers(1, 5),
    amount=st.none() | st.sampled_from(["1.00", "150.00"]),
    deadline=st.none() | instants,
    needs=st.booleans(),
    resting=st.booleans(),
    untaken_since=st.none() | instants,
    otherwise=st.sampled_from(["", "conflicted"]),
    ended=st.sampled_from(["", "asking ended"]),
    waits=st.sampled_from(["", "request 5"]),
    waits_until=st.none() | instants,
)
worlds = st.tuples(
    st.lists(rules, max_size=3, unique_by=lambda one: one.id),
    st.lists(calls, max_size=5, unique_by=lambda one: one.key),
)


def as_told(notices: Any, at: datetime) -> list[Told]:
    return [
        Told(rule_id=n.rule_id, key=item.subject.key, situation=item.situation, at=at)
        for n in notices
        for item in n.items
    ]


@given(worlds, instants, st.randoms(use_true_random=False))
def test_the_order_of_what_is_known_changes_nothing(
    world: Any, now: datetime, chance: random.Random
) -> None:
    some_rules, some_calls = world
    log = as_told(what_to_send(now - 3 * HOUR, some_rules, some_calls, [], []), now - 3 * HOUR)
    expected = what_to_send(now, some_rules, some_calls, [], log)
    for listed in (some_rules, some_calls, log):
        chance.shuffle(listed)
    assert what_to_send(now, some_rules, some_calls, [], log) == expected


@given(worlds, instants, st.lists(st.integers(1, 90), min_size=1, max_size=12))
def test_nothing_is_told_twice_before_it_may_be_repeated(
    world: Any, start: datetime, steps: list[int]
) -> None:
    some_rules, some_calls = world
    repeat = {one.id: one.repeat for one in some_rules}
    log: list[Told] = []
    now = start
    for minutes in steps:
        now += minutes * MINUTE
        new = as_told(what_to_send(now, some_rules, some_calls, [], log), now)
        for one in new:
            before = [
                t.at
                for t in log
                if (t.rule_id, t.key, t.situation) == (one.rule_id, one.key, one.situation)
            ]
            assert all(now - at >= repeat[one.rule_id] for at in before)
        log += new


@given(quiets, st.integers(1, 1439), st.sampled_from([30, 120, 1200]))
def test_no_window_closes_in_silence(quiet: Quiet, minutes: int, within: int) -> None:
    """Looked at every five minutes until the end, whatever the quiet hours: a call whose window
    closes is told while there is still time, or as soon as the rule is true of it."""
    a_rule = rule(quiet=quiet, within=within * MINUTE)
    end = NOW + minutes * MINUTE
    subject = call(deadline=end)
    first = next(
        now
        for now in (NOW + step * 5 * MINUTE for step in range(289))
        if tells(a_rule, subject, now) or now >= end
    )
    latest = max(NOW, end - min(within * MINUTE, LEAD)) + 5 * MINUTE
    assert first < end if minutes > 5 else first == NOW
    assert first <= latest


@given(rules, calls, instants, st.integers(1, 24))
def test_an_acknowledgement_ends_and_it_is_told_again_if_it_is_still_so(
    a_rule: Rule, subject: Subject, now: datetime, hours: int
) -> None:
    a_rule = replace(a_rule, quiet=None)
    first = as_told(what_to_send(now, [a_rule], [subject], [], []), now)
    end = ack_until(now, subject.deadline)
    if not first or end is None:
        return
    until = min(end, now + hours * HOUR)
    silent = Ack(
        rule_id=a_rule.id, key=subject.key, situation=first[0].situation, at=now, until=until
    )
    assert not what_to_send(until - MINUTE, [a_rule], [subject], [silent], first)
    still = standing(until, [a_rule], [subject], [], [])[a_rule.id].true_of
    told_again = what_to_send(until, [a_rule], [subject], [silent], first)
    assert [n.items for n in told_again] == ([still] if still else [])
    other = replace(subject, key="call:another")
    assert not still or any(
        item.subject == other
        for n in what_to_send(until - MINUTE, [a_rule], [subject, other], [silent], first)
        for item in n.items
    ), "it hides no other call"


@given(worlds, instants)
def test_the_preview_and_what_is_sent_are_the_same(world: Any, now: datetime) -> None:
    some_rules, some_calls = world
    states = standing(now, some_rules, some_calls, [], [])
    sent = {n.rule_id: n.items for n in what_to_send(now, some_rules, some_calls, [], [])}
    assert sent == {one: state.told_now for one, state in states.items() if state.told_now}
    for state in states.values():
        assert {*state.told_now, *state.held} == {*state.true_of}
