"""The door for webhooks: whose bytes are kept, how often, and what is never taken."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import DatabaseError
from standardwebhooks.webhooks import Webhook

from effects.models import Connection
from ledger import append, queries
from reconcile import webhook_apply, webhooks
from reconcile.models import WebhookAddress, WebhookDelivery
from reconcile.webhook_signatures import AGE_SECONDS_MAX, AHEAD_SECONDS_MAX
from reconcile.webhooks import WEBHOOK_BODY_BYTES_MAX
from tests.reconcile.courier import SECRET, SECRET_NAME, Courier, hire
from tests.reconcile.finding_out import Shop, id_of, open_shop

pytestmark = pytest.mark.django_db(transaction=True)

EVENT: dict[str, Any] = {
    "id": "evt_1",
    "object": "event",
    "type": "payment_intent.succeeded",
    "created": 1_772_445_660,
    "livemode": False,
    "data": {"object": {"id": "pi_1", "object": "payment_intent", "status": "succeeded"}},
    "request": {"id": None, "idempotency_key": None},
}
BODY = json.dumps(EVENT).encode()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    with open_shop(tmp_path, monkeypatch) as shop:
        yield shop


@pytest.fixture
def courier(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> Courier:
    return hire(shop, monkeypatch)


def test_signed_bytes_are_kept_as_they_came_and_named(courier: Courier) -> None:
    answer = courier.post(BODY)

    assert answer.status_code == 202, "kept, and applied next"
    delivery = WebhookDelivery.objects.get(pk=answer.json()["delivery"])
    assert bytes(delivery.body) == BODY
    assert (delivery.event_id, delivery.type, delivery.object_id) == (
        "evt_1",
        "payment_intent.succeeded",
        "pi_1",
    )
    assert delivery.state == WebhookDelivery.State.WAITING


@pytest.mark.parametrize(
    ("signature", "says"),
    [
        pytest.param(lambda c: "", "No signature", id="no signature at all"),
        pytest.param(lambda c: "t=1,v1=zz,v1", "No signature", id="nonsense"),
        pytest.param(lambda c: c.sign(BODY, secret="whsec_other"), "No signature", id="other"),
        pytest.param(lambda c: c.sign(BODY + b" "), "No signature", id="other bytes"),
        pytest.param(lambda c: c.sign(BODY).replace("v1=", "v0="), "No signature", id="v0"),
        pytest.param(lambda c: c.sign(BODY, age_seconds=AGE_SECONDS_MAX + 5), "ago", id="too old"),
        pytest.param(
            lambda c: c.sign(BODY, age_seconds=-AHEAD_SECONDS_MAX - 5), "future", id="future"
        ),
        pytest.param(lambda c: "t=1" + ",v1=00" * 40, "SIGNATURES_MAX", id="too many"),
    ],
)
def test_other_signatures_are_refused_and_the_refusal_is_seen(
    courier: Courier, signature: Callable[[Courier], str], says: str
) -> None:
    answer = courier.post(BODY, signature(courier))

    assert answer.status_code == 400
    assert answer.json()["code"] == "signature_refused"
    assert says in answer.json()["detail"]
    assert not WebhookDelivery.objects.exists()
    courier.address.refresh_from_db()
    assert (courier.address.refused_count, says in courier.address.refused_why) == (1, True)


@pytest.mark.parametrize("age_seconds", [AGE_SECONDS_MAX - 10, 10 - AHEAD_SECONDS_MAX])
def test_an_age_within_the_limits_is_taken(courier: Courier, age_seconds: int) -> None:
    assert courier.post(BODY, courier.sign(BODY, age_seconds=age_seconds)).status_code == 202


def test_while_a_secret_is_replaced_both_are_taken(
    courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(SECRET_NAME, f"whsec_new  {SECRET}\n")

    for secret in (SECRET, "whsec_new"):
        assert courier.post(BODY, courier.sign(BODY, secret=secret)).status_code == 202
    assert courier.post(BODY, courier.sign(BODY, secret="whsec_third")).status_code == 400


def test_a_secret_that_is_not_set_lets_nothing_in(
    courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(SECRET_NAME)

    answer = courier.post(BODY, courier.sign(BODY, secret=""))

    assert (answer.status_code, answer.json()["code"]) == (503, "webhook_secret_missing")
    assert not WebhookDelivery.objects.exists()


def test_a_long_body_is_refused_with_the_limits_name(courier: Courier) -> None:
    body = BODY + b" " * WEBHOOK_BODY_BYTES_MAX

    answer = courier.post(body)

    assert answer.status_code == 413
    assert answer.json()["limit"] == "WEBHOOK_BODY_BYTES_MAX"


def test_an_unknown_address_and_a_question_are_refused_without_a_page(courier: Courier) -> None:
    elsewhere = courier.client.post("/webhooks/nobody", BODY, content_type="application/json")

    assert (elsewhere.status_code, elsewhere.json()["code"]) == (404, "no_such_webhook_address")
    assert courier.client.get(courier.url).status_code == 405


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"not json", id="no JSON"),
        pytest.param(b'"text"', id="no object"),
        pytest.param(b'{"object": "v2.core.event", "id": "evt_1"}', id="a thin event"),
        pytest.param(b'{"object": "event", "id": "evt_1"}', id="without an object"),
        pytest.param(b'{"object": "event", "id": 7, "data": {"object": {}}}', id="odd id"),
        pytest.param(b'{"a": ' * 3000 + b"1" + b"}" * 3000, id="very deep"),
        pytest.param(b'{"a": ' + b"9" * 5000 + b"}", id="a very long number"),
    ],
)
def test_signed_bytes_that_are_no_event_are_kept_and_said_to_be_none(
    courier: Courier, body: bytes
) -> None:
    assert courier.post(body).status_code == 202

    courier.sweep()

    (delivery,) = WebhookDelivery.objects.all()
    assert bytes(delivery.body) == body
    assert (delivery.state, delivery.due_at) == (WebhookDelivery.State.UNREADABLE, None)
    assert delivery.note


def test_texts_that_no_column_can_hold_do_not_cost_the_delivery(courier: Courier) -> None:
    odd = {**EVENT, "id": "evt_\u0000\ud800", "type": "x" * 500}

    assert courier.post(json.dumps(odd).encode()).status_code == 202
    assert WebhookDelivery.objects.get().event_id == "evt_\ufffd\ufffd"


# The same event again


def test_the_same_bytes_again_are_one_delivery_seen_twice(courier: Courier) -> None:
    first, second = courier.post(BODY), courier.post(BODY)

    assert first.json()["delivery"] == second.json()["delivery"]
    assert WebhookDelivery.objects.get().times_received == 2


def test_the_same_id_with_other_bytes_is_a_delivery_of_its_own(courier: Courier) -> None:
    courier.post(BODY)
    courier.deliver({**EVENT, "pending_webhooks": 0})

    assert WebhookDelivery.objects.filter(event_id="evt_1").count() == 2


def test_an_event_that_failed_is_seen_and_tried_again_until_it_is_applied(
    shop: Shop, courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = shop.claim(shop.charge)
    shop.pay(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    event = courier.event("payment_intent.succeeded")

    def broken(*_: Any, **__: Any) -> None:
        raise DatabaseError("the disk is full, and sk_test_secret0123 is known")

    with monkeypatch.context() as patched:
        patched.setattr(append, "observe", broken)
        failed = courier.bring(event)
    assert failed.state == WebhookDelivery.State.FAILED
    assert "the disk is full" in failed.note
    assert "sk_test_secret0123" not in failed.note
    assert not shop.sightings(claim_id), "nothing of it was kept"

    again = courier.bring(event)
    third = courier.bring(event)
    assert courier.deliver(event).status_code == 200, "only what was applied is a duplicate"

    assert again.pk == failed.pk == third.pk
    assert (again.state, third.state) == (WebhookDelivery.State.APPLIED,) * 2
    assert third.times_received == 3
    assert len(shop.sightings(claim_id)) == 1


def test_a_failure_is_tried_again_by_itself(
    shop: Shop, courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.pay(shop.claim(shop.charge))
    event = courier.event("payment_intent.succeeded")

    def broken(*_: Any, **__: Any) -> None:
        raise DatabaseError("gone")

    with monkeypatch.context() as patched:
        patched.setattr(webhook_apply, "read_event", broken)
        courier.bring(event)
    courier.sweep()
    assert WebhookDelivery.objects.get().state == WebhookDelivery.State.FAILED, "too early"

    shop.clock.advance(6)
    courier.sweep()

    assert WebhookDelivery.objects.get().state == WebhookDelivery.State.APPLIED


def test_a_database_that_fails_while_it_is_kept_is_told_to_the_sender(
    courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise DatabaseError("gone, with sk_live_secret")

    monkeypatch.setattr(webhooks, "store", broken)

    answer = courier.post(BODY)

    assert answer.status_code == 500
    assert b"sk_live_secret" not in answer.content


# Senders that follow Standard Webhooks


def test_another_sender_signs_by_standard_webhooks_and_orders_a_look(
    shop: Shop, courier: Courier, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = b"0123456789abcdef0123456789abcdef"
    monkeypatch.setenv("TEST_BANK_SECRET", "whsec_" + base64.b64encode(key).decode())
    bank = Connection.objects.get(workspace=shop.workspace, kind="http")
    WebhookAddress.objects.create(
        connection=bank, public_id="bank-0123456789", secret_name="TEST_BANK_SECRET"
    )
    answer = shop.claim(shop.transfer, arguments='{"amount": 900}')
    shop.send_transfer(answer, fault="drop_after_commit")
    claim_id = shop.unknown(answer)
    body = json.dumps({"type": "transfer.settled", "data": {"ref": answer.marker}}).encode()
    signed_at = str(int(queries.clock().timestamp()))

    def post(signed: bytes) -> Any:
        made = Webhook(key).sign("msg_1", queries.clock(), signed.decode())
        return courier.client.post(
            "/webhooks/bank-0123456789",
            body,
            content_type="application/json",
            headers={
                "Webhook-Id": "msg_1",
                "Webhook-Timestamp": signed_at,
                "Webhook-Signature": f"v1,bm8= {made}",
            },
        )

    assert post(b"other bytes").status_code == 400
    assert post(body).status_code == 202
    courier.sweep()

    delivery = WebhookDelivery.objects.get()
    assert (delivery.event_id, delivery.type) == ("msg_1", "transfer.settled")
    assert delivery.claims == [id_of(answer)]
    assert shop.state(claim_id) == "completed"
    assert shop.sightings(claim_id)[0].data["trigger"] == "webhook"


# Senders that sign the body alone


@pytest.mark.parametrize(
    ("kind", "header"), [("gocardless", "Webhook-Signature"), ("checkout", "Cko-Signature")]
)
def test_a_sender_that_signs_the_body_alone_is_checked_and_a_copy_is_the_same_delivery(
    shop: Shop, courier: Courier, monkeypatch: pytest.MonkeyPatch, kind: str, header: str
) -> None:
    monkeypatch.setenv("TEST_BODY_SECRET", "a-secret-of-theirs")
    connection = Connection.objects.create(
        workspace=shop.workspace, name=kind, kind=kind, base_url="https://api.example.com"
    )
    WebhookAddress.objects.create(
        connection=connection, public_id="body-0123456789", secret_name="TEST_BODY_SECRET"
    )
    body = b'{"events": [{"id": "EV1"}], "odd": "\xff"}'
    signature = hmac.new(b"a-secret-of-theirs", body, hashlib.sha256).hexdigest()

    def post(signed: str, sent: bytes = body) -> int:
        headers = {header: signed}
        url = "/webhooks/body-0123456789"
        answer = courier.client.post(url, sent, content_type="application/json", headers=headers)
        return int(answer.status_code)

    assert [post(signature), post(signature.upper()), post(signature)] == [202] * 3
    assert WebhookDelivery.objects.get().times_received == 3
    assert [post(""), post(signature[:-1]), post(signature, b"other")] == [400] * 3


def test_a_connection_whose_webhooks_nobody_can_check_takes_none(
    shop: Shop, courier: Courier
) -> None:
    connection = Connection.objects.create(
        workspace=shop.workspace, name="PayPal", kind="paypal", base_url="https://api.example.com"
    )
    WebhookAddress.objects.create(
        connection=connection, public_id="none-0123456789", secret_name=SECRET_NAME
    )

    answer = courier.client.post("/webhooks/none-0123456789", b"{}", content_type="text/plain")

    assert (answer.status_code, answer.json()["code"]) == (404, "no_such_webhook_address")
