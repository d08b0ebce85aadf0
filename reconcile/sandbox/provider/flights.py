"""Which keys are being worked on, for providers that let a second request wait for the first."""

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class Flights:
    """Requests under way, by key."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: Counter[str] = Counter()
        self._turns: dict[str, threading.Lock] = {}

    @contextmanager
    def of(self, key: str) -> Iterator[bool]:
        """Be under way; True where no other request with this key is."""
        with self._lock:
            first = not self._under_way[key]
            self._under_way[key] += 1
            self._turns.setdefault(key, threading.Lock())
        try:
            yield first
        finally:
            with self._lock:
                self._under_way[key] -= 1
                if not self._under_way[key]:
                    del self._under_way[key], self._turns[key]

    @contextmanager
    def turn(self, key: str, seconds_max: float) -> Iterator[None]:
        """Wait until no other request with this key is executed. Only inside `of`.

        Raises TimeoutError when the other takes longer than `seconds_max`.
        """
        turn = self._turns[key]
        if not turn.acquire(timeout=seconds_max):
            raise TimeoutError(f"another request with {key} takes longer than {seconds_max} s")
        try:
            yield
        finally:
            turn.release()
