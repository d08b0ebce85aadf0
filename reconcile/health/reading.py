"""The figures that the health of a workspace is judged by: one statement, and the parts asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import connection
from django.urls import reverse

from effects.core.vocabulary import ItemState
from effects.mail import is_configured
from effects.models import Connection
from effects.pages.health import answers
from reconcile import pace
from reconcile.audit import chain
from reconcile.connecting import secrets_seen
from reconcile.health.judging import Backlog, Part, Standing, of_answer, of_backlog, of_count
from reconcile.models import WebhookDelivery

CONNECTIONS_MAX: Final = 50

_FIGURES: Final = """
SELECT
  (SELECT granted_at FROM ledger_claim WHERE workspace_id = %(workspace_id)s
    ORDER BY id DESC LIMIT 1) AS newest_call,
  (SELECT received_at FROM ledger_ingestitem WHERE workspace_id = %(workspace_id)s
    ORDER BY id DESC LIMIT 1) AS newest_event,
  (SELECT array[count(*)::text, min(at)::text] FROM ledger_due
    WHERE workspace_id = %(workspace_id)s AND why = 'lookup' AND at <= %(now)s) AS lookups,
  (SELECT array[count(*)::text, min(at)::text] FROM ledger_due
    WHERE workspace_id = %(workspace_id)s AND why = 'clock' AND at <= %(now)s) AS clock,
  (SELECT array[count(*)::text, min(due_at)::text] FROM reconcile_run
    WHERE workspace_id = %(workspace_id)s AND due_at <= %(now)s) AS runs,
  (SELECT array[count(*)::text, min(due_at)::text] FROM reconcile_outboxcue
    WHERE workspace_id = %(workspace_id)s AND due_at <= %(now)s) AS cues,
  (SELECT array[count(*)::text, min(d.due_at)::text] FROM reconcile_outboxdelivery d
    JOIN reconcile_outboxmessage m ON m.id = d.message_id
    WHERE m.workspace_id = %(workspace_id)s AND d.due_at <= %(now)s) AS deliveries,
  (SELECT count(*) FROM reconcile_agentaddress WHERE workspace_id = %(workspace_id)s
    AND retired_at IS NULL AND (failing_since IS NOT NULL OR gone_at IS NOT NULL)) AS addresses,
  (SELECT count(*) FROM reconcile_webhookdelivery w
    JOIN effects_connection c ON c.id = w.connection_id
    WHERE c.workspace_id = %(workspace_id)s AND w.state = %(failed)s) AS webhooks,
  (SELECT count(*) FROM ledger_ingestitem WHERE workspace_id = %(workspace_id)s
    AND state IN (%(item_failed)s, %(conflict)s, %(unreadable)s)) AS events
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """`newest_call` and `newest_event`: when an agent last asked, and a ledger elsewhere last sent;
    None where none ever did. `parts` in the order in which the data passes them."""

    newest_call: datetime | None
    newest_event: datetime | None
    parts: list[Part]


def health(workspace_id: int, *, now: datetime) -> Health:
    """How every part stands now."""
    figures = _figures(workspace_id, now)
    return Health(
        newest_call=figures["newest_call"],
        newest_event=figures["newest_event"],
        parts=[
            *_services(),
            *_backlogs(figures, now),
            *_troubles(figures),
            *_connections(workspace_id, now),
            _mail(),
            _chain(workspace_id),
        ],
    )


def _figures(workspace_id: int, now: datetime) -> dict[str, Any]:
    values: dict[str, str | int | datetime] = {
        "workspace_id": workspace_id,
        "now": now,
        "failed": str(WebhookDelivery.State.FAILED),
        "item_failed": str(ItemState.FAILED),
        "conflict": str(ItemState.CONFLICT),
        "unreadable": str(ItemState.UNREADABLE),
    }
    with connection.cursor() as cursor:
        cursor.execute(_FIGURES, values)
        row = cursor.fetchone()
        return dict(zip((column.name for column in cursor.description), row, strict=True))


_REMEDIES: Final = {
    "database": "Look at the database's log; nothing is granted while it is away.",
    "migrations": "Run manage.py migrate before this version serves anybody.",
    "broker": "Start it again; what was due is handed out once it is back.",
    "worker": "Start a worker: without one no provider is asked and no message is sent.",
    "beat": "Start the scheduler: without it no lease ends and nothing is handed out.",
}
_NAMES: Final = {
    "database": "Database",
    "migrations": "Migrations",
    "broker": "Broker",
    "worker": "Workers",
    "beat": "Scheduler",
}


