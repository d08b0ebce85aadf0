"""`python -m tests.faultlab`: starts the lab's parts, runs every row and prints the table.

Exits 1 if a row is red. The results go to `--results` as one JSON document.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import django

from effects.local.ports import any_free_port
from effects.local.postgres import LocalPostgres
from reconcile.sandbox.provider.server import Provider
from tests.faultlab.rows import Result
from tests.faultlab.table import printed, summed_up
from tests.support import stack


@contextmanager
def a_ledger(folder: Path) -> Iterator[str]:
    """A ledger of the lab's own, ready for this process's Django; the address of its door."""
    postgres = LocalPostgres(
        home=folder / "postgres",
        port=any_free_port(),
        password=secrets.token_urlsafe(24),
        durable=False,
    )
    postgres.initialise()
    with stack.running(postgres.program(), log=folder / "postgres.log"):
        os.environ |= {
            "DATABASE_URL": postgres.url,
            "COUNTERFOIL_VAR": str(folder),
            "DJANGO_SETTINGS_MODULE": "effects.settings",
        }
        stack.manage("migrate", "-v0", "--skip-checks")
        django.setup()
        url, program = stack.door("api", "wsgi", "effects.wsgi:application", env=dict(os.environ))
        with stack.running(program, log=folder / "api.log"):
            yield url


def run() -> Sequence[Result]:
    with tempfile.TemporaryDirectory(prefix="counterfoil-faultlab-") as made:
        folder = Path(made)
        with a_ledger(folder) as url, Provider(folder / "provider") as provider:
            from tests.faultlab import sections  # noqa: PLC0415 - needs the set-up before
            from tests.faultlab.lab import a_lab  # noqa: PLC0415 - needs the set-up before
            from tests.faultlab.rows import carried_out  # noqa: PLC0415 - needs the set-up before

            done = []
            for result in carried_out(a_lab(url, provider), sections.ROWS):
                done.append(result)
                sys.stdout.write(printed(result))
                sys.stdout.flush()
    return done


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("var/faultlab/results.json"))
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # The clients' requests are not what is looked at.
    code, last_line = summed_up(run(), options.results)
    sys.stdout.write(f"\n{last_line}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
