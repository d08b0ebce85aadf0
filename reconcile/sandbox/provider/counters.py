"""The provider's own figures, in a file beside its truth, for the page and for people.

``counters.json`` is replaced as a whole, at most once a second; the ledger never reads it.
"""

import json
import os
import time
from pathlib import Path
from typing import Final

from reconcile.sandbox.provider.context import OUTBOX_TABLE
from reconcile.sandbox.provider.messages import Json
from reconcile.sandbox.provider.sending import counts_of
from reconcile.sandbox.provider.world import World

COUNTERS_NAME: Final = "counters.json"
EVERY_SECONDS: Final = 1.0


def counters(world: World) -> Json:
    """Webhooks sent since the start, reads against what each account may read, search's delay."""
    with world.store.lock:
        waiting = len(world.store.table(OUTBOX_TABLE))
    return {
        "webhooks": {**counts_of(world.webhook_counts), "waiting": waiting},
        "reads": [one.to_json() for one in world.reads.every(world.clock.now())],
        "search_lag_seconds": world.search_lag_seconds,
    }


class CountersFile:
    """Writes the file, if something has changed."""

    def __init__(self, world: World, folder: Path) -> None:
        self._world = world
        self._path = folder / COUNTERS_NAME
        self._written: Json | None = None
        self._written_at = 0.0

    def write_if_due(self) -> None:
        if time.monotonic() - self._written_at >= EVERY_SECONDS:
            self.write()

    def write(self) -> None:
        self._written_at = time.monotonic()
        self._world.reads.keep()
        figures = counters(self._world)
        if figures != self._written:
            scratch = self._path.with_suffix(".new")
            scratch.write_text(json.dumps(figures), encoding="utf-8")
            os.replace(scratch, self._path)  # noqa: PTH105 - one step, which is the point of it.
            self._written = figures