def _services() -> list[Part]:
    return [
        of_answer(_NAMES[name], answer, remedy=_REMEDIES[name])
        for name, answer in answers().items()
    ]


def _backlogs(figures: dict[str, Any], now: datetime) -> list[Part]:
    busy = "Workers are too few or held up; see how many run, and what they log."
    return [
        of_backlog("Leases and holds that end", _backlog(figures["clock"]), now, remedy=busy),
        of_backlog(
            "Look-ups",
            _backlog(figures["lookups"]),
            now,
            remedy="A provider is left alone, or the workers are too few.",
            address=reverse("connections"),
        ),
        of_backlog("Runs", _backlog(figures["runs"]), now, remedy=busy, address=reverse("runs")),
        of_backlog("News for agents", _backlog(figures["cues"]), now, remedy=busy),
        of_backlog(
            "Messages to agents",
            _backlog(figures["deliveries"]),
            now,
            remedy="Look at which address does not take them.",
            address=reverse("outbox"),
        ),
    ]


def _backlog(said: list[str | None]) -> Backlog:
    many, oldest = said
    return Backlog(many=int(many or 0), oldest=datetime.fromisoformat(oldest) if oldest else None)


def _troubles(figures: dict[str, Any]) -> list[Part]:
    return [
        of_count(
            "Addresses of agents",
            figures["addresses"],
            what="address that takes no messages"
            if figures["addresses"] == 1
            else "addresses that take no messages",
            remedy="Agents there hear nothing of decisions.",
            address=reverse("outbox"),
        ),
        of_count(
            "Webhooks",
            figures["webhooks"],
            what="webhook that could not be applied"
            if figures["webhooks"] == 1
            else "webhooks that could not be applied",
            remedy="They are kept and tried again; see why.",
            address=reverse("webhooks") + "?show=failed",
        ),
        of_count(
            "Events from elsewhere",
            figures["events"],
            what="event that contradicts or cannot be read"
            if figures["events"] == 1
            else "events that contradict or cannot be read",
            remedy="They are kept, and change nothing until somebody looks.",
            address=reverse("events"),
        ),
    ]


def _connections(workspace_id: int, now: datetime) -> list[Part]:
    found = Connection.objects.filter(workspace_id=workspace_id).order_by("name")
    return [_connection(one, now) for one in found[:CONNECTIONS_MAX]]


def _connection(one: Connection, now: datetime) -> Part:
    name, address = f"Connection {one.name}", reverse("connection", args=[one.pk])
    standing = pace.standing(one.pk, now)
    if not secrets_seen.is_set(one):
        return Part(
            name=name,
            standing=Standing.WATCH,
            says="No worker has its secret.",
            remedy="Enter it, or set the variable where the workers run: nobody is asked without.",
            address=address,
        )
    if standing.open_until:
        return Part(
            name=name,
            standing=Standing.WATCH,
            says=f"Left alone for now: {standing.why or 'it did not answer'}.",
            remedy="It is asked again by itself.",
            address=address,
        )
    return Part(name=name, standing=Standing.FINE, says="Asked as usual.", address=address)


def _mail() -> Part:
    if is_configured():
        return Part(name="Mail", standing=Standing.FINE, says="A mail server is set.")
    return Part(
        name="Mail",
        standing=Standing.WATCH,
        says="No mail server is set.",
        remedy="Set COUNTERFOIL_MAIL_URL, or nobody is told by mail.",
    )


def _chain(workspace_id: int) -> Part:
    check = chain.last_check(workspace_id)
    address = reverse("audit-log") + "#chain"
    if check is None:
        says = "It was never verified."
        return Part(
            name="Chain of decisions",
            standing=Standing.WATCH,
            says=says,
            remedy="Have it verified once, and after every restore.",
            address=address,
        )
    if check.fault:
        return Part(
            name="Chain of decisions",
            standing=Standing.BROKEN,
            says=f"{check.fault}.",
            remedy="Compare with a backup: somebody changed the database, or it is damaged.",
            address=address,
        )
    return Part(
        name="Chain of decisions",
        standing=Standing.FINE,
        says=f"{check.decisions:,} decisions, each follows from the one before it.",
        address=address,
    )
