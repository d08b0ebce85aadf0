"""What becomes of claims about Stripe's other kinds of objects, in the real ledger."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from effects.core.vocabulary import ClaimState, SightingWord
from effects.models import Tool
from reconcile.adapters import stripe_client
from reconcile.adapters.stripe_client import PINNED_VERSION
from reconcile.adapters.stripe_updates import UPDATE_METADATA_KEY
from reconcile.sandbox.provider.recipes import STEP_SECONDS
from tests.reconcile.finding_out import CHARGE, WORKING_SECONDS, Shop, id_of, open_shop
from tests.reconcile.sandbox.customer import options

pytestmark = pytest.mark.django_db(transaction=True)

SUBSCRIPTION: dict[str, Any] = {
    "customer": "cus_1",
    "items": [{"price": "price_4200_eur"}],
    "default_payment_method": "pm_card_visa",
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


def a_tool(shop: Shop, name: str, **fields: Any) -> Tool:
    connection = shop.charge.connection
    fields = {**CHARGE, "name": name, **fields}
    return Tool.objects.create(workspace=shop.workspace, connection=connection, **fields)


def test_a_subscription_that_was_never_made_did_not_happen_and_one_that_was_did(
    shop: Shop,
) -> None:
    tool = a_tool(shop, "subscribe", lookup_kind="stripe.subscriptions")
    made, lost = shop.claim(tool), shop.claim(tool)
    params: Any = {**SUBSCRIPTION, "metadata": {"counterfoil": made.marker}}
    shop.customer.stripe.v1.subscriptions.create(params, options=options(str(made.key)))
    claims = [shop.unknown(answer) for answer in (made, lost)]
    shop.past(WORKING_SECONDS + 1)

    states = [shop.look(claim_id).state for claim_id in claims]

    assert states == [ClaimState.COMPLETED, ClaimState.NOT_EXECUTED]


def test_an_update_is_settled_by_its_marker_and_never_by_its_absence(shop: Shop) -> None:
    lookup = {
        "object": "subscription",
        "id": "subscription",
        "fields": {"description": "words"},
        "marker_in_every_request": True,
    }
    tool = a_tool(shop, "describe", lookup_kind="stripe.updates", lookup=lookup)
    subscriptions = shop.customer.stripe.v1.subscriptions
    params: Any = SUBSCRIPTION
    ours, theirs = (subscriptions.create(params).id for _ in range(2))
    claims = []
    for object_id, sends in ((ours, True), (theirs, False)):
        arguments = json.dumps({"subscription": object_id, "words": "seven"})
        answer = shop.claim(tool, arguments=arguments)
        change: Any = {
            "description": "seven",
            "metadata": {UPDATE_METADATA_KEY: answer.marker} if sends else {},
        }
        subscriptions.update(object_id, change)
        claims.append(shop.unknown(answer))
    shop.past(WORKING_SECONDS + 1)

    looks = [shop.look(claim_id) for claim_id in claims]

    assert [look.word for look in looks] == [SightingWord.FOUND, SightingWord.ABSENT]
    assert [look.state for look in looks] == [ClaimState.COMPLETED, ClaimState.UNKNOWN]


def test_a_refund_that_fails_after_it_succeeded_is_late_truth(shop: Shop) -> None:
    tool = a_tool(shop, "refund", lookup_kind="stripe.refunds")
    paid = shop.customer.pay("p1", payment_method="pm_card_refundFail")
    answer = shop.claim(tool)
    marked = {"counterfoil": str(answer.marker)}
    shop.customer.refund(str(answer.key), paid.id, metadata=marked, amount=4200)
    claim_id = shop.unknown(answer)
    assert shop.look(claim_id).state is ClaimState.COMPLETED

    shop.past(STEP_SECONDS + 1)
    shop.customer.control("GET", "/truth")
    looked = shop.look(claim_id)

    assert looked.word is SightingWord.FOUND_DIFFERENT
    assert shop.sightings(claim_id)[-1].data["status"] == "failed"


def test_a_claim_is_asked_about_in_the_version_of_its_first_answer_whatever_is_pinned_later(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_before")
    claim_id = shop.unknown(answer)
    shop.look(claim_id)
    monkeypatch.setattr(stripe_client, "PINNED_VERSION", "2027-03-31.later")
    newer = shop.claim(shop.charge)

    shop.look(claim_id)
    shop.look(shop.unknown(newer))

    assert [s.data["api_version"] for s in shop.sightings(claim_id)] == [PINNED_VERSION] * 2
    (asked,) = shop.sightings(id_of(newer))
    assert asked.data["api_version"] == "2027-03-31.later"
