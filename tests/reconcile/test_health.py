"""The health of an installation: what each figure means, and that the page says what is so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.test import Client

from effects.core.vocabulary import Role
from effects.heartbeats import BEAT, WORKER, mark_seen
from effects.models import Connection
from ledger import queries
from ledger.models import Due
from reconcile.audit import chain
from reconcile.health.judging import Backlog, Part, Standing, of_backlog, worst
from tests.support import desk

NOW = datetime(2027, 1, 15, 8, 0, tzinfo=UTC)
FINE, WATCH, BROKEN = Standing


@pytest.mark.parametrize(
    ("many", "seconds_late", "standing"),
    [
        (0, None, FINE),
        (9_999, 59, FINE),  # many, and at work
        (1, 60, WATCH),
        (1, 599, WATCH),
        (1, 600, BROKEN),
        (1, 90_000, BROKEN),
    ],
)
def test_work_is_judged_by_how_long_the_oldest_waits_and_not_by_how_much_it_is(
    many: int, seconds_late: int | None, standing: Standing
) -> None:
    oldest = None if seconds_late is None else NOW - timedelta(seconds=seconds_late)
    part = of_backlog("Runs", Backlog(many=many, oldest=oldest), NOW, remedy="See.")
    assert part.standing is standing
    assert bool(part.remedy) is (standing is not FINE)


def test_the_whole_stands_as_its_worst_part_does() -> None:
    parts = [Part(name=str(one), standing=one, says="") for one in (FINE, BROKEN, WATCH)]
    assert worst(parts) is BROKEN
    assert worst([parts[0], parts[2]]) is WATCH
    assert worst([]) is FINE


def parts_on_the_page(client: Client) -> dict[str, Part]:
    page = client.get("/health/")
    assert page.status_code == 200
    return {part.name: part for part in page.context["parts"]}


@pytest.mark.django_db
def test_the_page_says_what_waits_what_is_broken_and_what_to_do() -> None:
    shop = desk.a_workspace()
    charge = desk.a_keyed_tool(shop)
    client = Client()
    client.force_login(desk.a_person(shop, Role.VIEWER))
    mark_seen(WORKER)
    before = parts_on_the_page(client)
    assert before["Workers"].standing is FINE
    assert before["Scheduler"].standing is BROKEN
    assert "never seen" in before["Scheduler"].says
    assert before["Look-ups"].says == "Nothing is due."
    assert before["Connection Stripe"].says == "No worker has its secret."
    assert before["Chain of decisions"].standing is WATCH

    mark_seen(BEAT)
    desk.a_lost_call(charge)
    Due.objects.filter(workspace=shop, why=Due.Why.LOOKUP).update(
        at=queries.clock() - timedelta(minutes=11)
    )
    Connection.objects.update(secret_name="STRIPE_READ_KEY", secret_seen_at=queries.clock())
    chain.verify(shop.pk)
    after = parts_on_the_page(client)
    assert after["Scheduler"].standing is FINE
    assert after["Look-ups"].standing is BROKEN
    assert "1 due, the oldest for 11 m." in after["Look-ups"].says
    assert after["Connection Stripe"].standing is FINE
    assert after["Chain of decisions"].standing is FINE


@pytest.mark.django_db
def test_what_another_workspace_has_waiting_is_not_said_here() -> None:
    shop, other = desk.a_workspace(), desk.a_workspace("other")
    desk.a_lost_call(desk.a_keyed_tool(other))
    Due.objects.update(at=queries.clock() - timedelta(hours=1))
    client = Client()
    client.force_login(desk.a_person(shop, Role.VIEWER))
    assert parts_on_the_page(client)["Look-ups"].standing is FINE
