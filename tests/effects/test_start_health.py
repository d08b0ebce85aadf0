"""The two addresses that a load balancer asks."""

import pytest
from django.test import Client


def test_healthz_asks_nobody(client: Client):
    answer = client.get("/healthz")

    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


@pytest.mark.django_db
def test_readyz_names_who_was_never_seen(client: Client):
    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json() == {
        "status": "not ready",
        "checks": {
            "database": "ok",
            "migrations": "ok",
            "broker": "ok",
            "worker": "worker was never seen",
            "beat": "beat was never seen",
        },
    }
