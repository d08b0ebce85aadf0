"""Events told in batches over HTTP, beside a bare insert of the same rows into the same indexes."""

from __future__ import annotations

import json
import time
from statistics import median
from typing import Any, Final, LiteralString

import httpx2
import psycopg

from tests.bench.figures import Figure, speed
from tests.bench.ground import Ground

ITEMS: Final = 200

RAW_TABLE: LiteralString = """
CREATE TABLE IF NOT EXISTS bench_item (LIKE ledger_ingestitem INCLUDING ALL)
"""
RAW_INSERT: LiteralString = """
INSERT INTO bench_item (id, workspace_id, door, source, event_id, type, digest, holds_id, state,
  raw, raw_bytes, received_at, last_seen_at)
SELECT nextval('ledger_ingestitem_id_seq'), %s, 'events', source, id, type,
  sha256(convert_to(data::text, 'UTF8')), true, 'applied', convert_to(data::text, 'UTF8'),
  octet_length(data::text), now(), now()
FROM jsonb_to_recordset(%s::jsonb) AS x (source text, id text, type text, data jsonb)
ON CONFLICT DO NOTHING
"""


def measure(ground: Ground, *, rounds: int, items: int = ITEMS) -> Figure:
    ours: list[float] = []
    bare: list[float] = []
    with (
        psycopg.connect(ground.database_url, autocommit=True) as connection,
        httpx2.Client(headers={"authorization": f"Bearer {ground.token}"}, timeout=60) as client,
    ):
        connection.execute(RAW_TABLE)
        for number in range(rounds + 1):
            body = json.dumps(_events(f"{time.time_ns()}-{number}", items))
            start = time.perf_counter()
            connection.execute(RAW_INSERT, (ground.workspace_id, body))
            between = time.perf_counter()
            _tell(client, ground.api_url, body, items)
            if number:  # The first one opens connections and makes plans.
                bare.append(items / (between - start))
                ours.append(items / (time.perf_counter() - between))
    return speed("ingest_batch", "http", 1, ops_s=median(ours), raw_ops_s=median(bare))


def _tell(client: httpx2.Client, url: str, body: str, items: int) -> None:
    answer = client.post(
        f"{url}/api/v1/events", content=body, headers={"content-type": "application/json"}
    )
    assert answer.json()["counts"] == {"applied": items}, answer.text[:300]


def _events(tag: str, items: int) -> list[dict[str, Any]]:
    """Claims that another ledger made, each in a conversation of its own."""
    return [
        {
            "id": f"{tag}-{number}",
            "source": "urn:bench",
            "type": "claim.made",
            "data": {
                "claim": f"{tag}-{number}",
                "tool": "pay",
                "effect_class": "keyed_write",
                "arguments": '{"amount":14900,"currency":"eur","order":"8841"}',
                "conversation": f"{tag}-{number}",
                "turn_index": 1,
                "call_id": f"toolu_{tag}_{number:08}",
            },
        }
        for number in range(items)
    ]
