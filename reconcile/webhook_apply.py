"""What becomes of webhooks that were kept: applied by what they say, in whatever order they came.

Each delivery is one transaction: what it adds to the ledger and that it was applied are committed
together, so a process that dies in between has applied nothing. What fails is tried again, and is
seen. Due deliveries are found by a sweep; nobody has to be told of them.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction
from django.db.models import F

from effects.core.identity import read_marker
from effects.core.problems import ClaimNotFound
from effects.core.redact import redacted
from effects.core.vocabulary import ClaimState
from effects.models import Connection
from ledger import append, queries
from reconcile import webhook_strangers
from reconcile.adapters.stripe_events import NotAnEvent, StripeEvent, read_event
from reconcile.facts import WEBHOOK
from reconcile.investigate import Asking, investigate, observation, read_claim
from reconcile.judge_webhook import SETTLED
from reconcile.models import WebhookDelivery
from reconcile.webhook_matching import (
    CLAIMS_MAX,
    Word,
    claims_of,
    fault_of_the_place,
    heard_before,
    is_outdated,
    word_of,
)

if TYPE_CHECKING:
    from reconcile.facts import Read

logger = logging.getLogger(__name__)

UNMATCHED_PAUSES: Final = tuple(timedelta(seconds=s) for s in (5, 30, 300, 3600, 6 * 3600))
"""A webhook may overtake the record of its own call, where that is kept elsewhere and sent here."""
FAILED_FIRST: Final = timedelta(seconds=5)
FAILED_MAX: Final = timedelta(hours=1)
FAILED_TRIES_MAX: Final = 30
"""About a day; then it waits for a person, or for the provider to send it anew."""
READ_AGAIN: Final = timedelta(seconds=10)
READ_TRIES_MAX: Final = 20
NOTE_CHARACTERS_MAX: Final = 500
KEPT_DAYS: Final = 35
"""How long an applied delivery is kept: longer than Stripe lists events, which is 30 days."""
FORGOTTEN_MAX: Final = 500
STILL_OPEN: Final = frozenset({ClaimState.UNKNOWN, ClaimState.RELEASED, ClaimState.CONFLICTED})

_MARKERS = re.compile(rb"cf_[0-9a-f]{32}_[1-9][0-9]{0,8}")
_State = WebhookDelivery.State


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of a delivery. `claims` were touched; `reads` are to be asked about afresh."""

    state: str
    note: str = ""
    claims: tuple[UUID, ...] = ()
    reads: tuple[UUID, ...] = ()
    due_at: datetime | None = None


def due(limit: int) -> list[int]:
    """The deliveries that are due, longest due first."""
    found = WebhookDelivery.objects.filter(due_at__lte=queries.clock(), reads=[])
    return list(found.order_by("due_at", "pk").values_list("pk", flat=True)[:limit])


def take_reads(limit: int, lease_seconds: int) -> list[int]:
    """Deliveries that ordered a fresh read, each handed to one asker for the lease."""
    now = queries.clock()
    with transaction.atomic():
        found = WebhookDelivery.objects.filter(due_at__lte=now).exclude(reads=[])
        taken = list(
            found.select_for_update(skip_locked=True)
            .order_by("due_at")
            .values_list("pk", flat=True)[:limit]
        )
        WebhookDelivery.objects.filter(pk__in=taken).update(
            due_at=now + timedelta(seconds=lease_seconds), tries=F("tries") + 1
        )
    return taken


def apply(delivery_id: int) -> str | None:
    """Apply one delivery, if it is due and nobody else is at it. Answers its state then."""
    try:
        with transaction.atomic():
            delivery = _locked(delivery_id)
            if delivery is None:
                return None
            fate = _fate(delivery)
            _save(delivery, fate)
            return fate.state
    except Exception as error:
        # Whatever went wrong, nothing of it was kept; that it went wrong is.
        logger.exception("webhook %s could not be applied", delivery_id)
        return _failed(delivery_id, error)


