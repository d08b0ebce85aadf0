"""How fast a claim and its completion are, as a ratio to the bare PostgreSQL work in the same run.

    python -m tests.bench [--seconds 1.0] [--rounds 5]

Bare work is what any keeper of such a record must do: insert a row, commit, update it, commit.
Rounds of both are interleaved on one durable database, and medians are compared. Nothing is judged.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
from django.db import connection

from effects.core.messages import ClaimRequest, Complete
from effects.core.vocabulary import EffectClass, Outcome
from effects.models import Tool, Workspace
from ledger import append, claiming, queries

ARGUMENTS = '{"amount":14900,"currency":"eur","customer":"cus_9X2","order":"8841"}'
RESULT = '{"id":"pi_3QweRtY7Lm","status":"succeeded"}'
RAW_TABLE = """
CREATE TABLE IF NOT EXISTS bench_raw (
  key text PRIMARY KEY, state text NOT NULL, arguments text, result text,
  at timestamptz DEFAULT now()
)
"""

Work = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the results: operations a second, ours and bare, and their ratio."""

    name: str
    transport: str
    clients: int
    ops_s: float
    raw_ops_s: float
    ratio: float


def raw_connection() -> psycopg.Connection[Any]:
    connection.ensure_connection()
    raw: psycopg.Connection[Any] = connection.connection
    return raw


def raw_pair(key: str) -> None:
    with psycopg.Cursor(raw_connection()) as cursor:
        cursor.execute(
            "INSERT INTO bench_raw (key, state, arguments) VALUES (%s, 'in_flight', %s)"
            " ON CONFLICT DO NOTHING RETURNING key",
            (key, ARGUMENTS),
            prepare=True,
        )
        cursor.execute(
            "UPDATE bench_raw SET state = 'completed', result = %s WHERE key = %s",
            (RESULT, key),
            prepare=True,
        )


def raw_look(key: str) -> None:
    with psycopg.Cursor(raw_connection()) as cursor:
        cursor.execute("SELECT state, result FROM bench_raw WHERE key = %s", (key,), prepare=True)
        assert cursor.fetchone()


class Ours:
    def __init__(self) -> None:
        now = queries.clock()
        self.workspace = Workspace.objects.create(
            name="Bench", slug=f"b{now.timestamp()}", created_at=now
        )
        Tool.objects.create(
            workspace=self.workspace,
            name="pay",
            effect_class=EffectClass.KEYED_WRITE,
            window_seconds=86_400,
        )

    def pair(self, key: str) -> None:
        answer = self.claim(key)
        assert answer.claim_id
        complete = Complete(fence=1, provider_object=key, result=RESULT)
        append.report(self.workspace.pk, answer.claim_id, Outcome.COMPLETED, complete)

    def claim(self, key: str) -> Any:
        request = ClaimRequest(
            tool="pay",
            effect_class=EffectClass.KEYED_WRITE,
            arguments=ARGUMENTS,
            conversation=key,
            turn_index=1,
            response_id="resp_1",
            call_id=f"toolu_{key:0>20}",
        )
        return claiming.claim(self.workspace.pk, request)

    def look(self, key: str) -> None:
        assert self.claim(key).code == "replayed"


def operations_a_second(work: Work, prefix: str, clients: int, seconds: float) -> float:
    done = [0] * clients
    end = time.perf_counter() + seconds

    def client(number: int) -> None:
        connection.ensure_connection()
        while time.perf_counter() < end:
            work(f"{prefix}-{number}-{done[number]}")
            done[number] += 1
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(done) / seconds


def compare(name: str, ours: Work, raw: Work, clients: int, seconds: float, rounds: int) -> Figure:
    mine: list[float] = []
    bare: list[float] = []
    for number in range(rounds):
        prefix = f"{name}{clients}r{number}p{os.getpid()}"
        bare.append(operations_a_second(raw, prefix, clients, seconds))
        mine.append(operations_a_second(ours, prefix, clients, seconds))
    return Figure(
        name=name,
        transport="python",
        clients=clients,
        ops_s=round(median(mine), 1),
        raw_ops_s=round(median(bare), 1),
        ratio=round(median(mine) / median(bare), 3),
    )


def measure(seconds: float, rounds: int, results: Path) -> list[Figure]:
    with connection.cursor() as cursor:
        cursor.execute(RAW_TABLE)
    ours = Ours()
    ours.pair("known")
    raw_pair("known")
    figures: list[Figure] = []
    for clients in (1, 8):
        figures.append(compare("claim_complete", ours.pair, raw_pair, clients, seconds, rounds))
        figures.append(
            compare(
                "duplicate",
                lambda _: ours.look("known"),
                lambda _: raw_look("known"),
                clients,
                seconds,
                rounds,
            )
        )
    results.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(asdict(figure)) for figure in figures]
    results.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return figures
