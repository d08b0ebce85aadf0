"""A database that was set back grants nothing until a person has looked; evidence goes on."""

import io
import json
from collections.abc import Callable

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from effects.core.problems import LedgerBehind
from ledger import restore_fence

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _a_fence(monkeypatch, settings, tmp_path):
    monkeypatch.setenv("COUNTERFOIL_RESTORE_FENCE", "on")
    settings.COUNTERFOIL_VAR = tmp_path
    monkeypatch.setattr(restore_fence, "CHECK_EVERY_SECONDS", 0.0)


@pytest.fixture
def set_back(db: None) -> Callable[[], None]:
    """Two seconds of a living ledger, and then the database as it was before them."""

    def restore() -> None:
        restore_fence.refresh()
        with connection.cursor() as cursor:
            cursor.execute("CREATE TEMP TABLE backup AS SELECT * FROM ledger_watermark")
            restore_fence.refresh()
            cursor.execute("DELETE FROM ledger_watermark")
            cursor.execute("INSERT INTO ledger_watermark SELECT * FROM backup")

    return restore


def test_a_machine_without_a_mark_grants(agent):
    assert agent.claim().claim["code"] == "granted"


def test_a_ledger_that_was_set_back_grants_nothing_and_takes_every_report(agent, set_back):
    running = agent.claim().claim
    set_back()

    refused = agent.claim(turn_index=9, call_id=None)
    assert (refused.status, refused.code) == (503, "ledger_behind")
    assert "manage.py accept_restore" in refused.json["detail"]
    done = {"fence": running["fence"], "result": "1", "provider_object": "re_1"}
    assert agent.post(f"claims/{running['claim_id']}/complete", done).status == 200
    assert agent.get(f"claims/{running['claim_id']}").status == 200

    call_command("accept_restore", "--reason", "compared", stdout=io.StringIO())
    assert agent.claim(turn_index=9, call_id=None).claim["code"] == "granted"


def test_a_ledger_that_goes_on_grants(agent):
    for _ in range(3):
        assert restore_fence.refresh()
        restore_fence.guard()


def test_a_database_that_was_set_back_is_not_moved_on(set_back):
    set_back()

    assert not restore_fence.refresh()
    assert restore_fence.is_behind()


def test_an_emptied_database_beside_a_mark_is_behind():
    restore_fence.refresh()
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM ledger_watermark")

    with pytest.raises(LedgerBehind):
        restore_fence.guard()


def test_a_person_looks_says_why_and_grants_go_on(set_back, tmp_path):
    set_back()
    out = io.StringIO()
    with pytest.raises(CommandError, match="Say why with --reason"):
        call_command("accept_restore", stdout=out)
    assert "are forgotten" in out.getvalue()
    with pytest.raises(LedgerBehind):
        restore_fence.guard()

    call_command("accept_restore", "--reason", "compared with the provider", stdout=out)

    restore_fence.guard()
    (kept,) = (tmp_path / "restores.jsonl").read_text().splitlines()
    assert json.loads(kept)["reason"] == "compared with the provider"
    assert restore_fence.refresh()


def test_a_file_that_is_no_mark_is_said_to_be_none():
    restore_fence.mark_path().write_text("[]")

    with pytest.raises(ValueError, match="no mark"):
        restore_fence.read_mark()