def apply_again(delivery_id: int) -> None:
    """A person wants it tried now, whatever was planned."""
    WebhookDelivery.objects.filter(pk=delivery_id).update(due_at=queries.clock(), tries=0)


def read_afresh(delivery_id: int) -> None:
    """Ask the provider about the calls that a delivery left open. Waits for the provider."""
    delivery = WebhookDelivery.objects.select_related("connection").filter(pk=delivery_id).first()
    if delivery is None or not delivery.reads:
        return
    left = [claim for claim in delivery.reads if not _asked(delivery, claim)]
    given_up = delivery.tries >= READ_TRIES_MAX
    WebhookDelivery.objects.filter(pk=delivery_id, state=_State.APPLIED).update(
        reads=[] if given_up else left,
        due_at=queries.clock() + READ_AGAIN if left and not given_up else None,
    )


def forget_old() -> int:
    """Delete applied deliveries that are older than KEPT_DAYS; the ledger keeps what they said."""
    before = queries.clock() - timedelta(days=KEPT_DAYS)
    old = WebhookDelivery.objects.filter(
        state=_State.APPLIED, due_at=None, last_received_at__lt=before
    )
    forgotten, _ = WebhookDelivery.objects.filter(
        pk__in=list(old.order_by("pk").values_list("pk", flat=True)[:FORGOTTEN_MAX])
    ).delete()
    return forgotten


# One delivery


def _locked(delivery_id: int) -> WebhookDelivery | None:
    waiting = WebhookDelivery.objects.select_related("connection__workspace")
    return (
        waiting.select_for_update(skip_locked=True, of=("self",))
        .filter(pk=delivery_id, due_at__lte=queries.clock())
        .first()
    )


def _fate(delivery: WebhookDelivery) -> Fate:
    if delivery.connection.kind == Connection.Kind.STRIPE:
        return _fate_of_stripes(delivery)
    return _fate_of_others(delivery)


def _fate_of_stripes(delivery: WebhookDelivery) -> Fate:
    try:
        event = read_event(bytes(delivery.body))
    except NotAnEvent as error:
        return Fate(state=_State.UNREADABLE, note=str(error))
    if fault := fault_of_the_place(delivery.connection, event):
        # What happened in another account or mode proves nothing about this one, either way.
        return Fate(state=_State.MISPLACED, note=fault)
    claims = claims_of(delivery.connection, event)
    if not claims:
        fate = _unmatched(delivery)
        if fate.due_at is None:
            webhook_strangers.note(delivery.connection, event)
        return fate
    outdated = is_outdated(delivery.connection, event)
    fates = [
        _fate_for(delivery, event, claim_id, named=named, outdated=outdated)
        for claim_id, named in claims.items()
    ]
    return _together(fates)


def _fate_for(
    delivery: WebhookDelivery, event: StripeEvent, claim_id: UUID, *, named: bool, outdated: bool
) -> Fate:
    """What the event does to one call."""
    read = read_claim(delivery.connection.workspace_id, claim_id)
    if read.tool.connection_id != delivery.connection_id:
        other = read.tool.connection.name if read.tool.connection else "no connection"
        note = f"Its call belongs to {read.tool.name}, which is asked at {other}, not here."
        return Fate(state=_State.MISPLACED, note=note)
    word = word_of(delivery.connection, event, read, named=named, outdated=outdated)
    if word.look is not None and word.heard.judgement is not None:
        _observe(delivery, read, word)
    elif word.look is None and read.state in STILL_OPEN:
        append.schedule_lookup(claim_id, read.now, known_at=read.now)
    return Fate(
        state=_State.APPLIED,
        note=word.heard.why,
        claims=(claim_id,),
        reads=(claim_id,) if word.heard.read_afresh else (),
    )


