"""Clients of one process: threads that do nothing else. The standard library alone, because rivals
are measured by it too, in an environment of their own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def rate(
    work: Callable[[str], None],
    end_thread: Callable[[], None],
    *,
    clients: int,
    seconds: float,
) -> float:
    """Operations a second of `clients` threads that do nothing else.

    Each does a few first, which open its connection and are not counted; all begin together.
    """
    begins = threading.Barrier(clients)
    counted: list[float] = []
    failed: list[BaseException] = []

    def client(number: int) -> None:
        try:
            for warm in range(3):
                work(f"{number}-w{warm}")
            begins.wait()
            start = now = time.perf_counter()
            done = 0
            while now < start + seconds:
                work(f"{number}-{done}")
                done += 1
                now = time.perf_counter()
            counted.append(done / (now - start))
            end_thread()
        except BaseException as error:
            failed.append(error)
            begins.abort()
            raise

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return sum(counted)
