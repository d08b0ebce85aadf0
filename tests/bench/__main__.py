"""`python -m tests.bench`: starts a durable PostgreSQL of its own, measures, prints a table."""

from __future__ import annotations

import argparse
import os
import secrets
import tempfile
from pathlib import Path

import django

from effects.local.ports import any_free_port
from effects.local.postgres import LocalPostgres
from tests.support import stack


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--results", type=Path, default=Path("var/bench/results.jsonl"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as folder:
        postgres = LocalPostgres(
            home=Path(folder) / "postgres",
            port=any_free_port(),
            password=secrets.token_urlsafe(24),
            durable=True,
        )
        postgres.initialise()
        with stack.running(postgres.program(), log=Path(folder) / "postgres.log"):
            os.environ |= {
                "DATABASE_URL": postgres.url,
                "COUNTERFOIL_VAR": folder,
                "DJANGO_SETTINGS_MODULE": "effects.settings",
            }
            stack.manage("migrate", "-v0", "--skip-checks")
            django.setup()
            from tests.bench.claims import measure  # noqa: PLC0415 - needs the set-up before

            figures = measure(options.seconds, options.rounds, options.results)
    print(f"{'what':<16} {'clients':>7} {'ours/s':>9} {'bare/s':>9} {'ratio':>6}")
    for figure in figures:
        print(
            f"{figure.name:<16} {figure.clients:>7} {figure.ops_s:>9.0f} "
            f"{figure.raw_ops_s:>9.0f} {figure.ratio:>6.2f}"
        )


main()
