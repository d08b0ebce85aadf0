"""The outbox page: who may see it, what it shows of each delivery, and the addresses."""

from __future__ import annotations

import pytest
from django.test import Client

from effects.core.vocabulary import Role, Verdict
from ledger import queries
from reconcile.outbox import composing, sending
from reconcile.outbox.models import AgentAddress, OutboxDelivery
from reconcile.pages.outbox import ADDRESSES_MAX, ROWS_MAX
from tests.reconcile.outbox.conftest import SECRET_NAME
from tests.reconcile.outbox.receiver import SECRET
from tests.reconcile.outbox.test_composing import decide
from tests.support import desk

pytestmark = pytest.mark.django_db

FORM = {
    "name": "Mail agent",
    "url": "https://agents.example.com/news",
    "secret_name": "MAIL_SECRET",
}


def signed_in(workspace, role=Role.ADMIN) -> Client:
    client = Client()
    client.force_login(desk.a_person(workspace, role))
    return client


@pytest.fixture
def admin(halden) -> Client:
    return signed_in(halden)


@pytest.mark.parametrize("role", list(Role))
def test_engineers_and_admins_see_it_and_only_admins_change_addresses(halden, address, role):
    client = signed_in(halden, role)
    may_see, may_edit = role in {Role.ENGINEER, Role.ADMIN}, role is Role.ADMIN
    assert client.get("/outbox/").status_code == (200 if may_see else 403)
    assert client.post("/outbox/addresses", FORM).status_code == (302 if may_edit else 403)
    trial = client.post(f"/outbox/addresses/{address.pk}/test")
    assert trial.status_code == (302 if may_edit else 403)
    retired = client.post(f"/outbox/addresses/{address.pk}/retire")
    assert retired.status_code == (302 if may_edit else 403)
    address.refresh_from_db()
    assert (address.retired_at is not None) == may_edit


def test_a_delivery_is_listed_with_its_call_and_no_secret_is_anywhere(admin, address, charge, ana):
    claim_id = desk.a_lost_call(charge)
    decide(charge, claim_id, Verdict.CLOSE, ana)
    composing.compose()
    page = admin.get("/outbox/").content.decode()
    assert "call.closed" in page
    assert f"/calls/{claim_id}" in page
    assert "Billing agent" in page
    assert "Signed with 1 secret from the variable" in page
    assert SECRET not in page
    assert "not tried yet" in page


def test_an_empty_outbox_says_what_will_be_there(admin):
    page = admin.get("/outbox/").content.decode()
    assert "Nobody is told. Agents that ask, or wait for an answer, get it all the same." in page
    assert "Nothing was sent" in page


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"url": "http://agents.example.com/news"}, "Results would travel unencrypted"),
        ({"url": "https://user:word@example.com/"}, "password in it"),
        ({"url": "ftp://example.com/"}, "not a web address"),
        ({"secret_name": "whsec_abc"}, "not the secret itself"),
        ({"name": ""}, "required"),
        ({"name": "Billing agent"}, "has this name"),
        ({"types": ["call.closed", "call.something"]}, "call.something"),
    ],
)
def test_an_address_that_cannot_be_used_is_refused_with_the_reason(admin, address, changed, says):
    response = admin.post("/outbox/addresses", FORM | changed)
    assert response.status_code == 422
    assert says in response.content.decode()
    assert AgentAddress.objects.count() == 1


def test_an_address_asks_for_types_and_a_name_is_free_again_once_retired(admin, halden, address):
    admin.post(f"/outbox/addresses/{address.pk}/retire")
    made = admin.post(
        "/outbox/addresses", FORM | {"name": "Billing agent", "types": ["call.closed"]}
    )
    assert made.status_code == 302
    new = AgentAddress.objects.get(retired_at=None)
    assert (new.name, new.types, new.workspace) == ("Billing agent", ["call.closed"], halden)
    assert 'Types: <span class="mono">call.closed</span>' in admin.get("/outbox/").content.decode()


def test_there_is_a_limit_and_the_error_names_it(admin, halden):
    now = queries.clock()
    AgentAddress.objects.bulk_create(
        AgentAddress(workspace=halden, name=f"a{n}", url="https://x.example", made_at=now)
        for n in range(ADDRESSES_MAX)
    )
    response = admin.post("/outbox/addresses", FORM)
    assert response.status_code == 422
    assert f"ADDRESSES_MAX is {ADDRESSES_MAX}" in response.content.decode()


def test_what_was_given_up_is_sent_again_and_what_was_taken_is_not(
    admin, halden, address, charge, ana
):
    decide(charge, desk.a_lost_call(charge), Verdict.CLOSE, ana)
    composing.compose()
    delivery = OutboxDelivery.objects.get()
    OutboxDelivery.objects.update(state="given_up", due_at=None, tries=11)
    admin.post(f"/outbox/deliveries/{delivery.pk}/again")
    assert sending.take_due(5, 60) == [delivery.pk]

    OutboxDelivery.objects.update(state="delivered", due_at=None)
    answer = admin.post(f"/outbox/deliveries/{delivery.pk}/again", follow=True)
    assert "It was taken already" in answer.content.decode()
    assert sending.take_due(5, 60) == []


def test_the_bytes_that_were_signed_can_be_kept(admin, address):
    delivery = composing.trial_message(address)
    response = admin.get(f"/outbox/deliveries/{delivery.pk}/body")
    assert response.content == bytes(delivery.message.body)
    assert response.headers["Content-Disposition"].startswith("attachment")


def test_another_workspace_sees_nothing_of_it(address):
    delivery = composing.trial_message(address)
    stranger = signed_in(desk.a_workspace("elsewhere"))
    assert "Billing agent" not in stranger.get("/outbox/").content.decode()
    for way in ("again", "body"):
        method = stranger.post if way == "again" else stranger.get
        assert method(f"/outbox/deliveries/{delivery.pk}/{way}").status_code == 404
    assert stranger.post(f"/outbox/addresses/{address.pk}/retire").status_code == 404


def test_a_long_list_is_paged_by_key(admin, address):
    for _ in range(ROWS_MAX + 1):
        composing.trial_message(address)
    oldest = OutboxDelivery.objects.earliest("pk")
    first = admin.get("/outbox/").content.decode()
    assert f'id="d{oldest.pk}"' not in first
    second = admin.get(f"/outbox/?show=all&before={oldest.pk + 1}").content.decode()
    assert f'id="d{oldest.pk}"' in second


def test_the_variable_that_is_not_set_is_named(admin, address, monkeypatch):
    monkeypatch.delenv(SECRET_NAME)
    assert "is not set where this desk runs" in admin.get("/outbox/").content.decode()


def test_a_call_says_what_its_agents_were_told_and_which_decision_was_overtaken(
    admin, address, charge, ana
):
    call = desk.a_call(charge)
    claim_id = desk.lose(charge, call)
    assert "What agents were told" not in admin.get(f"/calls/{claim_id}").content.decode()

    decide(charge, claim_id, Verdict.CLOSE, ana, hold_seconds=60)
    desk.complete(charge, call)
    composing.compose()

    page = admin.get(f"/calls/{claim_id}").content.decode()
    assert "What agents were told" in page
    assert "to Billing agent: on its way" in page
    assert "something was learnt while it was held, so it never took effect" in page
