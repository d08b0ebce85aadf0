"""Agents at work while things break: each claims and completes, and writes down what it was told.

They ask as an agent may: the same body again, with its nonce, until there is an answer. What counts
afterwards is whether everything that was acknowledged is there, once.
"""

from __future__ import annotations

import json
import secrets
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

HANDS = 4
AGAIN_SECONDS = 0.05
ANSWER_SECONDS_MAX = 10.0
UNANSWERED = 0


@dataclass(kw_only=True)
class Load:
    """What the agents heard. `granted` and `settled` hold what the ledger acknowledged."""

    url: str
    token: str
    over: threading.Event = field(default_factory=threading.Event)
    statuses: Counter[int] = field(default_factory=Counter)
    without_retry_after: list[str] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    granted: dict[str, tuple[str, int]] = field(default_factory=dict)
    settled: set[str] = field(default_factory=set)

    def work(self, hand: int) -> None:
        number = 0
        while not self.over.is_set():
            number += 1
            self._one(f"load-{hand}-{number}")

    def _one(self, conversation: str) -> None:
        asked = {
            "tool": "charge_card",
            "effect_class": "keyed_write",
            "arguments": json.dumps({"amount": 100, "order": conversation}),
            "conversation": conversation,
            "turn_index": 1,
            "nonce": secrets.token_hex(16),
        }
        answer = self._until_answered("claims", asked)
        if answer is None:
            return
        self.granted[conversation] = (answer["claim_id"], answer["fence"])
        done = {"fence": answer["fence"], "provider_object": f"pi_{conversation}"}
        if self._until_answered(f"claims/{answer['claim_id']}/complete", done) is not None:
            self.settled.add(conversation)

    def _until_answered(self, path: str, body: dict[str, Any]) -> dict[str, Any] | None:
        """The good answer; None if the load is over, or if the answer is one that must not be."""
        while True:
            status, answer = self._ask(path, body)
            self.statuses[status] += 1
            if status in {200, 201}:
                return answer
            if status not in {UNANSWERED, 503}:
                self.strange.append(f"{path} {status} {answer}")
                return None
            if self.over.is_set():
                return None
            time.sleep(AGAIN_SECONDS)

    def _ask(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        request = urllib.request.Request(
            f"{self.url}/api/v1/{path}",
            data=json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                if refused.code == 503 and not refused.headers.get("Retry-After"):
                    self.without_retry_after.append(path)
                return refused.code, {"body": refused.read().decode(errors="replace")}
        except OSError as error:
            return UNANSWERED, {"error": str(error)}


@contextmanager
def load(url: str, token: str) -> Iterator[Load]:
    """Agents at work until the block ends; then each has finished what it was about."""
    heard = Load(url=url, token=token)
    hands = [threading.Thread(target=heard.work, args=(hand,)) for hand in range(HANDS)]
    for hand in hands:
        hand.start()
    try:
        yield heard
    finally:
        heard.over.set()
        for hand in hands:
            hand.join()
