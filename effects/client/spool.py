"""What could not be told to the ledger, kept on disk until it can.

One record is one file: written under another name, fsynced, renamed, and the folder fsynced. So a
process that is killed at any step leaves a whole record or none, never half of one. Several
processes may keep records in one folder; one at a time delivers them, in the order in which they
were kept. A record leaves the folder when the ledger has answered; one that the ledger refuses is
set aside in `refused/`, with the reason beside it, and never deleted.

A record holds what a report holds, results included, and is readable by its owner only. It holds
no token.
"""

from __future__ import annotations

import fcntl
import hashlib
import itertools
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from effects.core.problems import (
    LedgerProblem,
    LedgerUnavailable,
    ScopeMissing,
    TokenRefused,
)

__all__ = ["Delivered", "Kept", "Spool", "SpoolFull"]

RECORDS_MAX: Final = 10_000
BYTES_MAX: Final = 256 * 1024 * 1024
OWNER_ONLY: Final = 0o600
SUFFIX: Final = ".record"


class SpoolFull(Exception):
    """The record could not be kept: the spool's limit or the disk's end was reached. What was kept
    before is untouched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One thing to tell the ledger: which `verb` of the API, for which claim, with which body."""

    verb: str
    claim: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """What one delivery came to. `busy`: another process is delivering."""

    told: int = 0
    refused: int = 0
    waiting: int = 0
    busy: bool = False


class Spool:
    """A folder of records. Safe to share between threads and processes of one user.

    Raises OSError where the folder cannot be made or is not this user's to write.
    """

    def __init__(
        self, folder: Path | str, *, records_max: int = RECORDS_MAX, bytes_max: int = BYTES_MAX
    ) -> None:
        self._folder = Path(folder)
        self._records_max = records_max
        self._bytes_max = bytes_max
        self._lock = threading.Lock()
        self._numbers = itertools.count()
        self._newest = 0
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def keep(self, record: Kept, *, named: str = "") -> None:
        """Returns when the record is on the disk. `named` makes it one that `holds` finds. Raises
        `SpoolFull`."""
        body = _encoded(record)
        self._check_limits(len(body))
        name = f"{self._next_name()}-{named}" if named else self._next_name()
        draft = self._folder / f"{name}.draft"
        try:
            _write_through(draft, body)
            draft.rename(self._folder / f"{name}{SUFFIX}")
            _sync(self._folder)
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise SpoolFull(
                f"{record.verb} of claim {record.claim} could not be kept in {self._folder}: "
                f"{error.strerror or error}. Make room there; the ledger will find out by itself."
            ) from error

    def holds(self, named: str) -> bool:
        """Whether a record of this name waits, or was refused and set aside, whoever kept it."""
        found = f"*-{named}{SUFFIX}"
        return any(any(place.glob(found)) for place in (self._folder, self._folder / "refused"))

    def waiting(self) -> int:
        """How many records wait to be delivered."""
        return len(self._records())

    def refused(self) -> list[tuple[str, str]]:
        """The records that were set aside: file name and reason."""
        reasons = sorted((self._folder / "refused").glob("*.why"))
        return [(path.stem, path.read_text(errors="replace")) for path in reasons]

    def deliver(self, tell: Callable[[Kept], object]) -> Delivered:
        """Tells the ledger what waits, oldest first, until it is away.

        `tell` raises `LedgerUnavailable` while the ledger is away, and another `LedgerProblem` for
        a record that it refuses. A token that is refused is not the record's fault: everything
        waits. Telling twice must be harmless: a process that is killed between the answer and the
        removal tells it again.
        """
        with self._delivering() as alone:
            if not alone:
                return Delivered(waiting=self.waiting(), busy=True)
            told = refused = 0
            for path in self._records():
                try:
                    tell(_decoded(path.read_bytes()))
                except (LedgerUnavailable, TokenRefused, ScopeMissing):
                    break
                except (LedgerProblem, ValueError) as problem:
                    refused += self._set_aside(path, str(problem))
                else:
                    path.unlink()
                    told += 1
            if told:
                _sync(self._folder)
            return Delivered(told=told, refused=refused, waiting=self.waiting())

    def _records(self) -> list[Path]:
        return sorted(self._folder.glob(f"*{SUFFIX}"))

    def _next_name(self) -> str:
        """Names sort in the order in which a process kept its records, whatever the clock does."""
        with self._lock:
            self._newest = max(self._newest + 1, time.time_ns())
            return f"{self._newest:020d}-{os.getpid()}-{next(self._numbers)}"

    def _check_limits(self, size_bytes: int) -> None:
        records = self._records()
        if len(records) >= self._records_max:
            raise SpoolFull(
                f"The spool {self._folder} holds {len(records)} records; its limit RECORDS_MAX is "
                f"{self._records_max}. Deliver it or raise the limit."
            )
        used = sum(_size_bytes(path) for path in records)
        if used + size_bytes > self._bytes_max:
            raise SpoolFull(
                f"The spool {self._folder} holds {used} bytes; its limit BYTES_MAX is "
                f"{self._bytes_max}. Deliver it or raise the limit."
            )

    def _set_aside(self, path: Path, why: str) -> int:
        """Moves a record out of the way of the others; 0: there is no room for the reason, so it
        stays where it is and is tried again."""
        aside = self._folder / "refused"
        try:
            aside.mkdir(mode=0o700, exist_ok=True)
            _write_through(aside / f"{path.stem}.why", why.encode())
            path.rename(aside / path.name)
            _sync(aside)
            _sync(self._folder)
        except OSError:
            return 0
        return 1

    @contextmanager
    def _delivering(self) -> Iterator[bool]:
        """Whether this caller is the one that delivers. The lock dies with its process."""
        with os.fdopen(os.open(self._folder / ".lock", os.O_RDWR | os.O_CREAT, OWNER_ONLY)) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            yield True


def _size_bytes(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # Another process has just delivered it.
        return 0


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _encoded(record: Kept) -> bytes:
    """A first line that names the version and the digest of the rest, so that a file that a broken
    disk changed is seen as such."""
    said = {"verb": record.verb, "claim": record.claim, "body": record.body}
    body = json.dumps(said, ensure_ascii=True).encode()
    return b"counterfoil-spool-1 " + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def _decoded(text: bytes) -> Kept:
    head, _, body = text.partition(b"\n")
    version, _, digest = head.partition(b" ")
    if version != b"counterfoil-spool-1":
        raise ValueError("The record is of a version that this client does not know.")
    if hashlib.sha256(body).hexdigest().encode() != digest:
        raise ValueError("The record is damaged: its digest differs.")
    said = json.loads(body)
    return Kept(verb=said["verb"], claim=said["claim"], body=said["body"])


def _write_through(path: Path, content: bytes) -> None:
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
    with os.fdopen(handle, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
