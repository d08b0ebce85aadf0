"""A look-up that is tried on a past call: what it shows, and that it leaves nothing behind."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.conf import LazySettings
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import Connection, LookupTrial, Tool
from ledger import queries
from reconcile import pace
from reconcile.connecting import tasks
from tests.reconcile.finding_out import TRANSFER, Shop, open_shop
from tests.support.desk import a_person

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


@pytest.fixture
def admin(shop: Shop) -> Client:
    client = Client()
    client.force_login(a_person(shop.workspace, Role.ADMIN))
    return client


def address(tool: Tool) -> str:
    return f"/tools/{tool.pk}/look-up/"


def typed(tool: Tool, call: object, **changes: Any) -> dict[str, Any]:
    form = {
        "call": str(call),
        "lookup_kind": tool.lookup_kind,
        "connection": tool.connection_id,
        "lookup": json.dumps(tool.lookup),
    }
    return form | changes


def tried(admin: Client, tool: Tool, form: dict[str, Any]) -> Any:
    """The page once a worker has done what was ordered."""
    ordered = admin.post(address(tool), form)
    assert ordered.status_code == 302, ordered.context["typed"].fault
    waiting = admin.get(ordered["Location"])
    assert "A worker asks the provider" in waiting.content.decode()
    (trial_id,) = LookupTrial.objects.filter(answer="").values_list("pk", flat=True)
    tasks.perform(trial_id)
    tasks.perform(trial_id)  # A second copy asks nobody.
    return admin.get(ordered["Location"])


def a_transfer_whose_answer_was_lost(shop: Shop) -> UUID:
    answer = shop.claim(shop.transfer, arguments=json.dumps({"amount": 900}))
    shop.send_transfer(answer, fault="drop_after_commit")
    return shop.unknown(answer)


def everything_known(claim_id: UUID, shop: Shop) -> tuple[Any, ...]:
    claim = queries.claim(shop.workspace.pk, claim_id)
    return claim.version, claim.state, len(queries.events(claim))


def test_it_shows_what_was_found_and_what_that_would_mean_and_keeps_nothing(
    shop: Shop, admin: Client
) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    before = everything_known(claim_id, shop)
    (effect,) = shop.customer.truth()

    page = tried(admin, shop.transfer, typed(shop.transfer, claim_id))

    text = page.content.decode()
    assert page.status_code == 200
    assert effect["object_id"] in text
    assert "GET /plain/transfers?reference=" in text
    assert "It could settle the call by rule." in text
    assert everything_known(claim_id, shop) == before
    assert pace.reads_lately(shop.transfer.connection_id or 0, queries.clock()) == 1


def test_settings_that_were_typed_are_tried_and_not_saved(shop: Shop, admin: Client) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    other = json.dumps({**TRANSFER["lookup"], "map": {"settled": "pending"}})

    page = tried(admin, shop.transfer, typed(shop.transfer, claim_id, lookup=other))

    assert page.context["found"]["word"] == "pending"
    assert page.context["is_edited"]
    shop.transfer.refresh_from_db()
    assert shop.transfer.lookup["map"] == {"settled": "found"}


def test_the_tools_own_form_brings_its_unsaved_settings(shop: Shop, admin: Client) -> None:
    form = typed(shop.transfer, "")
    del form["call"]

    page = admin.post(address(shop.transfer), {**form, "lookup": '{"url": "/typed"}', "name": "x"})

    assert page.status_code == 200
    assert page.context["trial"] is None
    assert "&quot;/typed&quot;" in page.content.decode()
    assert "edited, not saved" in page.content.decode()


def test_past_calls_are_offered_and_a_link_chooses_one(shop: Shop, admin: Client) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    shop.claim(shop.charge)

    page = admin.get(f"{address(shop.transfer)}?call={claim_id}")

    assert [one.id for one in page.context["offered"]] == [claim_id]
    assert f'value="{claim_id}"' in page.content.decode()


def test_the_address_of_a_calls_page_is_as_good_as_its_id(shop: Shop, admin: Client) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    pasted = f"https://desk.example.com/calls/{claim_id}?evidence=all"

    page = tried(admin, shop.transfer, typed(shop.transfer, pasted))

    assert page.context["found"]["word"] == "found"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"call": ""}, "Choose a past call", id="no call"),
        pytest.param({"call": "x" * 36}, "Choose a past call", id="no id"),
        pytest.param({"call": str(UUID(int=7))}, "No call of this workspace", id="nobody's"),
        pytest.param({"lookup_kind": ""}, "nobody to ask", id="no look-up"),
        pytest.param({"lookup_kind": "soap"}, "no look-up", id="an unknown kind"),
        pytest.param({"connection": ""}, "needs a connection", id="no connection"),
        pytest.param({"connection": "99999999"}, "needs a connection", id="not ours"),
        pytest.param({"lookup": "{"}, "no JSON", id="half a JSON"),
        pytest.param({"lookup": "[]"}, "one JSON object", id="a list"),
        pytest.param({"lookup": "{}"}, "cannot be used", id="an empty entry"),
    ],
)
def test_what_cannot_be_tried_asks_nobody_and_says_why(
    shop: Shop, admin: Client, changes: dict[str, Any], said: str
) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)

    page = admin.post(address(shop.transfer), {**typed(shop.transfer, claim_id), **changes})

    assert page.status_code == 422
    assert said in page.context["typed"].fault
    assert not LookupTrial.objects.exists()


def test_another_tools_call_is_not_tried(shop: Shop, admin: Client) -> None:
    charged = shop.unknown(shop.claim(shop.charge))

    page = admin.post(address(shop.transfer), typed(shop.transfer, charged))

    assert "not of send_transfer" in page.context["typed"].fault


def test_what_fails_only_when_it_is_tried_is_said_too(
    shop: Shop, admin: Client, settings: LazySettings
) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    Connection.objects.filter(tool=shop.transfer).update(base_url="nowhere")

    page = tried(admin, shop.transfer, typed(shop.transfer, claim_id))

    assert "cannot be used" in page.content.decode()
    assert page.context["found"] is None


def test_nobody_waits_where_no_worker_can_be_reached(
    shop: Shop, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    monkeypatch.setattr(tasks, "begin", lambda _: False)

    page = admin.post(address(shop.transfer), typed(shop.transfer, claim_id))

    assert page.status_code == 503
    assert "broker is away" in page.content.decode()
    assert not LookupTrial.objects.exists()


def test_what_was_tried_is_forgotten_after_an_hour_and_is_nobody_elses(
    shop: Shop, admin: Client
) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    page = tried(admin, shop.transfer, typed(shop.transfer, claim_id))
    other = Client()
    other.force_login(a_person(shop.workspace, Role.ADMIN))
    where = f"{address(shop.transfer)}?trial={page.context['trial'].pk}"

    assert "no longer kept" in other.get(where).content.decode()
    shop.clock.advance(3500)
    tasks.tick()
    assert LookupTrial.objects.count() == 1
    shop.clock.advance(200)
    tasks.tick()
    assert LookupTrial.objects.count() == 0
    assert "no longer kept" in admin.get(where).content.decode()


def test_the_part_that_waits_has_the_page_loaded_anew_once(shop: Shop, admin: Client) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    admin.post(address(shop.transfer), typed(shop.transfer, claim_id))
    trial = LookupTrial.objects.get()
    part = f"{address(shop.transfer)}{trial.pk}/"

    before = admin.get(part)
    tasks.perform(trial.pk)
    after = admin.get(part)

    assert "HX-Refresh" not in before
    assert after["HX-Refresh"] == "true"
    assert 'hx-trigger="every 1s"' in before.content.decode()


def test_a_provider_that_refuses_is_shown_as_it_answered(
    shop: Shop, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim_id = a_transfer_whose_answer_was_lost(shop)
    monkeypatch.setenv("TEST_PLAIN_TOKEN", "a wrong token for the bank")

    page = tried(admin, shop.transfer, typed(shop.transfer, claim_id))

    text = page.content.decode()
    assert "does not let us ask (HTTP 401)" in text
    assert "a wrong token for the bank" not in text
    assert "It would settle nothing by itself." in text


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
def test_only_admins_may_try(shop: Shop, role: Role) -> None:
    client = Client()
    client.force_login(a_person(shop.workspace, role))
    claim_id = a_transfer_whose_answer_was_lost(shop)

    assert client.get(address(shop.transfer)).status_code == 403
    page = client.post(address(shop.transfer), typed(shop.transfer, claim_id))
    assert page.status_code == 403
