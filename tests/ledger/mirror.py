"""An agent that keeps a ledger of its own, and tells this one by events alone."""

from __future__ import annotations

import json
from typing import Any

from effects.core.events import IngestAnswer, ItemAnswer
from ledger import ingest
from ledger.ingest_reading import EVENTS, STREAMS

SOURCE = "urn:agent:billing"
STRONG_ID = "call_mmmmmmmmmmmmmmmm"


def event(event_id: str, kind: str, *, time: str | None = None, **data: Any) -> dict[str, Any]:
    said = {name: value for name, value in data.items() if value is not None}
    envelope = {"id": event_id, "source": SOURCE, "type": kind, "data": said}
    return envelope if time is None else {**envelope, "time": time}


def claim_made(name: str = "k1", **changes: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "claim": name,
        "tool": "refund",
        "effect_class": "keyed_write",
        "arguments": '{"charge": "ch_1", "amount": 4200}',
        "conversation": "conversation-1",
        "turn_index": 3,
        "response_id": "response-1",
        "call_id": STRONG_ID,
    }
    said = {n: value for n, value in (usual | changes).items() if value is not None}
    return event(f"{name}-made", "claim.made", time="2026-03-02T10:00:00Z", **said)


def started(name: str = "k1", attempt: str = "a1", second: int = 1, **more: Any) -> dict[str, Any]:
    time = f"2026-03-02T10:00:{second:02}Z"
    return event(
        f"{name}-{attempt}-started", "attempt.started", time=time, claim=name, attempt=attempt,
        **more,
    )  # fmt: skip


def ended(
    outcome: str, name: str = "k1", attempt: str = "a1", second: int = 9, **more: Any
) -> dict[str, Any]:
    time = f"2026-03-02T10:00:{second:02}Z"
    return event(
        f"{name}-{attempt}-{outcome}", f"attempt.{outcome}", time=time, claim=name,
        attempt=attempt, **more,
    )  # fmt: skip


def tell(workspace_id: int, *events: dict[str, Any], streams: bool = False) -> list[ItemAnswer]:
    return list(answer(workspace_id, *events, streams=streams).items)


def answer(workspace_id: int, *events: dict[str, Any], streams: bool = False) -> IngestAnswer:
    raws = [json.dumps(one).encode() for one in events]
    return ingest.ingest(workspace_id, None, STREAMS if streams else EVENTS, raws)


def words(workspace_id: int, *events: dict[str, Any]) -> list[str]:
    return [str(item.word) for item in tell(workspace_id, *events)]
