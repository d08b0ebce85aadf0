"""When a provider is asked again."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.vocabulary import ClaimState, SightingWord
from reconcile.schedule import SETTLED, Plan, next_look

T0 = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)
WINDOW = T0 + 24 * HOUR

FRESH = Plan(
    now=T0 + MINUTE,
    tries=1,
    word=SightingWord.ABSENT,
    state=ClaimState.UNKNOWN,
    begun_at=T0,
    horizon=timedelta(days=30),
    lookups_max=50,
    window_until=WINDOW,
)


@pytest.mark.parametrize(
    ("changes", "pause"),
    [
        pytest.param({"tries": 1}, 5 * SECOND, id="soon after the first"),
        pytest.param({"tries": 2}, 10 * SECOND, id="twice as long after the second"),
        pytest.param({"tries": 7}, 320 * SECOND, id="and so on"),
        pytest.param({"tries": 20}, 15 * MINUTE, id="a quarter of an hour in the first hour"),
        pytest.param({"now": T0 + 10 * HOUR, "tries": 20}, 2 * HOUR, id="later a fifth of its age"),
        pytest.param(
            {"state": ClaimState.COMPLETED}, HOUR, id="slowly where only an attempt is open"
        ),
        pytest.param(
            {"state": ClaimState.COMPLETED, "now": T0 + 20 * HOUR},
            4 * HOUR,
            id="more slowly the longer it is settled",
        ),
        pytest.param({"word": SightingWord.RATE_LIMITED}, 30 * SECOND, id="asked to slow down"),
        pytest.param(
            {"word": SightingWord.RATE_LIMITED, "retry_after_seconds": 120},
            2 * MINUTE,
            id="asked to slow down and told for how long",
        ),
        pytest.param(
            {"word": SightingWord.MISCONFIGURED}, 15 * MINUTE, id="not before people mend it"
        ),
        pytest.param(
            {"look_again_at": T0 + MINUTE + 2 * SECOND}, 2 * SECOND, id="a second read at once"
        ),
        pytest.param(
            {"look_again_at": T0 + 50 * SECOND, "state": ClaimState.CLOSED},
            SECOND,
            id="a second read at once, also after a look-up that took its time",
        ),
        pytest.param({"heard_lately": True}, 15 * SECOND, id="later while webhooks arrive"),
        pytest.param(
            {"heard_lately": True, "look_again_at": T0 + MINUTE + 2 * SECOND},
            2 * SECOND,
            id="a second read at once, webhooks or not",
        ),
        pytest.param(
            {"strong_from": T0 + MINUTE + 3 * SECOND}, 4 * SECOND, id="when an absence counts"
        ),
    ],
)
def test_the_pause_after_a_look_up(changes: dict[str, Any], pause: timedelta) -> None:
    plan = replace(FRESH, **changes)

    assert next_look(plan) == plan.now + pause


@pytest.mark.parametrize("before", [2 * HOUR, 15 * MINUTE])
@pytest.mark.parametrize("tries", [20, 50, 5000])
@pytest.mark.parametrize("heard_lately", [False, True])
def test_a_closing_window_is_always_asked_about(
    before: timedelta, tries: int, *, heard_lately: bool
) -> None:
    plan = replace(FRESH, now=WINDOW - before - MINUTE, tries=tries, heard_lately=heard_lately)

    assert next_look(plan) == WINDOW - before


def test_an_absence_that_becomes_strong_is_looked_for_beyond_the_budget() -> None:
    plan = replace(FRESH, tries=50, strong_from=T0 + HOUR)

    assert next_look(plan) == T0 + HOUR + SECOND


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"tries": 50, "window_until": None}, id="the budget is spent"),
        pytest.param({"now": T0 + timedelta(days=30)}, id="the horizon is reached"),
        pytest.param(
            {"tries": 50, "look_again_at": T0 + HOUR, "window_until": None},
            id="answers that go to and fro do not outlive the budget",
        ),
        pytest.param(
            {"tries": 50, "state": ClaimState.NOT_EXECUTED, "strong_from": T0 + HOUR},
            id="settled and the budget is spent",
        ),
    ],
)
def test_asking_ends_and_nothing_is_concluded(changes: dict[str, Any]) -> None:
    assert next_look(replace(FRESH, **changes)) is None


def test_a_window_of_minutes_is_looked_at_several_times() -> None:
    times = simulated(replace(FRESH, now=T0, window_until=T0 + 10 * MINUTE))

    assert sum(at < T0 + 10 * MINUTE for at in times) >= 6


def test_the_default_budget_lasts_for_a_month_and_for_every_deadline() -> None:
    times = simulated(replace(FRESH, now=T0, strong_from=T0 + 15 * MINUTE))

    assert {WINDOW - 2 * HOUR, WINDOW - 15 * MINUTE, T0 + 15 * MINUTE + SECOND} <= set(times)
    assert times[-1] > T0 + timedelta(days=24)
    assert len(times) <= 55


def simulated(plan: Plan) -> list[datetime]:
    """All look-ups of a claim about which the provider never says anything new."""
    times = []
    while (at := next_look(plan)) is not None:
        times.append(at)
        plan = replace(plan, now=at, tries=plan.tries + 1)
    return times


instants = st.integers(-1000, 10**6).map(lambda seconds: T0 + timedelta(seconds=seconds))
plans = st.builds(
    Plan,
    now=st.integers(0, 40 * 86_400).map(lambda seconds: T0 + timedelta(seconds=seconds)),
    tries=st.integers(0, 200),
    word=st.sampled_from(SightingWord),
    state=st.sampled_from(ClaimState),
    begun_at=st.just(T0),
    horizon=st.just(timedelta(days=30)),
    lookups_max=st.integers(0, 100),
    window_until=st.none() | instants,
    strong_from=st.none() | instants,
    look_again_at=st.none() | instants,
    retry_after_seconds=st.none() | st.integers(0, 10**6),
)


@given(plan=plans)
def test_a_plan_lies_ahead_and_within_the_horizon(plan: Plan) -> None:
    at = next_look(plan)

    if at is None:
        return
    assert plan.now < at <= T0 + plan.horizon
    if plan.state in SETTLED and plan.look_again_at is None:
        assert at - plan.now >= HOUR
