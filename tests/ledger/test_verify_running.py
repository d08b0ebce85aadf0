"""`verify_ledger --all` on what is true of a ledger only while it runs."""

import time
from collections.abc import Iterator

import psycopg
import pytest
from django.db import connection

from ledger import restore_fence
from ledger.management.invariants import running
from tests.ledger.test_verify_ledger import verify

pytestmark = pytest.mark.django_db


@pytest.fixture
def another_session(db: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection]:
    """Of the same role in the same database; two tenths of a second count as long."""
    monkeypatch.setattr(running, "TRANSACTION_SECONDS_MAX", 0.2)
    known = connection.settings_dict
    with psycopg.connect(
        host=known["HOST"],
        port=known["PORT"],
        user=known["USER"],
        password=known["PASSWORD"],
        dbname=known["NAME"],
        autocommit=True,
    ) as session:
        yield session


def test_a_transaction_that_stays_open_is_found_and_its_process_named(another_session):
    with another_session.transaction():
        another_session.execute("SELECT 1")
        time.sleep(0.3)
        sound, found = verify("--all")
    (difference,) = found["I23"]
    assert not sound
    assert difference["of"] == f"process {another_session.info.backend_pid}"
    assert "idle in transaction" in difference["says"]


def test_a_session_that_only_waits_for_work_is_no_finding(another_session):
    another_session.execute("SELECT 1")
    time.sleep(0.3)
    assert "I23" not in verify("--all")[1]


def test_a_database_that_was_set_back_is_found(settings, tmp_path, monkeypatch):
    settings.COUNTERFOIL_VAR = tmp_path
    monkeypatch.setenv("COUNTERFOIL_RESTORE_FENCE", "on")
    restore_fence.refresh()
    assert "I16" not in verify("--all")[1]

    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger_watermark")
    (difference,) = verify("--all")[1]["I16"]
    assert "older than this machine has seen it" in difference["says"]
