"""Waiting for a claim to change, for as many agents as like, at the price of one.

A waiting request gives its database connection back first. One thread of this process then asks
for all claims that somebody waits for, in one statement by primary key, a few times a second: no
transaction stays open, no lock is held, nobody is notified from inside a claim's transaction, and
a hundred waiting agents cost the database no more than one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from django.db import Error as DatabaseFailed
from django.db import connection

from ledger.queries import Moment, moments

POLL_SECONDS: Final = 0.25
WAITERS_MAX: Final = 20
"""Most requests of one process that wait at a time. Each occupies one of its threads, and those
that are left must be able to serve claims; one waiter too many is answered at once."""


class Busy(Exception):
    """So many requests wait already that this one may not."""


@dataclass(eq=False, slots=True)
class _Waiter:
    claim_id: UUID
    seen: Moment
    woken: threading.Event = field(default_factory=threading.Event)


class Watch:
    """The waiters of one process, and the thread that asks for all of them.

    The thread starts with the first waiter and ends after the last one, so that an idle process
    has neither the thread nor its connection.
    """

    def __init__(self, *, ask: Callable[[list[UUID]], dict[UUID, Moment]] = moments) -> None:
        self._ask = ask
        self._lock = threading.Lock()
        self._waiters: set[_Waiter] = set()
        self._thread: threading.Thread | None = None

    def wait(self, claim_id: UUID, seen: Moment, *, until: float) -> None:
        """Return when the claim differs from `seen`, when it cannot be asked for, or at `until`.

        `until` is an instant of `time.monotonic`. Raises `Busy` at once when `WAITERS_MAX` wait.
        """
        waiter = _Waiter(claim_id=claim_id, seen=seen)
        with self._lock:
            if len(self._waiters) >= WAITERS_MAX:
                raise Busy
            self._waiters.add(waiter)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="claim-watch", daemon=True)
                self._thread.start()
        try:
            waiter.woken.wait(max(0.0, until - time.monotonic()))
        finally:
            with self._lock:
                self._waiters.discard(waiter)

    def _run(self) -> None:
        try:
            while (waiting := self._still_waiting()) is not None:
                for waiter in self._changed(waiting):
                    waiter.woken.set()
                time.sleep(POLL_SECONDS)
        except BaseException:
            # Nobody may sleep on because the thread that should wake them is gone.
            self._give_up()
            raise
        finally:
            connection.close()

    def _still_waiting(self) -> list[_Waiter] | None:
        with self._lock:
            if not self._waiters:
                # Under the lock: a waiter that comes now starts the next thread.
                self._thread = None
                return None
            return list(self._waiters)

    def _give_up(self) -> None:
        with self._lock:
            self._thread = None
            for waiter in self._waiters:
                waiter.woken.set()

    def _changed(self, waiting: list[_Waiter]) -> list[_Waiter]:
        try:
            now = self._ask(sorted({waiter.claim_id for waiter in waiting}))
        except DatabaseFailed:
            # Each waiter asks for itself and then knows what to tell its agent.
            connection.close()
            return waiting
        return [waiter for waiter in waiting if now.get(waiter.claim_id) != waiter.seen]


WATCH: Final = Watch()