def _observe(delivery: WebhookDelivery, read: Read, word: Word) -> None:
    assert word.look is not None
    assert word.heard.judgement is not None
    if heard_before(read, delivery.event_id, word.look):
        return
    seen = observation(read, word.look, word.heard.judgement, Asking(trigger=WEBHOOK))
    named = {"event_id": delivery.event_id, "delivery": delivery.pk}
    append.observe(
        read.claim.workspace_id, read.claim.pk, replace(seen, data={**seen.data, **named})
    )


def _fate_of_others(delivery: WebhookDelivery) -> Fate:
    """Nobody says how another sender's bytes are to be read, so they are a reason to ask."""
    workspace_id = delivery.connection.workspace_id
    found = []
    for text in list(dict.fromkeys(_MARKERS.findall(bytes(delivery.body))))[:CLAIMS_MAX]:
        marked = read_marker(text.decode())
        assert marked is not None
        try:
            claim = queries.claim(workspace_id, marked[0])
        except ClaimNotFound:
            continue
        if claim.tool.connection_id == delivery.connection_id:
            found.append(claim.pk)
    if not found:
        return _unmatched(delivery)
    return Fate(
        state=_State.APPLIED,
        note="It names the call by our marker, so the provider is asked.",
        claims=tuple(found),
        reads=tuple(found),
    )


def _together(fates: Sequence[Fate]) -> Fate:
    """One fate for all calls of a delivery; one that was applied outweighs the others."""
    applied = [fate for fate in fates if fate.state == _State.APPLIED]
    chosen = applied or list(fates)
    return Fate(
        state=chosen[0].state,
        note=" ".join(dict.fromkeys(fate.note for fate in chosen)),
        claims=tuple(claim for fate in applied for claim in fate.claims),
        reads=tuple(claim for fate in applied for claim in fate.reads),
    )


def _unmatched(delivery: WebhookDelivery) -> Fate:
    left = UNMATCHED_PAUSES[delivery.tries :]
    return Fate(
        state=_State.UNMATCHED,
        note="No call of this workspace has the marker, the key or the object that it names.",
        due_at=queries.clock() + left[0] if left else None,
    )


def _save(delivery: WebhookDelivery, fate: Fate) -> None:
    now = queries.clock()
    delivery.state = fate.state
    delivery.note = fate.note[:NOTE_CHARACTERS_MAX]
    delivery.claims = list(fate.claims)
    delivery.reads = list(fate.reads)
    delivery.due_at = now if fate.reads else fate.due_at
    delivery.tries = 0 if fate.state == _State.APPLIED else delivery.tries + 1
    delivery.applied_at = now if fate.state == _State.APPLIED else None
    delivery.save()


def _failed(delivery_id: int, error: Exception) -> str:
    delivery = WebhookDelivery.objects.get(pk=delivery_id)
    pause = min(FAILED_FIRST * 2 ** min(delivery.tries, 12), FAILED_MAX)
    over = delivery.tries + 1 >= FAILED_TRIES_MAX
    said = redacted(f"{type(error).__name__}: {error}".replace("\x00", " "))
    WebhookDelivery.objects.filter(pk=delivery_id).update(
        state=_State.FAILED,
        note=said[:NOTE_CHARACTERS_MAX],
        tries=delivery.tries + 1,
        due_at=None if over else queries.clock() + pause,
    )
    return _State.FAILED


def _asked(delivery: WebhookDelivery, claim_id: UUID) -> bool:
    """Whether the provider has said all that is wanted, or there is nothing to ask any more.

    An answer that turns round what was told is read a second time. A call that is settled may have
    no look-up planned, so that read is seen to here.
    """
    asking = Asking(trigger=WEBHOOK)
    try:
        looked = investigate(delivery.connection.workspace_id, claim_id, asking)
    except ClaimNotFound:
        return True
    if looked.word is None:
        return looked.next_at is None
    doubtful = looked.judgement is not None and looked.judgement.look_again_at is not None
    return not (doubtful and looked.state in SETTLED)
