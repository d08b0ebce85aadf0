"""The watcher: one task of a desk process that tells the process's open sockets to look again.

It starts with the first socket and ends with the last. It never sends: it raises a flag of each
socket that is concerned, and the socket's own task sends, so a browser that no longer reads holds
up nobody, and a thousand changes in a second are one hint.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import Error, connection
from django.utils.crypto import constant_time_compare

from effects.models import DeskSession, Membership
from reconcile import watermark

LOOK_SECONDS: Final = 0.5
CLOCK_SECONDS: Final = 5.0
"""How long the marks are believed while nothing was committed: the clock changes pages too."""
PERMISSION_SECONDS: Final = 3.0
"""How soon a socket is closed whose person was signed out, deactivated or removed."""
SOCKETS_PER_PERSON_MAX: Final = 20
SOCKETS_PER_PROCESS_MAX: Final = 500

SIGNED_OUT: Final = 4401
NOT_A_MEMBER: Final = 4403
NO_SUCH_CALL: Final = 4404
TAKES_NO_MESSAGES: Final = 4400
TOO_MANY: Final = 4429

log = logging.getLogger(__name__)


@dataclass(slots=True, kw_only=True, eq=False)
class Watcher:
    """Who listens for what. `claim_id` None: the queue of the workspace.

    `close_code` is set before `flag` where the socket has to end; the flag is all that the watcher
    ever touches of a socket, so what waits for a slow browser is one bit.
    """

    user_id: int
    session_key: str
    session_hash: str
    workspace_id: int
    claim_id: UUID | None
    flag: asyncio.Event = field(default_factory=asyncio.Event)
    close_code: int | None = None

    def end(self, code: int) -> None:
        self.close_code = code
        self.flag.set()


type Topic = tuple[int, UUID | None]


class Desk:
    """The sockets of one process, and the one thread and connection that look for them."""

    def __init__(self) -> None:
        self._listening: set[Watcher] = set()
        self._marks: dict[Topic, str] = {}
        self._snapshot = ""
        self._looked_at = self._asked_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._thread: ThreadPoolExecutor | None = None

    @property
    def listening(self) -> tuple[Watcher, ...]:
        return tuple(self._listening)

    @property
    def resting(self) -> bool:
        """Whether nothing is watched at present."""
        return self._task is None or self._task.done()

    def refusal(self, user_id: int) -> int | None:
        """The code with which one more socket of this person is closed, if it is."""
        of_person = Counter(one.user_id for one in self._listening)[user_id]
        full = len(self._listening) >= SOCKETS_PER_PROCESS_MAX
        return TOO_MANY if full or of_person >= SOCKETS_PER_PERSON_MAX else None

    def join(self, socket: Watcher) -> None:
        """Hints for this socket from now on, the first one at once: its page was made before."""
        self._listening.add(socket)
        if (socket.workspace_id, socket.claim_id) in self._marks:
            socket.flag.set()  # Of a topic that is new the watcher tells it within a second.
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._watch())

    def leave(self, socket: Watcher) -> None:
        self._listening.discard(socket)

    async def ask[T](self, question: Callable[[], T]) -> T:
        """Puts a question to the database in the watcher's own thread. Raises django.db.Error."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="live")
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, _answer, question)

    async def _watch(self) -> None:
        while self._listening:
            await asyncio.sleep(LOOK_SECONDS)
            topics = {(one.workspace_id, one.claim_id) for one in self._listening}
            sockets = tuple(self._listening)
            try:
                changed, refused = await self.ask(partial(self._look, topics, sockets))
            except Error as failure:
                # The database may be away: what changed meanwhile shows at the next look.
                log.warning("Live updates: a look failed, the next one follows: %s", failure)
                continue
            for socket in sockets:
                if socket in refused:
                    socket.end(refused[socket])
                elif (socket.workspace_id, socket.claim_id) in changed:
                    socket.flag.set()
        self._marks.clear()
        self._task = None  # Who joins from here on starts a watcher: this one no longer looks.
        await self.ask(_close)

    def _look(
        self, topics: set[Topic], sockets: tuple[Watcher, ...]
    ) -> tuple[set[Topic], dict[Watcher, int]]:
        """The topics that changed since the last look, and the sockets that may not stay."""
        at = time.monotonic()
        refused: dict[Watcher, int] = {}
        if at >= self._asked_at + PERMISSION_SECONDS:
            refused = refusals(sockets)
            self._asked_at = at
        seen = watermark.snapshot()
        quiet = seen == self._snapshot and at < self._looked_at + CLOCK_SECONDS
        if quiet and topics <= self._marks.keys():
            return set(), refused
        # The snapshot is the older one of the two readings: nothing falls between them.
        marks = _marks(topics)
        changed = {t for t in topics if t in self._marks and self._marks[t] != marks.get(t, "")}
        # A topic that nobody watched before may have changed since its page was made.
        changed |= topics - self._marks.keys()
        self._marks = {topic: marks.get(topic, "") for topic in topics}
        self._snapshot, self._looked_at = seen, at
        return changed, refused


def _answer[T](question: Callable[[], T]) -> T:
    """Answers in the thread that owns the connection; one that failed is closed."""
    try:
        return question()
    except Error:
        _close()
        raise


def _close() -> None:
    # A function, not `connection.close`: that would be the connection of the thread that says it.
    connection.close()


def _marks(topics: set[Topic]) -> dict[Topic, str]:
    watermark.limit_looks()
    calls = watermark.call_marks({claim_id for _, claim_id in topics if claim_id})
    return {
        (workspace, claim_id): calls.get(claim_id, "")
        if claim_id
        else watermark.queue_mark(workspace)
        for workspace, claim_id in topics
    }


def refusals(sockets: tuple[Watcher, ...]) -> dict[Watcher, int]:
    """The sockets whose person may no longer see what they listen for, each with a close code."""
    people = {one.pk: one for one in User.objects.filter(pk__in={s.user_id for s in sockets})}
    keys = {one.session_key for one in sockets}
    alive = set(
        DeskSession.objects.filter(session_key__in=keys).values_list("session_key", flat=True)
    )
    members = set(
        Membership.objects.filter(user_id__in=people).values_list("user_id", "workspace_id")
    )
    found: dict[Watcher, int] = {}
    for one in sockets:
        person = people.get(one.user_id)
        known = person is not None and constant_time_compare(
            person.get_session_auth_hash(), one.session_hash
        )
        if person is None or not person.is_active or not known or one.session_key not in alive:
            found[one] = SIGNED_OUT
        elif (one.user_id, one.workspace_id) not in members:
            found[one] = NOT_A_MEMBER
    return found


desk = Desk()
