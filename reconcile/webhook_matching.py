"""Which calls one of Stripe's events is about, and what it means for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from effects.core.identity import MARKER_METADATA_KEY, read_marker
from effects.core.problems import ClaimNotFound
from ledger import queries
from reconcile.adapters.base import Delay, Look, Probe, kept
from reconcile.adapters.matching import seen
from reconcile.adapters.stripe_events import StripeEvent
from reconcile.adapters.stripe_objects import (
    KIND_OF_LOOKUP,
    Kind,
    match,
    status_of,
    without_secrets,
)
from reconcile.facts import Read, claim_facts, earlier_looks, probe
from reconcile.judge_webhook import Heard, Snapshot, judge_webhook
from reconcile.models import WebhookDelivery

if TYPE_CHECKING:
    from effects.models import Connection

CLAIMS_MAX: Final = 10
"""Most calls that one delivery is applied to."""
DELIVERIES_BESIDE_MAX: Final = 20
BEGINNING: Final = ".created"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """What one event says about one call: `look` None where the call's tool is asked about another
    kind of object, and the event only says that it is time to ask."""

    heard: Heard
    look: Look | None = None


def fault_of_the_place(connection: Connection, event: StripeEvent) -> str | None:
    """Why the event is from another account or mode than the connection is for, or None."""
    mode = "live" if event.livemode else "test"
    wanted = connection.workspace.mode
    if mode != wanted:
        return f"The event is from {mode} mode, the workspace is {wanted}."
    if event.account and event.account != connection.account:
        here = connection.account or "the secret's own account"
        return f"The event is from the account {event.account}, the connection is for {here}."
    return None


def claims_of(connection: Connection, event: StripeEvent) -> dict[UUID, bool]:
    """The calls that the event is about; True where it names the call by our marker or key.

    Else an event is about the calls that earlier ones of the same object were about: what happens
    to an object by itself was caused by no request, so it names no key.
    """
    found: dict[UUID, bool] = {}
    marked = read_marker(str(event.metadata.get(MARKER_METADATA_KEY)))
    workspace_id = connection.workspace_id
    for name in (str(marked[0]) if marked else "", event.key):
        if name:
            try:
                found[queries.claim_by_key(workspace_id, name).pk] = True
            except ClaimNotFound:
                continue
    if not found and event.object_id:
        beside = WebhookDelivery.objects.filter(connection=connection, object_id=event.object_id)
        for claims in beside.exclude(claims=[]).values_list("claims", flat=True)[
            :DELIVERIES_BESIDE_MAX
        ]:
            found |= dict.fromkeys(claims, False)
    return dict(sorted(found.items())[:CLAIMS_MAX])


def word_of(
    connection: Connection, event: StripeEvent, read: Read, *, named: bool, outdated: bool
) -> Word:
    """What the event means for this call."""
    kind = KIND_OF_LOOKUP.get(read.tool.lookup_kind)
    if kind is None or kind.object != event.noun:
        changes = read.tool.lookup_kind == "stripe.updates"
        noun = kind.noun if kind else "a change of one" if changes else "nothing of Stripe's"
        why = f"The event tells of a {event.noun or 'nameless object'}, the call is asked about "
        return Word(heard=Heard(judgement=None, read_afresh=False, why=f"{why}{noun}."))
    facts = claim_facts(read)
    asked = probe(read, connection, facts)
    status = status_of(event.object)
    snapshot = Snapshot(
        final=status in kind.final,
        named=named,
        beginning=event.type.endswith(BEGINNING),
        outdated=outdated,
    )
    look = look_of(asked, kind, event)
    return Word(heard=judge_webhook(facts, look, snapshot, earlier_looks(read.events)), look=look)


def look_of(asked: Probe, kind: Kind, event: StripeEvent) -> Look:
    """The event as one dated answer of the provider's."""
    text = str(event.metadata.get(MARKER_METADATA_KEY))
    life = asked.markers.get(text) or asked.keys.get(event.key)
    said = seen([match(asked, kind, event.object, life)], noun=kind.noun)
    said_at = f", made {event.said_at:%Y-%m-%d %H:%M:%S} UTC" if event.said_at else ""
    return Look(
        word=said.word,
        why=said.why,
        route=f"Webhook {event.type}",
        query=f"{event.id}{said_at}",
        asked_at=asked.asked_at,
        delay_class=Delay.EVENTUAL,
        account=event.account or asked.place.account,
        mode="live" if event.livemode else "test",
        pages_complete=True,
        partly=said.partly,
        status=said.status,
        objects=said.objects,
        others=said.others,
        requested=said.requested,
        found=said.found,
        raw=kept(json.dumps(without_secrets(event.object), indent=1).encode()),
    )


def is_outdated(connection: Connection, event: StripeEvent) -> bool:
    """Whether a later event of the same object was applied. Events of one second have no order,
    but that an object was made comes before whatever became of it."""
    if event.said_at is None or not event.object_id:
        return False
    applied = WebhookDelivery.objects.filter(
        connection=connection, object_id=event.object_id, state=WebhookDelivery.State.APPLIED
    )
    if event.type.endswith(BEGINNING):
        return applied.exclude(type__endswith=BEGINNING).exists()
    return applied.filter(said_at__gt=event.said_at).exists()


def heard_before(read: Read, event_id: str, look: Look) -> bool:
    """Whether the record has this very event already: it was sent twice with other wrapping."""

    def same(data: Mapping[str, Any], word: str | None) -> bool:
        return data.get("event_id") == event_id and word == look.word

    return any(same(event.data or {}, event.word) for event in read.events)
