"""The page about webhooks: who may see it, what it shows of each, and one more try."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.vocabulary import ClaimState, Role
from effects.models import Connection, Membership, Workspace
from ledger import queries
from reconcile import pace
from reconcile.models import WebhookAddress, WebhookDelivery
from reconcile.pages.webhooks import ROWS_MAX
from tests.reconcile.courier import SECRET, SECRET_NAME, Courier, hire
from tests.reconcile.finding_out import Shop, id_of, open_shop

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


@pytest.fixture
def courier(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Courier:
    return hire(shop, monkeypatch)


def signed_in(workspace: Workspace, role: Role) -> Client:
    user = User.objects.create_user(f"{role}-{workspace.slug}")
    Membership.objects.create(workspace=workspace, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.mark.parametrize("role", list(Role))
def test_engineers_and_admins_see_it_and_only_admins_change_addresses(
    shop: Shop, courier: Courier, role: Role
) -> None:
    client = signed_in(shop.workspace, role)
    may_see, may_edit = role in {Role.ENGINEER, Role.ADMIN}, role is Role.ADMIN
    form = {"secret_name": "OTHER_SECRET"}
    edited = client.post(f"/webhooks/addresses/{courier.address.connection_id}", form)

    assert client.get("/webhooks/").status_code == (200 if may_see else 403)
    assert edited.status_code == (302 if may_edit else 403)
    courier.address.refresh_from_db()
    assert courier.address.secret_name == ("OTHER_SECRET" if may_edit else SECRET_NAME)


def test_a_webhook_is_listed_with_its_call_and_its_secret_is_nowhere(
    shop: Shop, courier: Courier
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    shop.unknown(answer)
    courier.bring(courier.event("payment_intent.succeeded"))
    courier.post(b"{}", "t=1,v1=00")
    client = signed_in(shop.workspace, Role.ADMIN)

    page = client.get("/webhooks/").content.decode()
    call = client.get(f"/calls/{id_of(answer)}").content.decode()

    assert "payment_intent.succeeded" in page
    assert f"/calls/{id_of(answer)}" in page
    assert courier.address.public_id in page
    assert "1 refused" in page
    assert SECRET not in page
    assert "Webhook payment_intent.succeeded" in call
    assert "Received" in call


def test_a_failed_webhook_is_applied_again_by_hand(
    shop: Shop, courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    delivery_id = courier.deliver(courier.event("payment_intent.succeeded")).json()["delivery"]
    WebhookDelivery.objects.update(state="failed", note="the disk was full", due_at=None, tries=30)
    client = signed_in(shop.workspace, Role.ENGINEER)
    assert "the disk was full" in client.get("/webhooks/?show=failed").content.decode()

    assert client.post(f"/webhooks/deliveries/{delivery_id}/again").status_code == 302
    courier.sweep()

    assert shop.state(claim_id) is ClaimState.COMPLETED
    assert "the disk was full" not in client.get("/webhooks/").content.decode()


def test_the_bytes_are_given_out_as_they_came_and_never_as_a_page(
    shop: Shop, courier: Courier
) -> None:
    body = b"<script>alert(1)</script>"
    delivery_id = courier.post(body).json()["delivery"]

    answer = signed_in(shop.workspace, Role.ENGINEER).get(
        f"/webhooks/deliveries/{delivery_id}/body"
    )

    assert answer.content == body
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Content-Disposition"].startswith("attachment")


def test_another_workspaces_webhooks_are_not_there(shop: Shop, courier: Courier) -> None:
    delivery_id = courier.post(b"{}").json()["delivery"]
    elsewhere = Workspace.objects.create(
        name="Else", slug="elsewhere", mode="test", created_at=queries.clock()
    )
    client = signed_in(elsewhere, Role.ADMIN)

    assert "No webhooks here" in client.get("/webhooks/").content.decode()
    assert client.get(f"/webhooks/deliveries/{delivery_id}/body").status_code == 404
    assert client.post(f"/webhooks/deliveries/{delivery_id}/again").status_code == 404
    connection_id = courier.address.connection_id
    form = {"secret_name": "X"}
    assert client.post(f"/webhooks/addresses/{connection_id}", form).status_code == 404


def test_an_address_is_made_once_and_cannot_be_guessed(shop: Shop) -> None:
    client = signed_in(shop.workspace, Role.ADMIN)
    bank = Connection.objects.get(workspace=shop.workspace, kind="http")
    where = f"/webhooks/addresses/{bank.pk}"
    client.post(where, {"secret_name": "whsec_the_secret_itself"})
    assert not WebhookAddress.objects.exists(), "a secret is no name of a variable"

    client.post(where, {"secret_name": "BANK_SECRET"})
    first = WebhookAddress.objects.get().public_id
    client.post(where, {"secret_name": "BANK_SECRET_2"})

    kept = WebhookAddress.objects.get()
    assert (kept.public_id, kept.secret_name) == (first, "BANK_SECRET_2")
    assert len(first) >= 32


def test_a_long_list_is_paged(shop: Shop, courier: Courier) -> None:
    for number in range(ROWS_MAX + 2):
        courier.post(b'{"n": %d}' % number)
    client = signed_in(shop.workspace, Role.ENGINEER)

    page = client.get("/webhooks/")
    last = page.context["rows"][-1].pk

    assert len(page.context["rows"]) == ROWS_MAX
    assert f"before={last}" in page.content.decode()
    assert len(client.get(f"/webhooks/?before={last}").context["rows"]) == 2
    assert client.get("/webhooks/?before=nonsense&show=nothing").status_code == 200


def test_reads_of_our_look_ups_are_counted_for_thirty_days(shop: Shop) -> None:
    claim_id = shop.unknown(shop.claim(shop.charge))
    connection_id = shop.charge.connection_id
    assert connection_id is not None
    for _ in range(3):
        shop.look(claim_id)
    assert pace.reads_lately(connection_id, queries.clock()) == 3

    shop.clock.advance(31 * 86_400)

    assert pace.reads_lately(connection_id, queries.clock()) == 0
