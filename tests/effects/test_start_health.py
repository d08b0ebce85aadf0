"""The two addresses that a load balancer asks."""

from datetime import timedelta

import pytest
from django.db.models import F
from django.test import Client

from effects.celery import app
from effects.heartbeats import (
    BEAT,
    LATELY_SECONDS,
    WORKER,
    Heartbeat,
    mark_seen,
    seconds_since_seen,
)
from effects.local.ports import any_free_port
from effects.tasks import tick


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


@pytest.mark.django_db
def test_readyz_is_ready_when_worker_and_beat_were_seen_lately(client: Client):
    mark_seen(WORKER)
    mark_seen(BEAT)

    answer = client.get("/readyz")

    assert answer.status_code == 200
    assert set(answer.json()["checks"].values()) == {"ok"}


@pytest.mark.django_db
def test_a_worker_that_fell_silent_is_not_ready(client: Client):
    mark_seen(BEAT)
    mark_seen(WORKER)
    Heartbeat.objects.filter(name=WORKER).update(
        seen_at=F("seen_at") - timedelta(seconds=LATELY_SECONDS + 12)
    )

    answer = client.get("/readyz")

    assert answer.status_code == 503
    assert answer.json()["checks"]["worker"] == "worker was last seen 42 s ago"
    assert answer.json()["checks"]["beat"] == "ok"


@pytest.mark.django_db
def test_a_broker_that_is_away_is_said_without_its_address(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    away = f"redis://:hunter2@127.0.0.1:{any_free_port()}/0"
    monkeypatch.setattr(app.conf, "broker_write_url", away)

    answer = client.get("/readyz")

    assert answer.json()["checks"]["broker"] == "the broker does not answer"
    assert "hunter2" not in answer.text


@pytest.mark.django_db
def test_the_tick_marks_the_worker():
    tick()

    assert seconds_since_seen(WORKER) is not None
    assert seconds_since_seen(BEAT) is None


def test_both_are_for_reading_only(client: Client):
    assert client.post("/healthz").status_code == 405
    assert client.post("/readyz").status_code == 405
