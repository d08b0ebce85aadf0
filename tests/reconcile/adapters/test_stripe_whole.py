"""Every kind of Stripe's objects, made through the real SDK and looked for through it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import stripe

from effects.core.vocabulary import SightingWord
from effects.money import from_minor
from reconcile.adapters import stripe_reading
from reconcile.adapters.base import Look, Probe
from reconcile.adapters.stripe import LOOKUPS, look_for
from reconcile.adapters.stripe_client import PINNED_VERSION
from reconcile.adapters.stripe_kinds import (
    INVOICES,
    PAYMENT_INTENTS,
    REFUNDS,
    SETUP_INTENTS,
    SUBSCRIPTIONS,
    TRANSFERS,
)
from reconcile.adapters.stripe_scan import scan_for
from reconcile.sandbox.provider.recipes import STEP_SECONDS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.probes import (
    CLAIM,
    MARKER,
    OTHER_CLAIM,
    a_life,
    a_place,
    a_probe,
    key_of,
)
from tests.reconcile.sandbox.customer import Customer, options, stripe_client

MARKED = {"counterfoil": MARKER}
ALL = {lookup.kind: lookup for lookup in LOOKUPS}
MONEY: dict[str, Any] = {"amount": 4200, "currency": "eur"}
CARD: dict[str, Any] = {"confirm": True, "payment_method": "pm_card_visa"}
SUBSCRIPTION: dict[str, Any] = {
    "customer": "cus_1",
    "items": [{"price": "price_2100_eur", "quantity": 2}],
    "default_payment_method": "pm_card_visa",
}


def _to_connected(client: stripe.StripeClient) -> dict[str, Any]:
    return {"destination": client.v1.accounts.create({"type": "custom"}).id}


def _paid(client: stripe.StripeClient) -> dict[str, Any]:
    params: Any = {**MONEY, **CARD}
    return {"payment_intent": client.v1.payment_intents.create(params).id}


MAKE: dict[str, Callable[[stripe.StripeClient], dict[str, Any]]] = {
    "payment_intents": lambda _client: {**MONEY, **CARD},
    "charges": lambda _client: {**MONEY, "source": "tok_visa"},
    "refunds": _paid,
    "payouts": lambda _client: MONEY,
    "transfers": lambda client: {**MONEY, **_to_connected(client)},
    "invoices": lambda _client: {"customer": "cus_1"},
    "subscriptions": lambda _client: SUBSCRIPTION,
    "setup_intents": lambda _client: CARD,
}
MADE_AS = {
    "payouts": SightingWord.PENDING,  # it is on its way to the bank
    "invoices": SightingWord.PENDING,  # a draft
}


def make(client: stripe.StripeClient, table: str, **changes: Any) -> str:
    """One object of this kind, by our key and with our marker."""
    params = {**MAKE[table](client), "metadata": MARKED, **changes}
    made = getattr(client.v1, table).create(params, options=options(key_of(1)))
    return str(made.id)


def ask(table: str, probe: Probe) -> Look:
    return ALL[f"stripe.{table}"].look(probe)


EVERY = pytest.mark.parametrize("table", MAKE)


@EVERY
def test_what_was_made_is_found_and_before_it_is_not_there(customer: Customer, table: str) -> None:
    assert ask(table, a_probe(customer.url)).word is SightingWord.ABSENT
    made = make(customer.stripe, table)

    look = ask(table, a_probe(customer.url))

    assert look.objects == (made,)
    assert look.word is MADE_AS.get(table, SightingWord.FOUND)
    assert look.requested == look.found
    assert (look.pages_complete, look.right_place, look.reads) == (True, True, 1)
    assert look.route == ALL[f"stripe.{table}"].routes[0].name
    (shared,) = scan_for_table(table, a_probe(customer.url)).values()
    assert (shared.word, shared.objects, shared.reads) == (look.word, look.objects, 0)


def scan_for_table(table: str, *probes: Probe) -> dict[Any, Look]:
    many = ALL[f"stripe.{table}"].look_many
    assert many is not None
    return dict(many(probes).looks)


@EVERY
def test_what_was_made_without_a_marker_is_found_by_its_key(customer: Customer, table: str) -> None:
    made = make(customer.stripe, table, metadata={})
    unmarked = a_probe(customer.url, unmarked=True)

    look = ask(table, unmarked)

    assert ask(table, a_probe(customer.url)).word is SightingWord.ABSENT
    assert look.objects == (made,)
    assert look.route == ALL[f"stripe.{table}"].routes[-1].name
    (shared,) = scan_for_table(table, unmarked).values()
    assert (shared.word, shared.objects) == (look.word, look.objects)


@EVERY
@pytest.mark.parametrize(
    ("place", "says"),
    [
        pytest.param({"account": "acct_other"}, "acct_halden, not to acct_other", id="account"),
        pytest.param({"secret": "rk_live_halden"}, "live mode", id="mode"),
    ],
)
def test_the_wrong_place_is_misconfigured_and_no_absence(
    customer: Customer, table: str, place: dict[str, str], says: str
) -> None:
    make(customer.stripe, table)
    probe = a_probe(customer.url, place=a_place(customer.url, **place))

    for look in (ask(table, probe), *scan_for_table(table, probe).values()):
        assert (look.word, look.right_place) == (SightingWord.MISCONFIGURED, False)
        assert says in look.why


@EVERY
def test_a_connected_account_is_asked_by_the_platforms_secret(
    provider: Provider, customer: Customer, table: str
) -> None:
    account = customer.stripe.v1.accounts.create({"type": "custom"}).id
    there = stripe_client(provider.url, stripe_account=account)
    made = make(there, table)
    place = a_place(customer.url, account=account)

    assert ask(table, a_probe(customer.url, place=place)).objects == (made,)
    assert ask(table, a_probe(customer.url)).word is SightingWord.ABSENT


# What is particular to a kind


def test_a_subscription_that_was_canceled_is_still_on_the_list_that_is_read(
    customer: Customer,
) -> None:
    made = make(customer.stripe, "subscriptions")
    customer.stripe.v1.subscriptions.cancel(made)

    look = look_for(SUBSCRIPTIONS)(a_probe(customer.url))

    assert (look.word, look.objects) == (SightingWord.FOUND_DIFFERENT, (made,))
    assert look.status == "canceled"


def test_an_invoice_is_partly_there_until_it_is_issued_unless_a_draft_is_all_that_is_asked(
    customer: Customer,
) -> None:
    made = make(customer.stripe, "invoices")

    drafted = look_for(INVOICES)(a_probe(customer.url))
    enough = look_for(INVOICES)(a_probe(customer.url, config={"map": {"draft": "found"}}))
    customer.stripe.v1.invoices.add_lines(made, {"lines": [{"amount": 4200}]})
    customer.stripe.v1.invoices.finalize_invoice(made)
    issued = look_for(INVOICES)(a_probe(customer.url))

    assert (drafted.word, drafted.partly) == (SightingWord.PENDING, True)
    assert enough.word is SightingWord.FOUND
    assert (issued.word, issued.found["amount"]) == (SightingWord.FOUND, "42.00")


def test_invoices_are_not_absent_before_it_is_known_what_was_deleted(customer: Customer) -> None:
    broken = {"rules": [{"fault": "error_500", "operation": "events.list", "sends_max": 9}]}
    customer.control("POST", "/faults", broken)
    probe = a_probe(customer.url)

    for look in (look_for(INVOICES)(probe), *scan_for_table("invoices", probe).values()):
        assert look.word is SightingWord.LOOKUP_FAILED


def test_a_list_that_changes_while_it_is_read_is_no_answer_and_nobodys_mistake(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 1)
    for number in range(3):
        customer.stripe.v1.invoices.create(
            {"customer": f"cus_{number}"}, options=options(f"other {number}")
        )
    plain = stripe_reading.Reading._page  # noqa: SLF001 - the moment between two pages

    def page(reading: stripe_reading.Reading, service: Any, *, after: str | None) -> Any:
        if after:
            customer.stripe.v1.invoices.delete(after)
        return plain(reading, service, after=after)

    monkeypatch.setattr(stripe_reading.Reading, "_page", page)

    look = look_for(INVOICES)(a_probe(customer.url))

    assert look.word is SightingWord.LOOKUP_FAILED
    assert "changed while it was read" in look.why


def test_a_draft_that_somebody_deleted_is_not_said_never_to_have_been(customer: Customer) -> None:
    made = make(customer.stripe, "invoices")
    customer.stripe.v1.invoices.delete(made)
    somebodys = customer.stripe.v1.invoices.create({"customer": "cus_1"}).id
    customer.stripe.v1.invoices.delete(somebodys)
    probe = a_probe(customer.url)

    for look in (look_for(INVOICES)(probe), *scan_for_table("invoices", probe).values()):
        assert (look.word, look.objects) == (SightingWord.FOUND_DIFFERENT, (made,))
        assert (look.status, look.route) == ("deleted", "List Events of deleted Invoices")


def test_a_transfer_that_was_reversed_was_made_all_the_same(customer: Customer) -> None:
    made = make(customer.stripe, "transfers")
    customer.stripe.v1.transfers.reversals.create(made)

    look = look_for(TRANSFERS)(a_probe(customer.url))

    assert (look.word, look.status) == (SightingWord.FOUND, "made, reversed")


def test_a_refund_that_succeeded_and_then_failed_says_so(customer: Customer) -> None:
    paid = customer.pay("p1", payment_method="pm_card_refundFail")
    customer.refund(key_of(1), paid.id, metadata=MARKED)
    before = look_for(REFUNDS)(a_probe(customer.url))
    customer.advance(seconds=STEP_SECONDS)
    customer.control("GET", "/truth")

    after = look_for(REFUNDS)(a_probe(customer.url))

    assert (before.word, before.status) == (SightingWord.FOUND, "succeeded")
    assert (after.word, after.status) == (SightingWord.FOUND_DIFFERENT, "failed")
    assert after.objects == before.objects


def test_a_setup_intent_that_waits_for_the_customer_is_pending(customer: Customer) -> None:
    make(customer.stripe, "setup_intents", confirm=False)

    assert look_for(SETUP_INTENTS)(a_probe(customer.url)).word is SightingWord.PENDING


# By transfer_group

GROUPED = {"marker_in": "transfer_group"}


def test_a_transfer_is_found_by_the_group_that_is_our_marker(
    customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stripe_reading, "PAGE_SIZE", 1)
    monkeypatch.setattr(stripe_reading, "PAGES_MAX", 1)
    made = make(customer.stripe, "transfers", metadata={}, transfer_group=MARKER)
    for number in range(3):
        there = _to_connected(customer.stripe)
        params: Any = {**MONEY, **there, "transfer_group": f"g{number}"}
        customer.stripe.v1.transfers.create(params)

    look = look_for(TRANSFERS)(a_probe(customer.url, config=GROUPED))

    assert (look.word, look.objects) == (SightingWord.FOUND, (made,))
    assert look.route == "List Transfers by transfer_group"
    assert "1 objects on 1 pages" in look.query


def test_every_generations_group_has_to_be_read_whole_before_nothing_is_there(
    customer: Customer,
) -> None:
    lives = (a_life(1, is_open=False), a_life(2), a_life(3))

    look = look_for(TRANSFERS)(a_probe(customer.url, config=GROUPED, generations=lives))

    assert (look.word, look.pages_complete, look.reads) == (SightingWord.ABSENT, True, 3)


def test_a_shared_reading_matches_the_group_as_well(customer: Customer) -> None:
    made = make(customer.stripe, "transfers", metadata={}, transfer_group=MARKER)

    scan = scan_for(TRANSFERS, [a_probe(customer.url, config=GROUPED)])

    (look,) = scan.looks.values()
    assert (look.word, look.objects) == (SightingWord.FOUND, (made,))


# Routes and versions


@pytest.mark.parametrize("lookup", LOOKUPS, ids=lambda lookup: lookup.kind)
def test_only_an_immediate_list_can_prove_an_absence(lookup: Any) -> None:
    proving = {route.name.partition(" ")[0] for route in lookup.routes if route.proves_absence}

    assert proving <= {"List"}
    assert not any(
        "Events" in r.name or "Search" in r.name for r in lookup.routes if r.proves_absence
    )
    assert all(r.delay_class == "none" for r in lookup.routes if r.proves_absence)
    assert bool(proving) is (lookup.kind != "stripe.updates")


@pytest.mark.parametrize("version", [None, "2025-03-31.basil"])
def test_every_question_names_the_version_that_it_is_asked_in(
    customer: Customer, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    monkeypatch.setattr("stripe._api_version._ApiVersion.CURRENT", "2099-01-01.upgrade")
    config = {"api_version": version} if version else {}
    place = a_place(customer.url, account="acct_halden")

    look = look_for(PAYMENT_INTENTS)(a_probe(customer.url, config=config, place=place))

    asked = customer.control("GET", "/requests")["requests"]
    assert {one["operation"] for one in asked} == {"account.retrieve", "payment_intents.list"}
    assert {one["api_version"] for one in asked} == {version or PINNED_VERSION}
    assert look.api_version == (version or PINNED_VERSION)


def test_a_claim_keeps_the_version_in_which_it_was_first_asked_about(customer: Customer) -> None:
    made = make(customer.stripe, "payment_intents")
    older = a_probe(customer.url, api_version="2025-03-31.basil")
    newer = a_probe(customer.url, claim_id=OTHER_CLAIM)

    alone = look_for(PAYMENT_INTENTS)(older)
    scan = scan_for(PAYMENT_INTENTS, [older, newer])

    assert alone.api_version == scan.looks[CLAIM].api_version == older.api_version
    assert scan.looks[OTHER_CLAIM].api_version == PINNED_VERSION
    assert scan.looks[CLAIM].objects == (made,)
    assert (scan.reads, scan.strangers) == (2, ()), "each version is one reading"


def test_a_version_that_is_none_is_refused(customer: Customer) -> None:
    probe = a_probe(customer.url, config={"api_version": "latest"})

    look = look_for(PAYMENT_INTENTS)(probe)

    assert look.word is SightingWord.MISCONFIGURED
    assert "api_version" in look.why


def test_the_adapter_is_written_for_the_version_that_the_package_speaks() -> None:
    package = stripe.StripeClient("sk_test_x")._requestor._options.stripe_version  # noqa: SLF001 - nowhere public

    assert package == PINNED_VERSION, "read what has changed, then pin the new one"


# A provider that broke off and went on later


def test_what_a_stored_500_left_open_is_found_once_it_was_rolled_forward(
    customer: Customer,
) -> None:
    with pytest.raises(stripe.APIError):
        customer.stripe.v1.invoices.create(
            {"customer": "cus_1", "metadata": MARKED},
            options=options(key_of(1), "error_500_then_late_commit=3600"),
        )
    before = look_for(INVOICES)(a_probe(customer.url, unmarked=True))
    customer.advance(seconds=3601)
    customer.control("GET", "/truth")
    probe = a_probe(customer.url, unmarked=True)
    ahead = timedelta(seconds=3601)

    after = look_for(INVOICES)(a_probe(customer.url, asked_at=probe.asked_at + ahead))

    assert before.word is SightingWord.ABSENT
    assert len(after.objects) == 1


def test_an_amount_that_is_asked_for_nothing_is_compared_with_nothing(customer: Customer) -> None:
    make(customer.stripe, "setup_intents")
    asked = from_minor(9999, "usd", contract="stripe.v1")

    assert look_for(SETUP_INTENTS)(a_probe(customer.url, amount=asked)).word is SightingWord.FOUND
