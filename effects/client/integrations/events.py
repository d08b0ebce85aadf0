"""Tells the ledger about calls that it did not grant, as events: `POST /api/v1/events`."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final, Self

import httpx2
from pydantic import BaseModel, ConfigDict, ValidationError

from effects.client.clock import elapsed_clock_seconds
from effects.client.version import VERSION
from effects.core.events import IngestAnswer
from effects.core.messages import Message
from effects.core.vocabulary import ItemState

__all__ = ["Events"]

logger = logging.getLogger("counterfoil")

KEPT_MAX: Final = 10_000
"""Events that wait in memory while the ledger is away; what comes after that is dropped."""

ITEM_BYTES_MAX: Final = 2 * 1024 * 1024
"""The ledger's own limit. An event above it is told without its arguments or its result."""

BATCH_MAX: Final = 100
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024
ANSWER_SECONDS_MAX: Final = 2.0
PAUSE_SECONDS: Final = 5.0
"""How long events are only kept after a failed request: an agent must not wait for each."""


LARGE: Final = ("arguments", "result")

NEVER: Final = frozenset({400, 413, 415, 422})
"""Answers that would be the same again: the request itself is wrong."""


class _Envelope(BaseModel):
    model_config = ConfigDict(frozen=True)

    id: str
    source: str
    type: str
    time: datetime
    data: Any


class Events:
    """Sends events with a token of the scope `ingest`, and never raises into an agent.

    `source` is this sender's own name, the same after a restart. An event may be sent twice and in
    any order; that changes nothing. What cannot be told is kept, at most KEPT_MAX events, and told
    with a later one, or by `flush`. What is dropped is logged and counted in `dropped`.
    """

    def __init__(self, url: str, token: str | Callable[[], str], source: str) -> None:
        self._url = url.rstrip("/") + "/api/v1/events"
        self._token = token
        self._source = source
        self._waiting: deque[bytes] = deque()
        self._lock = threading.Lock()
        self._telling = threading.Lock()
        self._not_before = 0.0
        self._client = httpx2.Client(
            follow_redirects=False,
            timeout=ANSWER_SECONDS_MAX,
            headers={"user-agent": f"counterfoil-client/{VERSION}"},
        )
        self.dropped = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def waiting(self) -> int:
        """How many events are kept and not told yet."""
        return len(self._waiting)

    def tell(self, event_id: str, kind: str, data: Message) -> None:
        """Keeps one event of a type of `effects.core.events`, dated now. `send` or `flush` tells
        it."""
        written = self._written(event_id, kind, data)
        if len(written) > ITEM_BYTES_MAX:
            small = data.model_copy(update={name: None for name in LARGE if hasattr(data, name)})
            written = self._written(event_id, kind, small)
        with self._lock:
            if len(self._waiting) >= KEPT_MAX or len(written) > ITEM_BYTES_MAX:
                self.dropped += 1
                logger.error("Event %s was dropped: KEPT_MAX or ITEM_BYTES_MAX.", event_id)
                return
            self._waiting.append(written)

    def _written(self, event_id: str, kind: str, data: Message) -> bytes:
        envelope = _Envelope(
            id=event_id,
            source=self._source,
            type=kind,
            time=datetime.now(UTC),
            data=data.model_dump(mode="json", exclude_none=True),
        )
        return envelope.model_dump_json().encode()

    def send(self) -> None:
        """Tells what is kept, unless the ledger did not answer a moment ago."""
        if elapsed_clock_seconds() >= self._not_before:
            self.flush()

    def flush(self) -> int:
        """Tells what is kept, now; returns how many events are still kept."""
        with self._telling:
            while batch := self._next_batch():
                if not self._told(batch):
                    self._not_before = elapsed_clock_seconds() + PAUSE_SECONDS
                    break
                with self._lock:
                    for _ in batch:
                        self._waiting.popleft()
        return self.waiting

    def close(self) -> None:
        left = self.flush()
        if left:
            logger.error("%s events were not told: the ledger did not take them.", left)
        self._client.close()

    def _next_batch(self) -> list[bytes]:
        batch: list[bytes] = []
        size = 0
        with self._lock:
            for event in self._waiting:
                size += len(event)
                if batch and (len(batch) >= BATCH_MAX or size > BATCH_BYTES_MAX):
                    break
                batch.append(event)
        return batch

    def _told(self, batch: list[bytes]) -> bool:
        token = self._token if isinstance(self._token, str) else self._token()
        try:
            response = self._client.post(
                self._url,
                content=b"[" + b",".join(batch) + b"]",
                headers={"authorization": f"Bearer {token}", "content-type": "application/json"},
            )
        except httpx2.HTTPError as error:
            logger.warning("Events were not told: %s: %s", type(error).__name__, error)
            return False
        if response.is_success:
            _log_refusals(response.content)
            return True
        never = response.status_code in NEVER
        if never:
            self.dropped += len(batch)
        logger.error(
            "%s events were not taken, and %s: %s answered %s.",
            *(len(batch), "are dropped" if never else "are kept"),
            *(self._url, response.status_code),
        )
        return never


def _log_refusals(answered: bytes) -> None:
    """The ledger keeps every item; what it could not read or believe is worth a line."""
    try:
        items = IngestAnswer.model_validate_json(answered).items
    except ValidationError:
        return
    for item in items:
        if item.word in {ItemState.UNREADABLE, ItemState.CONFLICT, ItemState.FAILED}:
            logger.error("Event %s: %s. %s", item.id, item.word, item.says or item.reason or "")
