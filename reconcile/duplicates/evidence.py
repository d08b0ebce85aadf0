"""Imported evidence as the diagnosis reads it, and the executions that it adds to or completes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from effects.core.diagnosis import Execution, GatewayRecord, Group, Source, Upstream
from reconcile.duplicates.executions import executions
from reconcile.models import ImportedEvidence

EVIDENCE_MAX: Final = 500
"""Most lines that are read for one group, the oldest first."""

_Kind = ImportedEvidence.Source
_OF_A_REQUEST: Final = (
    *("request_id", "client_request_id", "body", "key", "call_id", "retry_count", "attempt"),
    *("worker", "agent"),
)


def group_of(workspace_id: int, claim_ids: Sequence[UUID]) -> Group:
    """Everything that is known of the executions of these claims. Raises `ClaimNotFound`."""
    ran = executions(workspace_id, claim_ids)
    lines = of_claims(workspace_id, claim_ids)
    requests = [_request(one) for one in lines if one.source in {_Kind.PROVIDER, _Kind.STRIPE}]
    gateway = tuple(_gateway(one) for one in lines if one.source == _Kind.GATEWAY)
    ran = _with_checkpoints(workspace_id, ran)
    ran = _with_deliveries([one for one in lines if one.source == _Kind.DELIVERIES], ran)
    return Group(executions=(*ran, *requests), gateway=gateway)


def of_claims(workspace_id: int, claim_ids: Sequence[UUID]) -> list[ImportedEvidence]:
    found = ImportedEvidence.objects.filter(workspace_id=workspace_id, claim_id__in=claim_ids)
    return list(found.order_by("at", "pk")[:EVIDENCE_MAX])


def _request(line: ImportedEvidence) -> Execution:
    said = {name: line.facts.get(name) for name in _OF_A_REQUEST}
    return Execution(
        name=line.name,
        at=line.at,
        source=Source.PROVIDER,
        key_seen=bool(line.facts.get("key_seen")),
        **said,
    )


def _gateway(line: ImportedEvidence) -> GatewayRecord:
    upstreams = tuple(
        Upstream(
            host=str(one.get("host", "")),
            at=datetime.fromisoformat(one["at"]),
            status=one.get("status"),
        )
        for one in line.facts.get("upstreams", ())
    )
    return GatewayRecord(request_id=line.name, at=line.at, upstreams=upstreams)


# What completes the application's own executions


def _with_checkpoints(workspace_id: int, ran: Sequence[Execution]) -> tuple[Execution, ...]:
    """Each execution began from the last checkpoint of its conversation that was there already,
    where its agent did not name one itself."""
    talks = {one.conversation for one in ran if one.conversation}
    if not talks:
        return tuple(ran)
    lines = ImportedEvidence.objects.filter(
        workspace_id=workspace_id, source=_Kind.CHECKPOINTS, conversation__in=talks
    ).order_by("at", "pk")[:EVIDENCE_MAX]
    known: dict[str, list[ImportedEvidence]] = {}
    for line in lines:
        known.setdefault(line.conversation, []).append(line)
    found = [_from_checkpoint(one, known.get(one.conversation or "", [])) for one in ran]
    last = {(one.conversation, one.checkpoint): one.name for one, _ in found}
    return tuple(
        replace(
            one,
            rerun_after_error=facts.get("rerun_after_error"),
            resumed=facts.get("resumed"),
        )
        if facts and last[one.conversation, one.checkpoint] == one.name
        else one
        for one, facts in found
    )


def _from_checkpoint(
    one: Execution, lines: Sequence[ImportedEvidence]
) -> tuple[Execution, Mapping[str, Any]]:
    """The execution with what the checkpoint says, and the checkpoint's facts. Its writes carry no
    time: they speak of the last execution that began there."""
    if one.checkpoint is not None:
        named = [line for line in lines if line.facts.get("checkpoint") == one.checkpoint]
    else:
        named = [line for line in lines if line.at <= one.at]
    if not named:
        return one, {}
    facts = named[-1].facts
    completed = replace(
        one,
        checkpoint=one.checkpoint or facts.get("checkpoint"),
        delivery_count=_first(one.delivery_count, facts.get("delivery_count")),
        worker=_first(one.worker, facts.get("worker")),
    )
    return completed, facts


def _first(*said: Any) -> Any:
    return next((one for one in said if one is not None), None)


def _with_deliveries(
    lines: Sequence[ImportedEvidence], ran: Sequence[Execution]
) -> tuple[Execution, ...]:
    """A delivery belongs to the first execution after it that has none yet: a worker receives a
    message, and then runs it."""
    found = list(ran)
    for line in lines:
        for place, one in enumerate(found):
            if one.delivery_count is None and one.at >= line.at:
                found[place] = replace(
                    one,
                    delivery_count=line.facts.get("delivery_count"),
                    worker=_first(one.worker, line.facts.get("worker")),
                )
                break
    return tuple(found)
