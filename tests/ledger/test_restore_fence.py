"""A database that was set back grants nothing until a person has looked; evidence goes on."""

import io
import json
from collections.abc import Callable
from dataclasses import asdict

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from effects.core.problems import LedgerBehind
from ledger import append, restore_fence
from reconcile import tasks

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


UNREADABLE = {
    "empty": b"",
    "half": b'{"counter": 1, "newest',
    "a list": b"[]",
    "a text for a counter": b'{"counter": "7", "newest_claim": null, "at": ""}',
    "a yes for a counter": b'{"counter": true, "newest_claim": null, "at": ""}',
    "below nought": b'{"counter": -1, "newest_claim": null, "at": ""}',
    "a name too many": b'{"counter": 1, "newest_claim": null, "at": "", "more": 1}',
    "no text": b"\xff\xfe",
    "deep": b"[" * 4000,
    "long": b" " * 5000,
}


@pytest.mark.parametrize("written", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_file_that_is_no_mark_counts_as_a_ledger_that_was_set_back(written, caplog):
    restore_fence.mark_path().write_bytes(written)

    with pytest.raises(restore_fence.MarkUnreadableError, match="no mark"):
        restore_fence.read_mark()
    assert not restore_fence.refresh()
    with pytest.raises(LedgerBehind, match="accept_restore"):
        restore_fence.guard()
    assert "no mark" in caplog.text
    assert restore_fence.mark_path().read_bytes() == written


def test_a_claim_beside_an_unreadable_mark_says_what_to_do(agent):
    restore_fence.mark_path().write_bytes(b"")

    refused = agent.claim()
    assert (refused.status, refused.code) == (503, "ledger_behind")
    assert "ledger_head.json is no mark" in refused.json["detail"]

    out = io.StringIO()
    call_command("accept_restore", "--reason", "the disk was full", stdout=out)
    assert "is no mark" in out.getvalue()
    assert agent.claim().claim["code"] == "granted"
    assert restore_fence.refresh()


def test_something_else_in_the_marks_place_grants_nothing_and_is_not_accepted(agent):
    restore_fence.mark_path().mkdir()

    assert agent.claim().code == "ledger_behind"
    with pytest.raises(CommandError, match="Nothing is accepted"):
        call_command("accept_restore", "--reason", "why not", stdout=io.StringIO())
    assert agent.claim().code == "ledger_behind"


def test_a_folder_that_cannot_be_written_stops_neither_the_clock_nor_a_grant(
    agent, settings, monkeypatch, caplog
):
    # Not even root writes there.
    settings.COUNTERFOIL_VAR = "/proc"
    swept: list[int] = []
    monkeypatch.setattr(append, "sweep", swept.append)

    tasks.tick()

    assert swept == [tasks.SWEPT_MAX]
    assert "cannot be written" in caplog.text
    assert agent.claim().claim["code"] == "granted"


def test_the_clock_works_beside_an_unreadable_mark(monkeypatch):
    restore_fence.mark_path().write_bytes(b"")
    swept: list[int] = []
    monkeypatch.setattr(append, "sweep", swept.append)

    tasks.tick()

    assert swept == [tasks.SWEPT_MAX]


def test_a_slower_writer_does_not_take_a_newer_mark_back():
    newer = restore_fence.Mark(counter=9, newest_claim=None, at="later")
    restore_fence.mark_path().write_text(json.dumps(asdict(newer)))

    restore_fence.move_on(5)

    assert restore_fence.read_mark() == newer


def test_a_writer_that_hangs_is_not_waited_for(monkeypatch, caplog):
    monkeypatch.setattr(restore_fence, "LOCK_SECONDS_MAX", 0.05)

    with restore_fence.locked():
        assert not restore_fence.refresh()

    assert "another process holds" in caplog.text
    assert restore_fence.refresh()


def test_a_mark_leaves_no_draft_behind(tmp_path):
    restore_fence.refresh()

    assert {path.name for path in tmp_path.iterdir()} == {"ledger_head.json", "ledger_head.lock"}
