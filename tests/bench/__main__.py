"""`python -m tests.bench`: how fast a claim and its completion are, beside bare PostgreSQL work.

Everything runs on one durable database of its own, in rounds in which the sides take turns; medians
are compared. Nothing is judged. `docs/benchmarks.md` says what each figure means.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final

import psycopg

from effects.client import HttpTransport, Transport
from effects.client.transport_postgres import PostgresTransport
from tests.bench import batches, cost, figures, pages, rivals
from tests.bench.figures import Figure
from tests.bench.ground import Ground, ground
from tests.bench.rounds import KNOWN_KEY, Runner, Threads, compare
from tests.bench.sides import Raw, Side, ours

CLIENTS: Final = (1, 8)
WORK: Final = {"claim_complete": "fresh", "duplicate": "again"}
TRANSPORTS: Final = ("postgres", "http")


def main() -> None:
    options = _options()
    logging.getLogger("httpx2").setLevel(logging.WARNING)  # It would tell of every request.
    with ground(door="http" in options.transports) as where:
        said: list[Figure] = []
        sides = _sides(where, options.transports)
        home = options.results.parent / "rivals"
        if options.quick or not options.rivals:
            said += _speeds(sides, [], options)
        else:
            with rivals.installed(where, home) as (running, absent):
                for sentence in absent:
                    print(sentence, file=sys.stderr)
                said += _speeds(sides, running, options)
        said += _costs(where, options)
        if "http" in options.transports:
            said.append(batches.measure(where, rounds=options.rounds, items=options.items))
        on_pages = [] if options.pages < 1 else pages.measure(options.pages, _say)
        figures.write(said, options.results)
        pages.write(on_pages, options.results)
    print(figures.table(said))
    if on_pages:
        print(pages.table(on_pages))


def _say(sentence: str) -> None:
    print(sentence, file=sys.stderr)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, help="of each measurement (0.6)")
    parser.add_argument("--rounds", type=int, help="of each comparison (7)")
    parser.add_argument("--quick", action="store_true", help="a few seconds, without the rivals")
    parser.add_argument("--no-rivals", dest="rivals", action="store_false")
    parser.add_argument("--transports", nargs="+", choices=TRANSPORTS, default=TRANSPORTS)
    parser.add_argument("--results", type=Path, default=Path("var/bench/results.jsonl"))
    parser.add_argument(
        "--pages", type=int, help="calls for the desk's pages (PAGES_CLAIMS, 100000); 0: none"
    )
    options = parser.parse_args()
    if options.pages is None:
        options.pages = 0 if options.quick else int(os.environ.get("PAGES_CLAIMS", "100000"))
    options.seconds = options.seconds or (0.2 if options.quick else 0.6)
    options.rounds = options.rounds or (1 if options.quick else 7)
    options.items = 20 if options.quick else batches.ITEMS
    options.operations = 20 if options.quick else cost.OPERATIONS
    return options


def _transport(where: Ground, name: str) -> Transport:
    if name == "postgres":
        return PostgresTransport(where.agent_url)
    return HttpTransport(where.api_url, where.token)


def _sides(where: Ground, names: Iterable[str]) -> list[Side]:
    sides = [Raw(where.database_url).side()]
    sides += [ours(name, _transport(where, name)) for name in names]
    # Both transports lead to the same ledger, so the known effect happens once.
    for side in sides[:2]:
        side.fresh(KNOWN_KEY)
    return sides


def _speeds(
    sides: Sequence[Side], others: Sequence[Runner], options: argparse.Namespace
) -> list[Figure]:
    runners: list[Runner] = [*(Threads(side) for side in sides), *others]
    said = []
    for name, what in WORK.items():
        for clients in CLIENTS:
            rates = compare(
                runners, what, clients=clients, seconds=options.seconds, rounds=options.rounds
            )
            bare = rates.pop("raw")
            said += [
                figures.speed(name, side, clients, ops_s=ops_s, raw_ops_s=bare)
                for side, ops_s in rates.items()
            ]
    return said


def _costs(where: Ground, options: argparse.Namespace) -> list[Figure]:
    with (
        psycopg.connect(where.database_url, autocommit=True) as connection,
        cost.still(connection),
    ):
        measured = {"raw": _raw_cost(where, connection, options)}
        for name in options.transports:
            transport = _transport(where, name)
            # The door's sessions are not ours to close, and a quick look does not wait.
            idle = 0 if name == "postgres" or options.quick else cost.IDLE_SECONDS
            measured[name] = cost.measure(
                connection,
                ours(name, transport).fresh,
                transport.close,
                seconds_idle=idle,
                operations=options.operations,
            )
    bare = measured.pop("raw")
    said = []
    for name, own in measured.items():
        amounts: list[tuple[str, Callable[[cost.Cost], float], str]] = [
            ("commits", lambda each: each.commits, "commits/operation"),
            ("wal_bytes", lambda each: each.wal_bytes, "bytes/operation"),
        ]
        for what, amount, unit in amounts:
            figure = figures.cost(what, name, value=amount(own), raw_value=amount(bare), unit=unit)
            said.append(figure)
    return said


def _raw_cost(
    where: Ground, connection: psycopg.Connection[tuple[object, ...]], options: argparse.Namespace
) -> cost.Cost:
    bare = Raw(where.database_url).side()
    return cost.measure(connection, bare.fresh, bare.end_thread, operations=options.operations)


main()
