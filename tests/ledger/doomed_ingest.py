"""Processes that are killed in the middle of applying one event: one for each moment.

Run with a workspace's number and, on the standard input, a JSON object of an event by moment. It
prints how each process ended.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
from typing import Any, Final

import django

MOMENTS: Final = {
    "between the application and the cursor": ("ledger.ingest_streams", "_advance"),
    "between the cursor and the commit": ("ledger.ingest", "_became"),
    "between the commit and the answer": ("ledger.ingest", "_answer"),
}


def die(*_: Any, **__: Any) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def apply(workspace_id: int, moment: str, event: dict[str, Any]) -> None:
    ingest = importlib.import_module("ledger.ingest")
    streams = importlib.import_module("ledger.ingest_reading").STREAMS
    module, name = MOMENTS[moment]
    setattr(importlib.import_module(module), name, die)
    ingest.ingest(workspace_id, None, streams, [json.dumps(event).encode()])


def main(workspace_id: int) -> None:
    django.setup()
    ends = {}
    for moment, event in json.load(sys.stdin).items():
        child = os.fork()
        if not child:
            apply(workspace_id, moment, event)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        ends[moment] = os.waitstatus_to_exitcode(status)
    print(json.dumps(ends))


if __name__ == "__main__":
    main(int(sys.argv[1]))
