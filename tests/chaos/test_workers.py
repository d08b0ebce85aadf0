"""Faults of the broker, the worker, the scheduler and the database while providers are asked.

The work is in the database: whoever dies, and whatever the broker forgets, it is found and done,
and what was found out is written down once.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

import pytest
import redis

from effects.celery import app
from effects.core.vocabulary import ClaimState
from effects.heartbeats import BEAT, WORKER, seconds_since_seen
from effects.local.service import Service
from ledger import append
from reconcile import tasks
from reconcile.adapters import stripe as stripe_adapter
from reconcile.sandbox.provider.server import Provider
from tests.chaos import place as places
from tests.chaos.cells import cell
from tests.chaos.place import Place, eventually
from tests.reconcile.finding_out import Shop, shop_of
from tests.reconcile.sandbox.customer import Customer
from tests.support.clock import ShiftedClock
from tests.support.cut import Line

S = ClaimState
ASKED_AT_ONCE = 6


@dataclass(kw_only=True)
class Crew:
    """Who finds out, in the place."""

    worker: Service
    beat: Service


@pytest.fixture(scope="module")
def crew(place: Place) -> Crew:
    place.valkey.start()
    crew = Crew(worker=place.a_worker(), beat=place.a_beat())
    eventually(lambda: seconds_since_seen(WORKER), lambda s: s is not None, "the worker works")
    return crew


@pytest.fixture
def shop(crew: Crew, provider: Provider, place: Place) -> Iterator[Shop]:
    """A shop of its own in the place; afterwards the record is sound."""
    clock = ShiftedClock()
    stripe_adapter.forget_accounts()
    customer = Customer(provider.url)
    try:
        yield shop_of(customer, clock, asked_at=place.provider_url)
        assert places.unsound() == []
    finally:
        customer.close()
        clock.restore()


def a_lost_payment(shop: Shop) -> UUID:
    """Paid, and nobody heard of it."""
    answer = shop.claim(shop.charge)
    assert shop.pay(answer, fault="drop_after_commit") is None
    return shop.unknown(answer)


def found(shop: Shop, *claims: UUID) -> None:
    """Wait until it is known of each that it happened: once, and by one provider answer."""
    for claim_id in claims:
        eventually(
            lambda claim_id=claim_id: shop.state(claim_id),  # type: ignore[misc] # bound now
            lambda state: state is S.COMPLETED,
            "it is found out",
        )


def looks(shop: Shop, claim_id: UUID) -> int:
    return len(shop.sightings(claim_id))


def frozen(*services: Service) -> Callable[[], None]:
    def freeze() -> None:
        for service in services:
            service.send(signal.SIGSTOP)

    return freeze


@pytest.mark.case("X07")
@cell(
    "Valkey", "kill -9", "look-up due", "the work is found when a broker is back; record untouched"
)
def test_a_broker_that_dies_costs_time_only(shop: Shop, place: Place) -> None:
    place.valkey.kill()
    lost = a_lost_payment(shop)
    place.valkey.start()
    found(shop, lost)
    assert looks(shop, lost) == 1


@cell("Valkey", "flush all", "look-up due", "a look-up that the broker forgot is handed out again")
def test_what_the_broker_forgot_is_handed_out_again(shop: Shop, place: Place, crew: Crew) -> None:
    crew.worker.send(signal.SIGSTOP)
    try:
        lost = a_lost_payment(shop)
        # What a tick does: from now on the broker alone knows of it.
        assert append.take_due_lookups(10, tasks.HANDED_OVER_SECONDS)
        with redis.Redis.from_url(place.broker.url) as broker:
            broker.flushall()
    finally:
        crew.worker.send(signal.SIGCONT)
    shop.clock.advance(tasks.HANDED_OVER_SECONDS + 1)
    found(shop, lost)
    assert looks(shop, lost) == 1
    # Queues and bindings were forgotten as well; the next call must not need anybody's hands.
    found(shop, a_lost_payment(shop))


@cell(
    "worker", "kill -9", "during look-up", "asked again after the lease; the evidence is kept once"
)
def test_a_worker_that_dies_with_the_answer_in_hand(
    shop: Shop, crew: Crew, provider_line: Line
) -> None:
    dropped = provider_line.answers_dropped
    provider_line.drop_next_answer(then=crew.worker.kill)
    lost = a_lost_payment(shop)
    eventually(lambda: provider_line.answers_dropped, lambda n: n > dropped, "it is asked")
    crew.worker.start()
    assert (shop.state(lost), looks(shop, lost)) == (S.UNKNOWN, 0)
    shop.clock.advance(tasks.LEASE_SECONDS + 1)
    found(shop, lost)
    assert looks(shop, lost) == 1


@cell("worker", "kill -9, one child", "during look-up", "the task comes back at once; kept once")
def test_a_child_of_the_worker_that_dies_is_replaced(
    shop: Shop, crew: Crew, provider_line: Line
) -> None:
    provider_line.drop_next_answer(then=lambda: kill_a_child(crew.worker))
    lost = a_lost_payment(shop)
    found(shop, lost)
    assert looks(shop, lost) == 1


def kill_a_child(worker: Service) -> None:
    os.kill(worker.family()[-1], signal.SIGKILL)


@pytest.mark.case("X06")
@cell(
    "worker",
    "SIGSTOP",
    "during look-up",
    "another asks; what it brings when it wakes moves nothing",
)
def test_a_worker_that_wakes_late_moves_nothing(
    shop: Shop, place: Place, crew: Crew, provider_line: Line
) -> None:
    dropped = provider_line.answers_dropped
    provider_line.drop_next_answer(then=frozen(crew.worker))
    lost = a_lost_payment(shop)
    eventually(lambda: provider_line.answers_dropped, lambda n: n > dropped, "it is asked")
    second = place.a_worker("second")
    try:
        shop.clock.advance(tasks.LEASE_SECONDS + 1)
        found(shop, lost)
        crew.worker.send(signal.SIGCONT)
        eventually(lambda: looks(shop, lost), lambda n: n == 2, "the first says what it met")
        assert shop.state(lost) is S.COMPLETED
    finally:
        crew.worker.send(signal.SIGCONT)
        place.forget(second)


@cell("worker", "the same task twice", "during look-up", "the second changes nothing")
def test_one_look_up_delivered_many_times(shop: Shop, place: Place) -> None:
    second = place.a_worker("second")
    try:
        lost = a_lost_payment(shop)
        with app.connection(place.broker.url) as broker:
            for _ in range(ASKED_AT_ONCE):
                tasks.look.apply_async(  # type: ignore[call-arg] # publishing options
                    args=(shop.workspace.pk, str(lost)), connection=broker
                )
        found(shop, lost)
        eventually(lambda: looks(shop, lost), lambda n: n >= ASKED_AT_ONCE, "all have looked")
        assert shop.state(lost) is S.COMPLETED
    finally:
        place.forget(second)
    effects = [e for e in shop.customer.truth() if str(lost) in str(e.get("marker"))]
    assert len(effects) <= 1


@cell("beat", "two running", "look-up due", "each due claim is asked about once")
def test_two_schedulers_ask_once(shop: Shop, place: Place) -> None:
    second = place.a_beat("second-beat")
    try:
        lost = [a_lost_payment(shop) for _ in range(ASKED_AT_ONCE)]
        found(shop, *lost)
    finally:
        place.forget(second)
    assert [looks(shop, claim_id) for claim_id in lost] == [1] * ASKED_AT_ONCE


@cell("beat", "kill -9", "look-up due", "the next scheduler finds the work")
def test_a_scheduler_that_dies_is_followed_by_another(shop: Shop, crew: Crew) -> None:
    crew.beat.kill()
    lost = a_lost_payment(shop)
    crew.beat.start()
    found(shop, lost)
    assert looks(shop, lost) == 1


@cell("PostgreSQL", "kill -9, group", "look-up due", "worker and beat go on by themselves")
def test_worker_and_scheduler_outlive_the_database(shop: Shop, place: Place, crew: Crew) -> None:
    before = a_lost_payment(shop)
    place.postgres.kill()
    time.sleep(1)
    place.restart_postgres()
    began = time.monotonic()
    after = a_lost_payment(shop)
    shop.clock.advance(tasks.LEASE_SECONDS + 1)
    found(shop, before, after)
    for name in (WORKER, BEAT):
        eventually(
            lambda name=name: seconds_since_seen(name),  # type: ignore[misc] # bound now
            lambda seconds: seconds is not None and seconds < time.monotonic() - began,
            f"{name} is seen since the restart",
        )
    assert crew.worker.runs
    assert crew.beat.runs
