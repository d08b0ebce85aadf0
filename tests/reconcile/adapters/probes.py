"""Questions about one claim, as an investigation would put them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from effects.core.identity import marker
from effects.money import from_minor
from reconcile.adapters.base import KeyLife, Place, Probe
from reconcile.adapters.door import Limits, Way, origin_of

CLAIM = UUID("01920000-0000-7000-8000-000000000001")
OTHER_CLAIM = UUID("01920000-0000-7000-8000-000000000002")
KEY = "cf1-00000000000000000000000000000001"
MARKER = marker(CLAIM, 1)


def key_of(generation: int) -> str:
    return f"{KEY}-{generation}"


def a_life(generation: int = 1, *, is_open: bool = True) -> KeyLife:
    return KeyLife(
        generation=generation,
        key=key_of(generation),
        marker=marker(CLAIM, generation),
        open=is_open,
    )


def a_place(url: str, **changes: Any) -> Place:
    way = Way(origin=origin_of(url), private=True, limits=Limits(seconds=5.0))
    place = Place(way=way, base_url=url, mode="test", secret="rk_test_halden")
    return replace(place, **changes)


def a_probe(url: str, **changes: Any) -> Probe:
    """A charge of 42.00 EUR, asked about now, first granted a minute ago."""
    now = datetime.now(UTC)
    probe = Probe(
        claim_id=CLAIM,
        generations=(a_life(),),
        since=now - timedelta(minutes=1),
        asked_at=now,
        place=a_place(url),
        amount=from_minor(4200, "eur", contract="stripe.v1"),
    )
    return replace(probe, **changes)
