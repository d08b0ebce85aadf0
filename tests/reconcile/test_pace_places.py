"""Where the count is kept: in Valkey for all workers, in a process while it is away; and for how
long the reads that a provider allows have to last."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from itertools import count

import pytest
from django.conf import LazySettings, settings
from hypothesis import given
from hypothesis import settings as given_settings
from hypothesis import strategies as st

from effects.contracts import CONTRACTS
from effects.core.vocabulary import SightingWord
from effects.models import Connection
from ledger import queries
from reconcile import pace
from reconcile.pacing.buckets import Answered, LocalBuckets, Rate, ValkeyBuckets
from tests.support.desk import a_call, a_keyed_tool, a_workspace, complete

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)
NOBODY_LISTENS = "redis://127.0.0.1:1/0"

_names = count(10**9)
"""Accounts that no connection of any test has."""


@pytest.fixture(autouse=True)
def _valkey_is_looked_for() -> Iterator[None]:
    pace.look_for_valkey()
    yield
    pace.look_for_valkey()


def shared() -> ValkeyBuckets:
    return ValkeyBuckets(settings.COUNTERFOIL_VALKEY_URL)


# Two places, one rule

SECONDS = st.integers(0, 20_000).map(lambda n: n / 1000)
ANSWERS = st.builds(
    lambda vain, hopeless, wait: (vain, vain and hopeless, wait),
    st.booleans(),
    st.booleans(),
    st.none() | st.integers(1, 60),
)
STEPS = st.lists(
    st.tuples(SECONDS, st.just("take") | st.integers(1, 40) | ANSWERS, st.sampled_from((0.5, 5.0))),
    max_size=25,
)


@given(steps=STEPS)
@given_settings(deadline=None, max_examples=60)
def test_valkey_and_a_process_count_alike(steps) -> None:
    name, local, remote, now = next(_names), LocalBuckets(), shared(), NOW
    for seconds, step, per_second in steps:
        now += seconds * SECOND
        rate = Rate(per_second=per_second, burst=3)
        for buckets in (local, remote):
            match step:
                case int():
                    buckets.spend(name, step, now, rate)
                case (vain, hopeless, wait):
                    until = now + wait * SECOND if wait else None
                    answered = Answered(in_vain=vain, hopeless=hopeless, wait_until=until)
                    buckets.note(name, answered, now, pace.BREAKER)
                case _:
                    pass
        if step == "take":
            here, there = (one.take(name, now, rate, pace.BREAKER) for one in (local, remote))
            assert (here is None) == (there is None)
            if here is not None and there is not None:
                assert abs(here - there) <= timedelta(microseconds=2)
        ours, theirs = local.kept(name), remote.kept(name)
        assert (ours.failures, ours.open_until) == (theirs.failures, theirs.open_until)
        assert ours.tokens_at(now, rate) == pytest.approx(theirs.tokens_at(now, rate), abs=1e-6)


def test_workers_never_spend_the_same_token() -> None:
    name, rate, start = next(_names), Rate(per_second=0.001, burst=7), threading.Barrier(8)
    workers = [shared() for _ in range(8)]

    def take(buckets: ValkeyBuckets) -> int:
        start.wait()
        return sum(buckets.take(name, NOW, rate, pace.BREAKER) is None for _ in range(10))

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, workers)) == 7


# Valkey is away


@pytest.fixture
def account(db: None) -> Connection:
    return Connection.objects.create(
        workspace=a_workspace(), name="Stripe", kind="stripe", base_url="https://api.stripe.com"
    )


@pytest.mark.parametrize("url", [NOBODY_LISTENS, ""], ids=["it is away", "there is none"])
def test_without_valkey_asking_goes_on_and_ten_times_more_slowly(
    account: Connection, settings: LazySettings, url: str
) -> None:
    settings.COUNTERFOIL_VALKEY_URL = url

    asked = sum(
        pace.may_ask(account.pk, now := NOW + tenth * SECOND / 10) <= now for tenth in range(200)
    )

    assert 7 <= asked <= 10, "twenty seconds at two questions in five seconds"
    assert not pace.standing(account.pk, NOW).shared


def test_without_valkey_an_account_that_fails_is_still_left_alone(
    account: Connection, settings: LazySettings
) -> None:
    for _ in range(pace.FAILURES_MAX):
        pace.note(account.pk, SightingWord.LOOKUP_FAILED, NOW)
    settings.COUNTERFOIL_VALKEY_URL = NOBODY_LISTENS

    assert pace.may_ask(account.pk, NOW) == NOW + pace.ALONE_FIRST


def test_valkey_is_found_again(account: Connection, settings: LazySettings) -> None:
    url = settings.COUNTERFOIL_VALKEY_URL
    settings.COUNTERFOIL_VALKEY_URL = NOBODY_LISTENS
    pace.may_ask(account.pk, NOW)
    settings.COUNTERFOIL_VALKEY_URL = url
    away = pace.standing(account.pk, NOW).shared
    pace.look_for_valkey()

    assert (away, pace.standing(account.pk, NOW).shared) == (False, True)


# The allowance of reads


@pytest.mark.parametrize(
    ("reads", "slows"), [(0, False), (7_999, False), (8_000, True), (10_000, True)]
)
def test_near_the_allowance_the_schedule_slows_and_says_so(
    account: Connection, reads: int, *, slows: bool
) -> None:
    pace.count_reads(account.pk, reads, NOW)

    assert pace.standing(account.pk, NOW).slowed_by_allowance is slows
    pace.may_ask(account.pk, NOW)
    waits = pace.may_ask(account.pk, NOW) - NOW
    assert (waits > 30 * SECOND) is slows
    assert pace.rate_of(account.pk, NOW).per_second * pace.DAY_SECONDS <= max(
        10_000 - reads, 1
    ) or (not slows)


def test_what_is_urgent_is_asked_although_the_allowance_is_used_up(account: Connection) -> None:
    pace.count_reads(account.pk, 10_000, NOW)
    pace.may_ask(account.pk, NOW)

    assert pace.may_ask(account.pk, NOW) > NOW + timedelta(hours=1)
    assert pace.may_ask(account.pk, NOW + SECOND, urgent=True) == NOW + SECOND


def test_every_transaction_allows_five_hundred_more(account: Connection) -> None:
    tool = a_keyed_tool(account.workspace, connection=account)
    now = queries.clock()
    for _ in range(21):
        complete(tool, a_call(tool))
    pace.count_reads(account.pk, 8_300, now)

    used = pace.allowance(account.pk, now)

    assert used is not None
    assert (used.reads_max, used.slows) == (10_500, False)


def test_the_figures_are_those_of_the_contract() -> None:
    terms = CONTRACTS["stripe.v1"]
    (limit,) = [one for one in terms.limits if one.seconds > pace.BRIEF_SECONDS]

    assert limit.requests == pace.READS_PER_TRANSACTION
    assert limit.seconds == pace.READS_DAYS * pace.DAY_SECONDS
    assert f"at least {pace.READS_MIN:,}" in limit.what


def test_reads_of_a_month_ago_count_no_more(account: Connection) -> None:
    pace.count_reads(account.pk, 10_000, NOW)

    assert pace.standing(account.pk, NOW + timedelta(days=29)).slowed_by_allowance
    assert not pace.standing(account.pk, NOW + timedelta(days=30)).slowed_by_allowance


def test_who_publishes_no_allowance_is_slowed_by_none(account: Connection) -> None:
    Connection.objects.filter(pk=account.pk).update(kind="http")
    pace.count_reads(account.pk, 10**6, NOW)

    assert pace.standing(account.pk, NOW).allowance is None
    assert pace.rate_of(account.pk, NOW) == pace.RATE
