"""What each status of each kind of object means, and the laws that hold for all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, get_args

import pytest
import stripe
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.contracts.load import contract_of
from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import Probe
from reconcile.adapters.matching import seen
from reconcile.adapters.stripe_kinds import (
    CHARGES,
    GONE,
    INVOICES,
    KIND_OF_LOOKUP,
    MADE,
    PARTLY_REVERSED,
    PAYMENT_INTENTS,
    PAYOUTS,
    REFUNDS,
    REVERSED,
    SETUP_INTENTS,
    SUBSCRIPTIONS,
    TRANSFERS,
    UNCAPTURED,
    Kind,
    status_of,
)
from reconcile.adapters.stripe_objects import match
from tests.reconcile.adapters.probes import CLAIM, a_life, a_probe

FOUND, PENDING = SightingWord.FOUND, SightingWord.PENDING
OTHER, NONE = SightingWord.FOUND_DIFFERENT, SightingWord.ABSENT
KINDS = list(KIND_OF_LOOKUP.values())

TABLE = {
    PAYMENT_INTENTS: {
        "succeeded": FOUND,
        "canceled": OTHER,
        "processing": PENDING,
        "requires_action": PENDING,
        "requires_capture": PENDING,
        "requires_confirmation": PENDING,
        "requires_payment_method": PENDING,
    },
    SETUP_INTENTS: {
        "succeeded": FOUND,
        "canceled": OTHER,
        "processing": PENDING,
        "requires_action": PENDING,
        "requires_confirmation": PENDING,
        "requires_payment_method": PENDING,
    },
    CHARGES: {"succeeded": FOUND, "pending": PENDING, "failed": NONE, UNCAPTURED: PENDING},
    REFUNDS: {
        "succeeded": FOUND,
        "pending": PENDING,
        "requires_action": PENDING,
        "failed": OTHER,
        "canceled": OTHER,
    },
    PAYOUTS: {
        "paid": FOUND,
        "pending": PENDING,
        "in_transit": PENDING,
        "failed": OTHER,
        "canceled": OTHER,
    },
    TRANSFERS: {MADE: FOUND, PARTLY_REVERSED: FOUND, REVERSED: FOUND},
    INVOICES: {
        "draft": PENDING,
        "open": FOUND,
        "paid": FOUND,
        "uncollectible": FOUND,
        "void": OTHER,
        GONE: OTHER,
    },
    SUBSCRIPTIONS: {
        "incomplete": PENDING,
        "incomplete_expired": NONE,
        "trialing": FOUND,
        "active": FOUND,
        "past_due": FOUND,
        "unpaid": FOUND,
        "paused": FOUND,
        "canceled": OTHER,
    },
}


def test_the_table_of_statuses_is_the_one_that_was_decided() -> None:
    assert {kind.noun: dict(kind.words) for kind in KINDS} == {
        kind.noun: words for kind, words in TABLE.items()
    }


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (PAYMENT_INTENTS, stripe.PaymentIntent),
        (SETUP_INTENTS, stripe.SetupIntent),
        (CHARGES, stripe.Charge),
        (INVOICES, stripe.Invoice),
        (SUBSCRIPTIONS, stripe.Subscription),
    ],
    ids=lambda one: getattr(one, "noun", None),
)
def test_the_installed_package_knows_the_same_statuses(kind: Kind, model: Any) -> None:
    def texts(of: Any) -> set[str]:
        inner = get_args(of)
        return {of} if isinstance(of, str) else {t for one in inner for t in texts(one)}

    assert texts(model.__annotations__["status"]) == set(kind.words) - {UNCAPTURED, GONE}


def test_the_contract_names_the_same_statuses_and_the_same_ends() -> None:
    terms = contract_of("stripe.v1")
    assert terms is not None
    ours = {UNCAPTURED, GONE}
    kinds = {kind.noun: kind for kind in KINDS}
    for said in terms.statuses:
        kind = kinds.pop(said.noun)
        assert set(said.words) == set(kind.words) - ours
        # A charge that succeeded can be refunded, which is an effect of another call.
        beyond = {"succeeded"} if kind is CHARGES else set()
        assert kind.final - ours == set(said.final) | beyond
    assert set(kinds) == {"Transfer"}, "it has no status"


def an_item(kind: Kind, number: int, status: str, **changes: Any) -> dict[str, Any]:
    item: dict[str, Any] = {
        "id": f"{kind.object}_{number}",
        "object": kind.object,
        "currency": "eur",
        "amount": 4200,
        "total": 4200,
        "amount_received": 4200,
        "created": int(datetime.now(UTC).timestamp()),
        "livemode": False,
        "metadata": {"counterfoil": marker(CLAIM, 1)},
        "status": status,
        **changes,
    }
    if kind is TRANSFERS:
        item |= {"amount_reversed": {MADE: 0, PARTLY_REVERSED: 9}.get(status, 4200)}
        item |= {"reversed": status == REVERSED}
        del item["status"]
    if status == UNCAPTURED:
        item |= {"status": "succeeded", "captured": False}
    return item


def said_of(kind: Kind, items: list[dict[str, Any]], probe: Probe | None = None) -> Any:
    asked = probe or a_probe("http://127.0.0.1:1")
    return seen([match(asked, kind, item, a_life()) for item in items], noun=kind.noun)


@pytest.mark.parametrize(
    ("kind", "status", "word"),
    [(kind, status, word) for kind, words in TABLE.items() for status, word in words.items()],
    ids=lambda one: getattr(one, "noun", str(one)),
)
def test_a_status_means_what_the_table_says(kind: Kind, status: str, word: SightingWord) -> None:
    item = an_item(kind, 1, status)

    assert status_of(item) == status
    assert said_of(kind, [item]).word is word


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.noun)
def test_a_status_that_nobody_has_seen_is_unmapped_and_final_for_nobody(kind: Kind) -> None:
    if kind is TRANSFERS:
        return  # It has no status that could be new.
    assert said_of(kind, [an_item(kind, 1, "appeal_under_review")]).word is SightingWord.UNMAPPED
    assert "appeal_under_review" not in kind.final


@pytest.mark.parametrize(
    ("kind", "status"),
    [(PAYMENT_INTENTS, "requires_capture"), (CHARGES, UNCAPTURED), (INVOICES, "draft")],
    ids=lambda value: getattr(value, "noun", value),
)
def test_what_has_begun_and_is_not_whole_is_partly(kind: Kind, status: str) -> None:
    assert said_of(kind, [an_item(kind, 1, status)]).partly
    assert kind.partly == {status}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.noun)
def test_an_effect_is_final_only_where_nothing_undoes_it(kind: Kind) -> None:
    undone = {
        "Payout": {"paid"},
        "Refund": {"succeeded"},
        "Invoice": {"open", "uncollectible"},
        "Subscription": {"trialing", "active", "past_due", "unpaid", "paused"},
    }
    effects = {status for status, word in kind.words.items() if word is FOUND}

    assert effects - kind.final == undone.get(kind.noun, set())
    assert kind.final <= set(kind.words)


@pytest.mark.parametrize(
    ("kind", "changes", "differs"),
    [
        pytest.param(TRANSFERS, {"amount": 4100}, "amount", id="another amount"),
        pytest.param(TRANSFERS, {"destination": "acct_Other"}, "destination", id="another payee"),
        pytest.param(TRANSFERS, {"destination": "acct_Right"}, "", id="the payee"),
        pytest.param(INVOICES, {"total": 4100}, "amount", id="another total"),
        pytest.param(INVOICES, {"customer": "acct_Right"}, "", id="the customer"),
        pytest.param(SUBSCRIPTIONS, {"currency": "usd"}, "currency", id="another currency"),
        pytest.param(SUBSCRIPTIONS, {"quantity": 3}, "amount", id="one more seat"),
        pytest.param(SETUP_INTENTS, {"amount": 1}, "", id="no money, no amount"),
        pytest.param(SETUP_INTENTS, {"livemode": True}, "mode", id="the other mode"),
        pytest.param(PAYOUTS, {"livemode": True}, "mode", id="a payout of the other mode"),
    ],
)
def test_what_is_not_what_was_asked_for_differs_field_by_field(
    kind: Kind, changes: dict[str, Any], differs: str
) -> None:
    effect = next(status for status, word in kind.words.items() if word is FOUND)
    price = {"unit_amount": 2100}
    row = {"price": price, "quantity": changes.pop("quantity", 2)}
    item = an_item(kind, 1, effect, items={"data": [row]}, **changes)
    probe = a_probe("http://127.0.0.1:1", customer="acct_Right")

    said = said_of(kind, [item], probe)

    assert said.word is (OTHER if differs else FOUND)
    assert {n for n in said.found if said.found[n] != said.requested[n]} == {differs} - {""}


def test_a_price_that_is_known_when_the_month_is_over_is_not_compared() -> None:
    item = an_item(SUBSCRIPTIONS, 1, "active", items={"data": [{"price": {"unit_amount": None}}]})

    assert "amount" not in said_of(SUBSCRIPTIONS, [item]).found


# Laws

SOME = st.sampled_from(KINDS).flatmap(
    lambda kind: st.tuples(
        st.just(kind),
        st.lists(
            st.sampled_from([*kind.words, *(() if kind is TRANSFERS else ("from_next_year",))]),
            max_size=5,
        ),
        st.sampled_from([*kind.words]),
    )
)


@settings(deadline=None)
@given(SOME)
def test_one_more_object_never_makes_an_absence_of_an_effect(
    some: tuple[Kind, list[str], str],
) -> None:
    kind, statuses, more = some
    items = [an_item(kind, number, status) for number, status in enumerate(statuses)]
    before, after = said_of(kind, items), said_of(kind, [*items, an_item(kind, 99, more)])

    if before.word in {FOUND, SightingWord.FOUND_MANY}:
        assert after.word in {FOUND, SightingWord.FOUND_MANY}
        assert set(before.objects) <= set(after.objects)
    if before.word is not NONE:
        assert after.word is not NONE


@settings(deadline=None)
@given(SOME, st.randoms(use_true_random=False))
def test_the_order_of_a_list_changes_neither_the_word_nor_the_objects_of_an_effect(
    some: tuple[Kind, list[str], str], random: Any
) -> None:
    kind, statuses, _ = some
    items = [an_item(kind, number, status) for number, status in enumerate(statuses)]
    shuffled = random.sample(items, len(items))
    one, other = said_of(kind, items), said_of(kind, [*shuffled, *shuffled])

    assert one.word is other.word
    if one.word in {FOUND, SightingWord.FOUND_MANY}:
        assert set(one.objects) == set(other.objects)
    assert {*one.objects, *one.others} == {*other.objects, *other.others}
