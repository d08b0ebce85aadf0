"""From a cue to a message: read the call as its agent may see it, and say what is new.

A cue that cannot be worked on stays and is tried again; the others go on. One process composes at
a time, so that two cues of one call never make the same message twice.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import connection, transaction
from django.db.models import F

from effects.core.messages import ClaimAnswer
from effects.core.problems import ClaimNotFound
from effects.core.vocabulary import EventKind
from effects.models import Workspace
from ledger import queries
from reconcile.outbox.models import (
    AgentAddress,
    OutboxCue,
    OutboxDelivery,
    OutboxMark,
    OutboxMessage,
)
from reconcile.outbox.news import TEST, Happening, News, news_of

logger = logging.getLogger(__name__)

CUES_MAX: Final = 200
"""Most cues that one tick works on."""
BODY_BYTES_MAX: Final = 256 * 1024
"""Longest message. A result that makes it longer is left out, and the message says so."""
CUE_AGAIN: Final = timedelta(seconds=30)
CUE_TRIES_MAX: Final = 20
KEPT_DAYS: Final = 35
"""How long messages and their deliveries are kept, once nothing more happens to them."""
FORGOTTEN_MAX: Final = 500

_LOCK: Final = 0x6F757462  # "outb"


def compose(limit: int = CUES_MAX) -> int:
    """Work on what is due; answers how many messages were made."""
    with transaction.atomic():
        if not _alone():
            return 0
        cues = OutboxCue.objects.filter(due_at__lte=queries.clock()).order_by("due_at", "pk")
        by_claim: dict[tuple[int, UUID], list[OutboxCue]] = defaultdict(list)
        for cue in cues[:limit]:
            by_claim[cue.workspace_id, cue.claim_id].append(cue)
        return sum(_compose(*of, cues=found) for of, found in by_claim.items())


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])


def _compose(workspace_id: int, claim_id: UUID, *, cues: list[OutboxCue]) -> int:
    of_these = OutboxCue.objects.filter(pk__in=[cue.pk for cue in cues])
    try:
        with transaction.atomic():
            made = _tell(workspace_id, claim_id, frozenset(cue.seq for cue in cues))
            of_these.delete()
            return made
    except ClaimNotFound:
        of_these.delete()
    except Exception:
        # One call that cannot be read must not keep the news of all others.
        logger.exception("no news could be made of claim %s", claim_id)
        of_these.filter(tries__gte=CUE_TRIES_MAX).delete()
        of_these.update(tries=F("tries") + 1, due_at=queries.clock() + CUE_AGAIN)
    return 0


def _tell(workspace_id: int, claim_id: UUID, seqs: frozenset[int]) -> int:
    claim = queries.claim(workspace_id, claim_id)
    now = queries.clock()
    answer = queries.status(claim, now=now)
    last = OutboxMessage.objects.filter(claim_id=claim_id).order_by("-pk").first()
    happenings = [
        Happening(
            seq=event.seq,
            kind=EventKind(event.kind),
            fence=event.fence,
            at=event.at,
            decision_id=event.decision_id,
        )
        for event in queries.events(claim)
    ]
    news = news_of(answer, happenings, cues=seqs, told_before=last.said if last else None)
    if news is None:
        return 0
    addresses = [
        address
        for address in open_addresses(workspace_id)
        if not address.types or news.type in address.types
    ]
    if not addresses:
        return 0
    call = {
        "conversation": claim.conversation,
        "turn_index": claim.turn_index,
        "tool_call_id": claim.call_id,
        "version": claim.version,
    }
    message = OutboxMessage(
        workspace_id=workspace_id,
        claim_id=claim_id,
        version=claim.version,
        type=str(news.type),
        said=news.said,
        made_at=now,
    )
    _send(message, addresses, now=now, data=_data(claim.workspace, call, answer, news))
    return 1


def _data(
    workspace: Workspace, call: dict[str, Any], answer: ClaimAnswer, news: News
) -> dict[str, Any]:
    told = answer.model_dump(mode="json")
    data = {
        "workspace": workspace.slug,
        "mode": workspace.mode,
        **call,
        "overtaken": news.overtaken.as_json() if news.overtaken else None,
        "answer": told,
    }
    if len(json.dumps(data)) > BODY_BYTES_MAX:
        told["result"] = None
        for_model = told["for_model"]
        for_model.pop("result", None)
        for_model["detail"] += " Its result is too long for this message; ask for the claim."
    return data


def trial_message(address: AgentAddress) -> OutboxDelivery:
    """A message that says nothing about any call, to see whether an address takes one."""
    now = queries.clock()
    message = OutboxMessage(workspace=address.workspace, type=TEST, made_at=now)
    data = {"workspace": address.workspace.slug, "mode": address.workspace.mode}
    return _send(message, [address], now=now, data=data)[0]


def _send(
    message: OutboxMessage,
    addresses: Iterable[AgentAddress],
    *,
    now: datetime,
    data: dict[str, Any],
) -> list[OutboxDelivery]:
    message.public_id = f"msg_{uuid4().hex}"
    body = {"type": message.type, "timestamp": now.isoformat(), "data": data}
    message.body = json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode()
    message.save()
    return OutboxDelivery.objects.bulk_create(
        OutboxDelivery(message=message, address=address, due_at=now) for address in addresses
    )


def open_addresses(workspace_id: int) -> list[AgentAddress]:
    """The addresses that take messages, in the order in which they were made."""
    found = AgentAddress.objects.filter(workspace_id=workspace_id, retired_at=None, gone_at=None)
    return list(found.order_by("pk"))


# What no event tells

_WINDOWS: Final = """
INSERT INTO reconcile_outboxcue (workspace_id, claim_id, seq, at, due_at)
SELECT c.workspace_id, c.id, 0, %(now)s, %(now)s
FROM ledger_due d
JOIN ledger_claim c ON c.id = d.claim_id
JOIN effects_tool t ON t.id = c.tool_id
WHERE d.why = 'person' AND c.state = 'unknown'
  AND d.workspace_id IN (
    SELECT workspace_id FROM reconcile_agentaddress WHERE retired_at IS NULL)
  AND c.window_until - make_interval(secs => t.margin_seconds) > %(since)s
  AND c.window_until - make_interval(secs => t.margin_seconds) <= %(now)s
"""


def notice_closed_windows() -> None:
    """Give a cue for each call whose safe-retry window closed since the last look.

    Only the undecided calls of workspaces with an address are read. What closed before the first
    look is no news.
    """
    now = queries.clock()
    with transaction.atomic():
        mark = OutboxMark.objects.select_for_update(skip_locked=True).first()
        if mark is None:
            if not OutboxMark.objects.exists() and _alone():
                OutboxMark.objects.create(windows_until=now)
            return
        with connection.cursor() as cursor:
            cursor.execute(_WINDOWS, {"now": now, "since": mark.windows_until})
        mark.windows_until = max(mark.windows_until, now)
        mark.save(update_fields=["windows_until"])


def forget_old() -> None:
    """Remove messages to which nothing more happens and that are older than KEPT_DAYS."""
    before = queries.clock() - timedelta(days=KEPT_DAYS)
    old = OutboxMessage.objects.filter(made_at__lt=before).exclude(deliveries__due_at__isnull=False)
    OutboxMessage.objects.filter(
        pk__in=list(old.values_list("pk", flat=True)[:FORGOTTEN_MAX])
    ).delete()
