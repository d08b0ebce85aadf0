"""After a restore to an earlier time the ledger has forgotten claims and would grant them again.

A counter in the database is moved on about once a second, and only once that is committed its value
goes, fsynced, into a file beside the database. A database whose counter is behind the file was set
back. Then nothing is granted until a person has looked and said so; reports, look-ups and readings
go on, because evidence is never refused.
"""

from __future__ import annotations

import json
import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, LiteralString
from uuid import UUID

from django.conf import settings
from django.db import connection

from effects.core.problems import LedgerBehind
from ledger.functions import call

NAME: Final = "head"
CHECK_EVERY_SECONDS: Final = 1.0
RETRY_AFTER_SECONDS: Final = 60

HEAD: LiteralString = "SELECT claim_id FROM ledger_watermark WHERE name = %s"
MOVE: LiteralString = """
INSERT INTO ledger_watermark AS w (name, claim_id) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET claim_id = greatest(w.claim_id, excluded.claim_id)
RETURNING claim_id
"""
NEWEST: LiteralString = "SELECT id, granted_at FROM ledger_claim ORDER BY id DESC LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What the file says: the counter, and the newest claim that was known then."""

    counter: int
    newest_claim: str | None
    at: str


class _Seen(threading.local):
    connection: object = None
    checked_at: float = float("-inf")


_seen = _Seen()


def _folder() -> Path:
    return Path(settings.COUNTERFOIL_VAR)


def mark_path() -> Path:
    return _folder() / "ledger_head.json"


def is_on() -> bool:
    """Tests empty their tables on purpose, and switch it off."""
    return os.environ.get("COUNTERFOIL_RESTORE_FENCE", "on") != "off"


def read_mark() -> Mark | None:
    """None: this machine has no mark yet. Raises ValueError for a file that is not one."""
    try:
        return Mark(**json.loads(mark_path().read_text()))
    except FileNotFoundError:
        return None
    except TypeError as error:
        raise ValueError(f"{mark_path()} is no mark: {error}") from error


def head() -> int:
    """The database's own counter; 0 where it has none."""
    rows = call(HEAD, [NAME])
    return rows[0][0].int if rows else 0


def is_behind() -> bool:
    """Whether the database is older than what this machine has seen of it."""
    mark = read_mark()
    return mark is not None and head() < mark.counter


def guard() -> None:
    """Before a grant: raises `LedgerBehind` where the database was set back.

    Asked on each new connection, and then about once a second.
    """
    if not is_on():
        return
    connection.ensure_connection()
    now = time.monotonic()
    known = _seen.connection is connection.connection
    if known and now - _seen.checked_at < CHECK_EVERY_SECONDS:
        return
    if is_behind():
        _seen.connection = None
        raise LedgerBehind(
            "The ledger's database is older than this machine has seen it, so it may have forgotten"
            " claims. Nothing is granted until a person has looked: manage.py accept_restore.",
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
    _seen.connection, _seen.checked_at = connection.connection, now


def refresh() -> bool:
    """Moves counter and mark on. False, and nothing moves, where the database is behind."""
    if not is_on():
        return True
    if is_behind():
        return False
    _move_on(head() + 1)
    return True


def _move_on(counter: int) -> None:
    ((moved,),) = call(MOVE, [NAME, UUID(int=counter)])
    # The file comes second: it never knows of a counter that a crash could take back.
    newest = call(NEWEST, [])
    ((at,),) = call("SELECT clock_timestamp()", [])
    claim = str(newest[0][0]) if newest else None
    _write({"counter": moved.int, "newest_claim": claim, "at": at.isoformat()})


def _write(said: dict[str, Any]) -> None:
    path = mark_path()
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    with draft.open("w") as file:
        json.dump(said, file)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def accept(reason: str) -> None:
    """A person has looked: grants go on. What was accepted and why stays in `restores.jsonl`."""
    mark = read_mark()
    newest = call(NEWEST, [])
    ((at,),) = call("SELECT clock_timestamp()", [])
    said = {
        "accepted_at": at.isoformat(),
        "reason": reason,
        "mark_at": mark.at if mark else None,
        "mark_newest_claim": mark.newest_claim if mark else None,
        "newest_claim": str(newest[0][0]) if newest else None,
        "counter": head(),
        "mark_counter": mark.counter if mark else None,
    }
    with (_folder() / "restores.jsonl").open("a") as file:
        file.write(json.dumps(said) + "\n")
        file.flush()
        os.fsync(file.fileno())
    _move_on(max(head(), mark.counter if mark else 0) + 1)
