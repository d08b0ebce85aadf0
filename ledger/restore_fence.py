"""After a restore to an earlier time the ledger has forgotten claims and would grant them again.

A counter in the database is moved on about once a second, and only once that is committed its value
goes, fsynced, into a file beside the database. A database whose counter is behind the file was set
back. Then nothing is granted until a person has looked and said so; reports, look-ups and readings
go on, because evidence is never refused.

A mark that cannot be read counts as one that the database is behind: what it knew is not known. A
folder that cannot be written stops neither the clock's work nor a grant; it is said in the log.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, LiteralString
from uuid import UUID

from django.conf import settings
from django.db import connection

from effects.core.problems import LedgerBehind
from ledger.functions import call

logger = logging.getLogger(__name__)

NAME: Final = "head"
CHECK_EVERY_SECONDS: Final = 1.0
RETRY_AFTER_SECONDS: Final = 60
MARK_BYTES_MAX: Final = 4096
LOCK_SECONDS_MAX: Final = 2.0
"""How long a writer waits for another one: a mark takes milliseconds, one that stopped for ever."""
LOCK_POLL_SECONDS: Final = 0.01

HEAD: LiteralString = "SELECT claim_id FROM ledger_watermark WHERE name = %s"
MOVE: LiteralString = """
INSERT INTO ledger_watermark AS w (name, claim_id) VALUES (%s, %s)
ON CONFLICT (name) DO UPDATE SET claim_id = greatest(w.claim_id, excluded.claim_id)
RETURNING claim_id
"""
CONFIRM: LiteralString = "SELECT ledger_confirm_v1()"
UNCONFIRM: LiteralString = "DELETE FROM ledger_watermark WHERE name = 'confirmed' RETURNING name"
NEWEST: LiteralString = "SELECT id, granted_at FROM ledger_claim ORDER BY id DESC LIMIT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What the file says: the counter, and the newest claim that was known then."""

    counter: int
    newest_claim: str | None
    at: str


class MarkUnreadableError(ValueError):
    """There is a mark, or may be, and what it says cannot be read."""


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
    """None: this machine has no mark yet. Raises `MarkUnreadableError` for anything but a mark."""
    path = mark_path()
    try:
        with path.open("rb") as file:
            written = file.read(MARK_BYTES_MAX + 1)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise MarkUnreadableError(f"{path} cannot be read: {error}") from error
    if len(written) > MARK_BYTES_MAX:
        raise MarkUnreadableError(f"{path} is no mark: it is longer than {MARK_BYTES_MAX} bytes")
    try:
        return _mark(json.loads(written))
    except (ValueError, TypeError, RecursionError) as error:
        raise MarkUnreadableError(f"{path} is no mark: {error}") from error


def _mark(said: Any) -> Mark:
    mark = Mark(**said)
    # What a file says has no type yet, whatever the class promises.
    counter, texts = said["counter"], (said["newest_claim"] or "", said["at"])
    if type(counter) is not int or not 0 <= counter < 1 << 128:
        raise ValueError(f"its counter is {counter!r}")
    if not all(isinstance(text, str) for text in texts):
        raise TypeError("its claim and its time are no texts")
    return mark


def head() -> int:
    """The database's own counter; 0 where it has none."""
    rows = call(HEAD, [NAME])
    return rows[0][0].int if rows else 0


def is_behind() -> bool:
    """Whether the database is older than what this machine has seen of it, or may be."""
    return why_behind() is not None


def why_behind() -> str | None:
    """What is wrong, as a sentence for people; None where grants go on."""
    try:
        mark = read_mark()
    except MarkUnreadableError as error:
        return f"Whether the ledger's database was set back cannot be told: {error}."
    # The mark was read first: whatever it says was committed before, unless it was taken back.
    if mark is None or head() >= mark.counter:
        return None
    return (
        "The ledger's database is older than this machine has seen it, so it may have forgotten"
        " claims."
    )


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
    why = why_behind()
    if why is not None:
        _seen.connection = None
        logger.error("%s Nothing is granted until manage.py accept_restore.", why)
        raise LedgerBehind(
            f"{why} Nothing is granted until a person has looked: manage.py accept_restore.",
            retry_after_seconds=RETRY_AFTER_SECONDS,
        )
    _seen.connection, _seen.checked_at = connection.connection, now


def confirm() -> None:
    """Tells the database itself that it was not set back, for the agents that ask it without us.

    They have no mark. A database that was started, or filled, since the last word of somebody who
    has one grants them nothing until the next.
    """
    call(CONFIRM, [])


def refresh() -> bool:
    """Moves counter and mark on. False where the database is behind, or the mark cannot be written.

    Never raises for what is wrong with the folder: the clock's work goes on without a mark.
    """
    if not is_on():
        confirm()
        return True
    why = why_behind()
    if why is not None:
        call(UNCONFIRM, [])
        logger.error("%s Nothing is granted until manage.py accept_restore.", why)
        return False
    confirm()
    try:
        move_on(head() + 1)
    except OSError:
        logger.exception(
            "The mark %s cannot be written, so a restore from now on may go unseen. Let the worker"
            " write into the folder COUNTERFOIL_VAR.",
            mark_path(),
        )
        return False
    return True


def move_on(counter: int, *, over_unreadable: bool = False) -> None:
    """Counter first, then mark; an older counter changes neither. Raises `OSError`."""
    ((moved,),) = call(MOVE, [NAME, UUID(int=counter)])
    # The file comes second: it never knows of a counter that a crash could take back.
    newest = call(NEWEST, [])
    ((at,),) = call("SELECT clock_timestamp()", [])
    claim = str(newest[0][0]) if newest else None
    mark = Mark(counter=moved.int, newest_claim=claim, at=at.isoformat())
    with locked():
        if _is_newer(mark, over_unreadable=over_unreadable):
            _write(mark)


def _is_newer(mark: Mark, *, over_unreadable: bool) -> bool:
    """Whether it goes over the one that is there; asked under the lock.

    A slower writer must not take back what a faster one has said since. An unreadable mark may be
    any, so only a person's word goes over it.
    """
    try:
        there = read_mark()
    except MarkUnreadableError:
        return over_unreadable
    return there is None or there.counter < mark.counter


@contextmanager
def locked() -> Iterator[None]:
    """One writer at a time. Raises `OSError`, `TimeoutError` where another one does not finish."""
    # Read-only, so that whoever accepted a restore as another user does not lock the worker out.
    lock = os.open(mark_path().with_suffix(".lock"), os.O_RDONLY | os.O_CREAT, 0o644)
    try:
        until = time.monotonic() + LOCK_SECONDS_MAX
        while not _takes(lock):
            if time.monotonic() > until:
                raise TimeoutError(f"another process holds {mark_path().with_suffix('.lock')}")
            time.sleep(LOCK_POLL_SECONDS)
        yield
    finally:
        os.close(lock)


def _takes(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _write(mark: Mark) -> None:
    path = mark_path()
    draft = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with draft.open("w") as file:
            json.dump(asdict(mark), file)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def accept(reason: str) -> None:
    """A person has looked: grants go on. What was accepted and why stays in `restores.jsonl`.

    Raises `OSError` where the folder cannot be written: then nothing is accepted.
    """
    try:
        mark = read_mark()
    except MarkUnreadableError:
        # Where something else than a file is in its place, that has to go first.
        mark = None
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
    move_on(max(head(), mark.counter if mark else 0) + 1, over_unreadable=True)
    confirm()
