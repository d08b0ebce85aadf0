"""What one message does to the record: each kind calls one SQL function of `mirror_v1.sql`.

A message whose parent is not known yet is `Parked`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from effects.core import events as said
from effects.core.messages import Message
from ledger import ingest_claims, ingest_streams, otlp_apply
from ledger.ingest_parts import Context, Outcomes
from ledger.ingest_reading import Item
from ledger.otlp_facts import ToolSpan


def apply_message(
    workspace_id: int, item_id: int, item: Item, exact: Mapping[str, Any] | None
) -> Outcomes:
    """Applies one item's message. Runs inside the item's transaction."""
    assert item.message is not None, "only a readable item is applied"
    context = Context(workspace_id=workspace_id, item_id=item_id, item=item, exact=exact)
    return _APPLY[type(item.message)](context, item.message)


_APPLY: Final[Mapping[type[Message], Callable[[Context, Any], Outcomes]]] = {
    said.ClaimMade: ingest_claims.claim_made,
    said.ClaimNoted: ingest_claims.noted,
    said.AttemptStarted: ingest_claims.attempt_started,
    said.AttemptSent: ingest_claims.attempt_sent,
    said.AttemptCompleted: ingest_claims.attempt_ended,
    said.AttemptFailed: ingest_claims.attempt_ended,
    said.AttemptUnknown: ingest_claims.attempt_ended,
    said.ProviderSighted: ingest_claims.sighted,
    said.StreamOpened: ingest_streams.stream_opened,
    said.StreamClosed: ingest_streams.stream_closed,
    said.CallAnnounced: ingest_streams.call_announced,
    said.StreamRecorded: ingest_streams.stream_recorded,
    ToolSpan: otlp_apply.tool_span,
}
