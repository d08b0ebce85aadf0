"""Run the provider as a process: ``python -m reconcile.sandbox.provider --folder var/sandbox``."""

import argparse
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from reconcile.sandbox.provider.server import Provider


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT; print the address when it answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, required=True, help="journal and truth files")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--fsync", action="store_true", help="survive a power cut, not only a kill")
    options = parser.parse_args(arguments)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    with Provider(
        options.folder, host=options.host, port=options.port, fsync=options.fsync
    ) as provider:
        sys.stdout.write(f"sandbox provider {provider.url}\n")
        sys.stdout.flush()
        stopped.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
