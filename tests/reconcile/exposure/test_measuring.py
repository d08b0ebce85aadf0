"""The arithmetic of exposure: the source's own figures, and the laws that it follows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.exposure import measuring, words
from reconcile.exposure.measuring import Absorbs, Measured, Rate, Times, Wire

RATES = st.floats(min_value=0.0, max_value=1.0)
VOLUMES = st.floats(min_value=0.0, max_value=1e7)
SECONDS = st.floats(min_value=0.001, max_value=86_400.0)
COUNTS = st.dictionaries(st.integers(0, 900), st.integers(1, 50), min_size=1, max_size=30)


def test_the_window_is_the_tools_time_and_the_gap_one_after_the_other() -> None:
    """820 ms and 240 ms are a little over a second, not the larger of the two."""
    assert measuring.window(0.820, 0.240) == pytest.approx(1.060)


@pytest.mark.parametrize(
    ("failure_rate", "share", "volume", "one_in", "a_month"),
    [
        (0.006, 0.11, 3_000, 1_515, 1.98),  # "roughly one turn in fifteen hundred"
        (0.006, 0.11, 6_400, 1_515, 4.22),  # "a few thousand payment turns: several"
        (0.006, 0.11, 100, 1_515, 0.066),  # "negligible on a hundred turns a month"
        (0.006, 0.11, 100_000, 1_515, 66.0),  # "a weekly incident", and more, on 100,000
        (0.006, 1.0, 3_000, 167, 18.0),  # if every failure landed in the window
    ],
)
def test_the_figures_of_the_source(
    failure_rate: float, share: float, volume: int, one_in: int, a_month: float
) -> None:
    assert round(1 / measuring.chance(failure_rate, share)) == one_in
    assert measuring.expected(failure_rate, share, volume) == pytest.approx(a_month, rel=0.01)


@given(rate=RATES, share=RATES, volume=VOLUMES, more=st.floats(1.0, 10.0))
def test_more_of_any_factor_never_means_fewer_duplicates(
    rate: float, share: float, volume: float, more: float
) -> None:
    before = measuring.expected(rate, share, volume)
    assert measuring.expected(min(1.0, rate * more), share, volume) >= before
    assert measuring.expected(rate, min(1.0, share * more), volume) >= before
    assert measuring.expected(rate, share, volume * more) >= before


@given(rate=RATES, share=RATES, volume=VOLUMES)
def test_nothing_fails_twice_where_nothing_fails_and_never_more_than_there_is(
    rate: float, share: float, volume: float
) -> None:
    assert measuring.expected(0.0, share, volume) == 0.0
    assert measuring.expected(rate, 0.0, volume) == 0.0
    assert measuring.expected(rate, share, volume) <= volume


@given(rate=RATES, share=RATES, count=st.integers(0, 10**6), days=st.integers(1, 400))
def test_twice_the_days_at_the_same_count_is_half_a_month(
    rate: float, share: float, count: int, days: int
) -> None:
    once = measuring.expected(rate, share, measuring.a_month(count, days))
    spread = measuring.expected(rate, share, measuring.a_month(count, 2 * days))
    assert spread * 2 == pytest.approx(once)
    assert measuring.a_month(count, measuring.MONTH_DAYS) == count


def test_no_day_is_no_month() -> None:
    with pytest.raises(ValueError, match="no day"):
        measuring.a_month(3, 0)


@given(latency=SECONDS, gap=SECONDS, more=st.floats(0.0, 100.0))
def test_a_slower_tool_has_a_longer_window_and_no_tool_makes_it_shorter_than_the_gap(
    latency: float, gap: float, more: float
) -> None:
    assert measuring.window(latency + more, gap) >= measuring.window(latency, gap)
    assert measuring.window(0.0, gap) == gap
    # In another unit it is the same length.
    in_ms = measuring.window(latency * 1000, gap * 1000)
    assert in_ms == pytest.approx(1000 * measuring.window(latency, gap))


# Times by bin


@given(seconds=SECONDS)
def test_a_bin_stands_for_its_times_within_one_percent(seconds: float) -> None:
    middle = measuring.middle_of(measuring.bin_of(seconds))
    assert middle == pytest.approx(seconds, rel=0.0101)


@given(times=st.lists(SECONDS, min_size=1, max_size=200), share=st.floats(0.01, 1.0))
def test_a_quantile_of_bins_is_the_nearest_rank_of_the_times(
    times: list[float], share: float
) -> None:
    counts: dict[int, int] = {}
    for seconds in times:
        number = measuring.bin_of(seconds)
        counts[number] = counts.get(number, 0) + 1
    rank = sorted(times)[max(1, math.ceil(share * len(times))) - 1]
    assert measuring.quantile(counts, share) == pytest.approx(rank, rel=0.0101)


@given(parts=st.lists(COUNTS, max_size=5))
def test_days_add_up_to_the_same_whatever_their_order(parts: list[dict[int, int]]) -> None:
    assert measuring.merged(parts) == measuring.merged(reversed(parts))
    total = sum(sum(part.values()) for part in parts)
    assert sum(measuring.merged(parts).values()) == total


def test_nothing_has_no_quantile() -> None:
    assert measuring.quantile({}, 0.5) is None


@pytest.mark.parametrize(("n", "enough"), [(0, False), (19, False), (20, True)])
def test_too_few_times_have_no_percentile(n: int, *, enough: bool) -> None:
    times = measuring.times_of({10: n} if n else {})
    assert (times.n, times.enough) == (n, enough)
    assert (times.slow is not None) == enough


# Rates


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [
        # Known values of the interval at 95 %.
        (0, 10, 0.0, 0.2775),
        (1, 10, 0.0179, 0.4042),
        (5, 10, 0.2366, 0.7634),
        (38, 6_400, 0.00433, 0.00814),
        (4, 38, 0.0417, 0.2413),
        (10, 10, 0.7225, 1.0),
        (0, 0, 0.0, 1.0),
    ],
)
def test_wilsons_interval(hits: int, of: int, low: float, high: float) -> None:
    assert measuring.wilson(hits, of) == pytest.approx((low, high), abs=5e-4)


@given(of=st.integers(1, 10**6), data=st.data())
def test_the_interval_holds_the_share_and_narrows_with_more(of: int, data: st.DataObject) -> None:
    hits = data.draw(st.integers(0, of))
    low, high = measuring.wilson(hits, of)
    assert 0.0 <= low <= hits / of <= high <= 1.0
    wider = measuring.wilson(hits * 4, of * 4)
    assert wider[1] - wider[0] <= high - low


def test_too_few_to_say_have_bounds_and_no_share() -> None:
    few = Rate(hits=1, of=9, least=10)
    assert few.share is None
    assert few.bounds == measuring.wilson(1, 9)
    assert Rate(hits=1, of=10, least=10).share == 0.1
    assert Rate(hits=0, of=0, least=0).share is None


# A tool


def of_a_tool(**changes: object) -> Measured:
    usual: dict[str, object] = {
        "latency": Times(n=500, typical=0.82, slow=1.9),
        "gap": Times(n=500, typical=0.24, slow=0.4),
        "failures": 38,
        "ended": 6_400,
        "in_window": 4,
        "announced": 6_400,
        "days": 30,
        "absorbs": Absorbs.NOTHING,
    }
    return Measured(**(usual | changes))  # type: ignore[arg-type]  # names and values above


def test_a_tool_of_the_sources_deployment() -> None:
    tool = of_a_tool()
    assert tool.window == pytest.approx(1.06)
    assert tool.slow_window == pytest.approx(2.3)
    assert tool.failure_rate.share == pytest.approx(0.006, rel=0.02)
    assert tool.share_in_window.share == pytest.approx(0.11, rel=0.05)
    assert tool.expected == pytest.approx(4.0)  # What was counted is what is expected.
    assert tool.one_in == 1_600
    assert tool.expected_bounds is not None
    low, high = tool.expected_bounds
    assert low < 4.0 < high


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"failures": 0, "in_window": 0}, 0.0),
        ({"in_window": 0}, 0.0),
        ({"failures": 9}, None),  # too few failures to share out
        ({"ended": 99, "failures": 20}, None),  # too few responses for a rate
        ({"days": 6}, None),  # not a whole week
        ({"days": 7}, 4.0 * 30 / 7),
        ({"announced": 0, "in_window": 0}, None),  # nothing called it, which says nothing
    ],
)
def test_a_factor_that_is_not_measured_leaves_no_product(
    changes: dict[str, int], expected: float | None
) -> None:
    found = of_a_tool(**changes).expected
    assert found == (None if expected is None else pytest.approx(expected))


def test_a_window_needs_both_of_its_parts() -> None:
    few = Times(n=3, typical=None, slow=None)
    assert of_a_tool(gap=few).window is None
    assert of_a_tool(latency=few).window is None
    assert of_a_tool(latency=few).slow_window is None


def test_the_slowest_tool_defines_the_exposure_and_not_the_average() -> None:
    windows = {"sms": 0.65, "ship": 3.64, "card": 1.06, "new": None}
    assert measuring.slowest(windows) == "ship"
    assert measuring.slowest({"new": None}) is None


@pytest.mark.parametrize(
    ("keyed", "wire", "absorbs"),
    [
        (False, Wire(), Absorbs.NOTHING),
        (False, Wire(same=9), Absorbs.NOTHING),
        (True, Wire(), Absorbs.NOT_SEEN),  # a key that nobody saw is not counted on
        (True, Wire(same=1), Absorbs.KEY),
        (True, Wire(same=900, missing=1), Absorbs.BROKEN),
        (True, Wire(same=900, other=1), Absorbs.BROKEN),
    ],
)
def test_only_a_key_that_was_seen_absorbs_anything(
    wire: Wire, absorbs: Absorbs, *, keyed: bool
) -> None:
    assert wire.absorbs(keyed=keyed) is absorbs


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.0002, "1 ms"), (0.24, "240 ms"), (0.9994, "999 ms"), (0.9996, "1.00 s"), (1.06, "1.06 s"),
     (9.996, "10.0 s"), (59.4, "59.4 s"), (61, "1 m")],
)  # fmt: skip
def test_times_are_said_with_the_digits_that_mean_something(seconds: float, said: str) -> None:
    assert words.time_words(seconds) == said


@pytest.mark.parametrize(
    ("percent", "said"),
    [(0.0, "0 %"), (0.06, "0.06 %"), (0.6, "0.6 %"), (11.1111, "11.1 %"), (99.99, "99.9 %"),
     (100.0, "100 %")],
)  # fmt: skip
def test_what_is_not_all_is_never_said_to_be_all(percent: float, said: str) -> None:
    assert words.percent_words(percent) == said


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0"), (0.066, "0.066"), (4.22, "4.2"), (1234.5, "1,234")]
)
def test_expected_numbers_in_words(number: float, said: str) -> None:
    assert words.expected_words(number) == said
