"""Laws of a shared reading over random lists and random limits, at the real provider."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters import stripe_reading, stripe_scan
from reconcile.adapters.base import KeyLife, Probe
from reconcile.adapters.stripe_client import forget_accounts
from reconcile.adapters.stripe_kinds import PAYMENT_INTENTS
from reconcile.adapters.stripe_scan import scan_for
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.probes import a_probe
from tests.reconcile.adapters.stripe_rows import SCOPE, a_row, claim_number, enter

SETTLED = timedelta(minutes=20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Called:
    """A call that began so many minutes ago, and when after that its effect came, if it did."""

    minutes_ago: int
    effect_after: int | None
    settled: bool


def _call(ago: int, *, settled: bool) -> st.SearchStrategy[Called]:
    # Where an attempt may still be at work, its effect may come at any time.
    latest = 19 if settled else ago
    after = st.none() | st.integers(0, latest)
    return st.builds(Called, minutes_ago=st.just(ago), effect_after=after, settled=st.just(settled))


CALL = st.tuples(st.integers(20, 3000), st.booleans()).flatmap(
    lambda drawn: _call(drawn[0], settled=drawn[1])
)
CALLS = st.lists(CALL, min_size=1, max_size=5)
NOISE = st.lists(st.integers(0, 3100), min_size=5, max_size=25)
LIMITS = st.fixed_dictionaries(
    {"size": st.integers(1, 4), "pages": st.integers(1, 4), "slices": st.integers(0, 3)}
)


def test_no_reading_however_short_says_that_nothing_is_there_where_something_is(
    tmp_path: Path,
) -> None:
    with Provider(tmp_path / "sandbox") as provider:
        _law(provider)


def _law(provider: Provider) -> None:
    @settings(deadline=None, max_examples=80)
    @given(CALLS, NOISE, LIMITS)
    def law(calls: list[Called], noise: list[int], limits: dict[str, int]) -> None:
        forget_accounts()
        now = datetime.now(UTC).replace(microsecond=0)
        _fill(provider, now, calls, noise)
        probes = [_probe(provider, now, n, call) for n, call in enumerate(calls)]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stripe_reading, "PAGE_SIZE", limits["size"])
            patch.setattr(stripe_reading, "PAGES_MAX", limits["pages"])
            patch.setattr(stripe_scan, "SLICE_PAGES_MAX", limits["pages"])
            patch.setattr(stripe_scan, "SLICES_MAX", limits["slices"])
            patch.setattr(stripe_scan, "SEARCHED_MAX", 0)
            short = scan_for(PAYMENT_INTENTS, probes).looks
        whole = scan_for(PAYMENT_INTENTS, probes).looks

        for probe, call in zip(probes, calls, strict=True):
            there = call.effect_after is not None
            look, exact = short[probe.claim_id], whole[probe.claim_id]
            assert exact.pages_complete
            assert (exact.word is SightingWord.FOUND) is there
            if there and look.word is SightingWord.ABSENT:
                assert not look.pages_complete
            if not there:
                assert look.word is SightingWord.ABSENT

    law()


def _fill(provider: Provider, now: datetime, calls: list[Called], noise: list[int]) -> None:
    table = f"{SCOPE}/payment_intents"
    with provider.world.store.batch() as batch:
        for name in list(provider.world.store.table(table)):
            batch.remove(table, name)
    rows: list[dict[str, Any]] = [
        a_row(500 + n, created=now - timedelta(minutes=minutes), metadata={})
        for n, minutes in enumerate(noise)
    ]
    for number, call in enumerate(calls):
        if call.effect_after is not None:
            age = timedelta(minutes=call.minutes_ago - call.effect_after)
            rows.append(a_row(number, created=now - age))
    enter(provider, rows)


def _probe(provider: Provider, now: datetime, number: int, call: Called) -> Probe:
    since = now - timedelta(minutes=call.minutes_ago)
    claim_id = claim_number(number)
    life = KeyLife(generation=1, key=f"cf1-{number:032d}", marker=marker(claim_id, 1), open=True)
    return replace(
        a_probe(provider.url),
        claim_id=claim_id,
        generations=(life,),
        since=since,
        asked_at=now,
        settled_from=since + SETTLED if call.settled else None,
    )
