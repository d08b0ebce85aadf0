"""The clock that counts the time in which an attempt may send."""

from __future__ import annotations

import time

__all__ = ["elapsed_clock_seconds"]


def elapsed_clock_seconds() -> float:
    """Seconds on a clock that never goes back and does not stop while the machine sleeps.

    CLOCK_MONOTONIC stops while a laptop or a virtual machine is suspended: an agent that wakes up
    an hour later would believe that its key is still fresh. Where there is no CLOCK_BOOTTIME (it is
    Linux's), the monotonic clock is the best there is.
    """
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    return time.monotonic()
