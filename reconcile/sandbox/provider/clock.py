"""The provider's own clock: the machine's time plus what somebody added."""

import threading
import time
from datetime import UTC, datetime


class SandboxClock:
    """A clock that can be moved forward, never back: providers do not forget less with time."""

    def __init__(self, advanced_seconds: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._advanced_seconds = advanced_seconds

    @property
    def advanced_seconds(self) -> float:
        """How far this clock is ahead of the machine's."""
        return self._advanced_seconds

    def advance(self, seconds: float) -> None:
        """Move the clock forward. Raises ValueError for a negative number of seconds."""
        if not seconds >= 0:
            raise ValueError(f"the clock moves forward only, not by {seconds} seconds")
        with self._lock:
            self._advanced_seconds += seconds

    def now(self) -> float:
        """Seconds since 1970, as the provider sees it."""
        return time.time() + self._advanced_seconds


def iso(seconds: float) -> str:
    """A point in time as people and log readers write it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
