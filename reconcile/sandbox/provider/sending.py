"""Sends webhooks: after the commit, signed, and again with growing pauses until a 2xx comes back.

Source: https://docs.stripe.com/webhooks: at least once, in no order, live events for up to three
days. A recipe makes it worse on purpose: copies, events that overtake each other, first tries that
never arrive.
"""

import contextlib
import hashlib
import http.client
import json
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import urlsplit

import stripe

from reconcile.sandbox.provider.context import OUTBOX_TABLE, SECRETS_TABLE
from reconcile.sandbox.provider.messages import Json
from reconcile.sandbox.provider.world import World

ANSWER_SECONDS_MAX: Final = 10
WAKE_SECONDS: Final = 0.05
PAUSE_FIRST_SECONDS: Final = 1.0
PAUSE_SECONDS_MAX: Final = 3_600.0
GIVE_UP_SECONDS: Final = 3 * 24 * 60 * 60.0
SENDERS: Final = 4
COPY_LATER_SECONDS: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """One try to deliver one event to one endpoint. `copy`: it is sent although it arrived."""

    key: str
    event_id: str
    url: str
    secret: str
    body: str
    made_at: float
    tries: int
    copy: bool = False


class Sender:
    """Takes what is due out of the outbox, in a thread of its own, and sends it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._stopping = threading.Event()
        self._busy: set[str] = set()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(max_workers=SENDERS, thread_name_prefix="webhooks")
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def _run(self) -> None:
        while not self._stopping.wait(WAKE_SECONDS):
            for letter in self._due():
                self._pool.submit(self._deliver, letter)

    def _due(self) -> list[Letter]:
        now = self._world.clock.now()
        letters = []
        with self._world.store.lock, self._lock:
            for key, row in self._world.store.table(OUTBOX_TABLE).items():
                secret = self._world.store.table(SECRETS_TABLE).get(row["endpoint"])
                if row["due_at"] > now or key in self._busy:
                    continue
                if secret is None:  # The endpoint was deleted.
                    self._pool.submit(self._forget, key)
                else:
                    letters.append(_letter(key, row, secret["secret"]))
                self._busy.add(key)
        return letters

    def _deliver(self, letter: Letter) -> None:
        try:
            self._try(letter)
        finally:
            with self._lock:
                self._busy.discard(letter.key)

    def _try(self, letter: Letter) -> None:
        recipe, counts = self._world.webhook_recipe, self._world.webhook_counts
        overtaken = _drawn(letter, "overtaken") < recipe.overtaken_share
        if overtaken and letter.tries == 0:
            counts["overtaken"] += 1
            self._later(letter, pause=recipe.late_seconds)
            return
        is_first = letter.tries == int(overtaken)
        lost = is_first and _drawn(letter, "lost") < recipe.lost_share
        arrived = not lost and self._post(letter)
        counts["sent"] += 1
        counts["delivered" if arrived else "failed"] += 1
        if not arrived:
            pause = min(PAUSE_FIRST_SECONDS * 2.0 ** min(letter.tries, 20), PAUSE_SECONDS_MAX)
            self._later(letter, pause=pause)
        elif not letter.copy and _drawn(letter, "copied") < recipe.duplicated_share:
            counts["duplicated"] += 1
            self._later(replace(letter, copy=True), pause=COPY_LATER_SECONDS)
        else:
            self._forget(letter.key)

    def _post(self, letter: Letter) -> bool:
        """Whether a 2xx came back. Every try is signed anew."""
        signed_at = int(self._world.clock.now())
        signature = stripe.WebhookSignature.generate_signature_header(
            letter.body, letter.secret, signed_at
        )
        headers = {"Content-Type": "application/json", "Stripe-Signature": str(signature)}
        parts = urlsplit(letter.url)
        secure = parts.scheme == "https"
        connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        try:
            with contextlib.closing(connect(parts.netloc, timeout=ANSWER_SECONDS_MAX)) as line:
                line.request("POST", parts.path or "/", letter.body.encode(), headers)
                answer = line.getresponse()
                answer.read(1024)
                return 200 <= answer.status < 300
        except (OSError, http.client.HTTPException):
            return False

    def _later(self, letter: Letter, *, pause: float) -> None:
        now = self._world.clock.now()
        if now + pause - letter.made_at > GIVE_UP_SECONDS:
            self._forget(letter.key)
            return
        # The provider may be stopping; what was not sent stays in the outbox.
        with contextlib.suppress(OSError), self._world.store.batch() as batch:
            row = self._world.store.table(OUTBOX_TABLE).get(letter.key)
            if row is not None:
                changed = {"due_at": now + pause, "tries": letter.tries + 1, "copy": letter.copy}
                batch.put(OUTBOX_TABLE, letter.key, {**row, **changed})

    def _forget(self, key: str) -> None:
        with contextlib.suppress(OSError), self._world.store.batch() as batch:
            batch.remove(OUTBOX_TABLE, key)


def _letter(key: str, row: Json, secret: str) -> Letter:
    return Letter(
        key=key,
        event_id=row["event"]["id"],
        url=row["url"],
        secret=secret,
        body=json.dumps(row["event"], indent=2),
        made_at=row["made_at"],
        tries=row["tries"],
        copy=row["copy"],
    )


def _drawn(letter: Letter, what: str) -> float:
    """A number in [0, 1) that depends on the event and the question alone."""
    digest = hashlib.sha256(f"{what}\0{letter.event_id}".encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def counts_of(counts: Counter[str]) -> Json:
    """The figures that people are shown, each of them, zero included."""
    names = ("sent", "delivered", "failed", "duplicated", "overtaken")
    return {name: counts[name] for name in names}
