"""The provider as a process: it starts, it is killed, and it remembers."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest
import stripe

from reconcile.sandbox.provider.server import Provider
from reconcile.sandbox.provider.store import JOURNAL_NAME, Store
from tests.reconcile.sandbox.customer import Customer, headers_of, is_replayed

DAY_SECONDS = 24 * 60 * 60


@contextmanager
def running(folder: Path) -> Iterator[tuple[subprocess.Popen[str], Customer]]:
    command = [sys.executable, "-m", "reconcile.sandbox.provider", "--folder", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("sandbox provider http://127.0.0.1:")
            customer = Customer(line.split()[-1])
            yield process, customer
            customer.close()
        finally:
            process.kill()


def test_it_says_where_it_listens_and_stops_when_told(tmp_path):
    with running(tmp_path) as (process, customer):
        assert customer.control("GET", "/health")["alive"] is True
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0


def test_a_killed_provider_comes_back_with_its_objects_keys_clock_and_debts(tmp_path):
    with running(tmp_path) as (process, customer):
        customer.advance(seconds=3600)
        paid = customer.pay("k1")
        customer.transfer("ref-1")
        with pytest.raises(stripe.APIError):
            customer.pay("k2", fault="error_500_then_late_commit=60")
        process.kill()
        process.wait()
    with running(tmp_path) as (_, customer):
        assert customer.control("GET", "/clock")["advanced_seconds"] == 3600
        assert is_replayed(customer.pay("k1"))
        assert customer.stripe.v1.payment_intents.retrieve(paid.id).status == "succeeded"
        assert len(customer.stripe.v1.events.list().data) == 3
        customer.advance(seconds=61)
        assert [effect["seq"] for effect in customer.truth()] == [1, 2, 1]
        assert {effect["cause"] for effect in customer.truth()} == {"request", "late_commit"}


def test_the_date_of_an_answer_is_the_provider_s_own_clock(tmp_path):
    with Provider(tmp_path) as provider:
        customer = Customer(provider.url)
        customer.advance(seconds=DAY_SECONDS)
        paid = customer.pay("k1")
        dated = parsedate_to_datetime(headers_of(paid)["date"]).timestamp()
        assert abs(dated - paid.created) <= 1
        customer.close()


def test_the_truth_files_say_who_changed_what_and_why(tmp_path):
    with Provider(tmp_path) as provider:
        customer = Customer(provider.url)
        paid = customer.pay("k1")
        customer.refund("r1", paid.id, amount=200)
        sent = customer.transfer("ref-1").json()
        customer.close()
    stripe_truth = _lines(tmp_path / "stripe.jsonl")
    plain_truth = _lines(tmp_path / "plain.jsonl")
    assert [(line["kind"], line["amount"], line["currency"]) for line in stripe_truth] == [
        ("payment_intent", 4200, "eur"),
        ("refund", 200, "eur"),
    ]
    payment = stripe_truth[0]
    assert payment["object_id"] == paid.id
    assert payment["marker"] == "cf_k1_1"
    assert payment["idempotency_key"] == "k1"
    assert payment["request_id"] == headers_of(paid)["request-id"]
    assert payment["scope"] == "acct_halden/test"
    assert (plain_truth[0]["object_id"], plain_truth[0]["reference"]) == (sent["id"], "ref-1")


def test_a_line_that_was_torn_by_a_kill_never_happened(tmp_path):
    with Provider(tmp_path) as provider:
        customer = Customer(provider.url)
        customer.pay("k1")
        customer.close()
    with (tmp_path / JOURNAL_NAME).open("a") as journal:
        journal.write('{"puts": [["half')
    with Provider(tmp_path) as provider:
        customer = Customer(provider.url)
        assert len(customer.truth()) == 1
        customer.pay("k2")
        customer.close()
    with Provider(tmp_path) as provider:
        assert len(provider.world.store.effects("stripe")) == 2


def test_a_truth_file_that_a_kill_left_behind_the_journal_is_completed(tmp_path):
    with Provider(tmp_path) as provider:
        customer = Customer(provider.url)
        for key in ("k1", "k2"):
            customer.pay(key)
        customer.close()
    truth = tmp_path / "stripe.jsonl"
    whole = truth.read_text()
    truth.write_text(whole[: len(whole) - 30])
    Store(tmp_path).close()
    assert truth.read_text() == whole


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]
