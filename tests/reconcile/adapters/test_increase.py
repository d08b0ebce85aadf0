"""Increase is asked by the adapter for any provider, with the entry that its page in docs gives."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import requests

from effects.core.vocabulary import SightingWord
from effects.money import from_minor
from reconcile.adapters.base import Delay, Look
from reconcile.lookups import LOOKUPS
from reconcile.sandbox.faults import FAULT_HEADER
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.probes import MARKER, a_place, a_probe, key_of
from tests.support.stack import ROOT

TOKEN = "sandbox_key_halden"


def entry() -> dict[str, Any]:
    page = (ROOT / "docs" / "providers.md").read_text(encoding="utf-8")
    block = re.search(r"## Increase.*?```json\n(.*?)```", page, re.DOTALL)
    assert block is not None
    config: dict[str, Any] = json.loads(block[1])
    return config


@pytest.fixture
def url(provider: Provider) -> str:
    return f"{provider.url}/increase"


def transfer(url: str, key: str, *, amount: int = 4200, fault: str = "") -> requests.Response:
    headers = {"Authorization": f"Bearer {TOKEN}", "Idempotency-Key": key}
    body = {
        "account_id": "account_1",
        "amount": amount,
        "individual_id": MARKER,
        "statement_descriptor": "Refund",
    }
    if fault:
        headers[FAULT_HEADER] = fault
    return requests.post(f"{url}/ach_transfers", json=body, headers=headers, timeout=10)


def look(url: str) -> Look:
    place = a_place(url, secret=TOKEN)
    probe = a_probe(url, place=place, config=entry(), amount=from_minor(4200, "usd"))
    return LOOKUPS["http"].look(probe)


def test_the_key_of_a_call_finds_what_it_made(url: str, provider: Provider) -> None:
    with pytest.raises(requests.ConnectionError):
        transfer(url, key_of(1), fault="drop_after_commit")
    transfer(url, "somebody else's")

    found = look(url)

    effect = provider.world.store.effects("increase")[0]
    assert (found.word, found.objects) == (SightingWord.FOUND, (effect["object_id"],))
    assert found.requested == found.found == {"amount": "42.00", "currency": "USD"}
    assert effect["marker"] == MARKER


def test_an_empty_list_is_an_absence_that_proves_nothing(url: str) -> None:
    found = look(url)

    assert (found.word, found.delay_class) == (SightingWord.ABSENT, Delay.UNKNOWN)


def test_a_key_is_kept_for_good_and_a_409_names_what_it_made(url: str, provider: Provider) -> None:
    made = transfer(url, "k1").json()
    provider.world.advance_clock(10 * 365 * 24 * 3600)

    again, other = transfer(url, "k1"), transfer(url, "k1", amount=1)

    assert (again.json(), again.headers["Idempotent-Replayed"]) == (made, "true")
    assert (other.status_code, other.json()["resource_id"]) == (409, made["id"])
    assert len(provider.world.store.effects("increase")) == 1
