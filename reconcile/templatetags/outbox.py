"""What a call's page says of the messages that agents got about it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django import template
from django.template import Context

from reconcile.outbox.models import OutboxDelivery

register = template.Library()

SHOWN_MAX: Final = 10


@register.inclusion_tag("reconcile/_call_told.html", takes_context=True)
def told_agents(context: Context, claim_id: UUID) -> dict[str, Any]:
    """The newest deliveries about a call; nothing is shown where there are none."""
    found = OutboxDelivery.objects.filter(message__claim_id=claim_id)
    rows = found.select_related("message", "address").defer("message__body").order_by("-pk")
    shown = [(row, _overtaken(row)) for row in rows[:SHOWN_MAX]]
    return {"now": context["now"], "request": context.get("request"), "deliveries": shown}


def _overtaken(delivery: OutboxDelivery) -> dict[str, Any] | None:
    said = delivery.message.said
    return said[-1] if said else None
