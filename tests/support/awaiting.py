"""Runs a coroutine to its end from a plain test, whatever else the thread of the tests holds.

The synchronous browser of the page tests keeps an event loop running in the thread it was started
in, for the rest of the session, and `asyncio.run` refuses to start a second one there. A thread of
its own has none, so a test does not depend on which files its worker was dealt before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


def awaited(work: Coroutine[object, object, Answer]) -> Answer:
    """What the coroutine returns, or what it raises."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="awaited") as own:
        return own.submit(asyncio.run, work).result()  # noqa: TID251 - the one place
