"""Webhooks as they came: what became of each, where they may be sent, and one more try."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects import audit
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.models import Connection
from ledger import queries
from reconcile import pace, webhook_apply
from reconcile.models import WebhookAddress, WebhookDelivery
from reconcile.webhooks import SIGNED_KINDS, secrets_of

ROWS_MAX: Final = 50
PUBLIC_ID_BYTES: Final = 24
CONNECTIONS_MAX: Final = 100
SECRET_NAME_CHARACTERS_MAX: Final = 100

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_State = WebhookDelivery.State
TABS: Final = {
    "all": ("All", tuple(_State.values)),
    "open": ("Not applied", (_State.FAILED, _State.UNMATCHED, _State.WAITING)),
    "failed": ("Failed", (_State.FAILED,)),
    "unmatched": ("Match no call", (_State.UNMATCHED,)),
    "misplaced": ("Wrong account or mode", (_State.MISPLACED,)),
    "unreadable": ("Not understood", (_State.UNREADABLE,)),
}
"""Which deliveries a tab shows, by the word in its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    word: str
    words: str
    count: int
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One connection, with where its webhooks arrive and what its look-ups have read."""

    connection: Connection
    address: WebhookAddress | None
    url: str
    secrets: int
    reads: int

    @property
    def reads_are_many(self) -> bool:
        """Half of what every account may read is used up: others read there, too."""
        return self.reads * 2 >= pace.READS_MIN


@require_safe
@membership_required
def webhooks(request: DeskRequest) -> HttpResponse:
    """The list, newest first, and the addresses above it."""
    require(request, Ability.SEE_WEBHOOKS)
    asked_for = request.GET.get("show", "")
    show = asked_for if asked_for in TABS else "all"
    found = _deliveries(request).filter(state__in=TABS[show][1])
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 18:
        found = found.filter(pk__lt=int(before))
    rows = list(found.defer("body").order_by("-pk")[: ROWS_MAX + 1])
    older = f"?show={show}&before={rows[ROWS_MAX - 1].pk}" if len(rows) > ROWS_MAX else ""
    context = {
        "now": queries.clock(),
        "places": _places(request),
        "tabs": _tabs(request, show),
        "show": show,
        "rows": rows[:ROWS_MAX],
        "older": older,
        "newer": f"?show={show}" if before else "",
        "may_edit": can(request.role, Ability.EDIT_WEBHOOKS),
        "needs": needs(Ability.EDIT_WEBHOOKS),
    }
    return render(request, "reconcile/webhooks.html", context)


@require_POST
@membership_required
def again(request: DeskRequest, delivery_id: int) -> HttpResponse:
    """Has one delivery applied once more, within a second or two."""
    require(request, Ability.SEE_WEBHOOKS)
    delivery = _delivery(request, delivery_id)
    webhook_apply.apply_again(delivery.pk)
    messages.success(request, f"{delivery.type or delivery.event_id} is applied again.")
    return redirect(f"{reverse('webhooks')}#d{delivery.pk}")


@require_safe
@membership_required
def body(request: DeskRequest, delivery_id: int) -> HttpResponse:
    """The bytes as they were received, to keep: never shown by the browser as a page of ours."""
    require(request, Ability.SEE_WEBHOOKS)
    delivery = _delivery(request, delivery_id)
    response = HttpResponse(bytes(delivery.body), content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="webhook-{delivery.pk}.txt"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@require_POST
@membership_required
def address(request: DeskRequest, connection_id: int) -> HttpResponse:
    """Gives a connection an address, or names the variable that holds its secret."""
    require(request, Ability.EDIT_WEBHOOKS)
    own = Connection.objects.filter(workspace=request.workspace, kind__in=SIGNED_KINDS)
    connection = own.filter(pk=connection_id).first()
    if connection is None:
        raise Http404("No connection of this workspace that sends webhooks has this number.")
    name = request.POST.get("secret_name", "").strip()
    if len(name) > SECRET_NAME_CHARACTERS_MAX or not _VARIABLE.fullmatch(name):
        messages.error(
            request,
            "Nothing was saved: name an environment variable, such as STRIPE_WEBHOOK_SECRET, not "
            "the secret itself.",
        )
        return redirect("webhooks")
    with transaction.atomic():
        before = WebhookAddress.objects.filter(connection=connection).first()
        WebhookAddress.objects.update_or_create(
            connection=connection,
            defaults={"secret_name": name},
            create_defaults={
                "secret_name": name,
                "public_id": secrets.token_urlsafe(PUBLIC_ID_BYTES),
            },
        )
        audit.keep(
            request.workspace.pk,
            "webhook_address.changed",
            user_id=request.user.pk,
            target=connection.name,
            address=reverse("webhooks"),
            before={"secret_name": before.secret_name} if before else None,
            after={"secret_name": name},
        )
    messages.success(request, f"Webhooks of {connection.name} are checked with {name}.")
    return redirect("webhooks")


# Inside


def _deliveries(request: DeskRequest) -> QuerySet[WebhookDelivery]:
    return WebhookDelivery.objects.filter(connection__workspace=request.workspace)


def _delivery(request: DeskRequest, delivery_id: int) -> WebhookDelivery:
    found = _deliveries(request).filter(pk=delivery_id).first()
    if found is None:
        raise Http404("No webhook of this workspace has this number.")
    return found


def _tabs(request: DeskRequest, show: str) -> list[Tab]:
    counted = dict(_deliveries(request).values_list("state").annotate(n=Count("pk")))
    return [
        Tab(
            word=word,
            words=words,
            count=sum(counted.get(str(state), 0) for state in states),
            current=word == show,
        )
        for word, (words, states) in TABS.items()
    ]


def _places(request: DeskRequest) -> list[Place]:
    found = Connection.objects.filter(workspace=request.workspace, kind__in=SIGNED_KINDS).order_by(
        "name"
    )
    return [_place(one) for one in found.select_related("webhook_address")[:CONNECTIONS_MAX]]


def _place(connection: Connection) -> Place:
    address: WebhookAddress | None = getattr(connection, "webhook_address", None)
    url: Any = address and f"{settings.COUNTERFOIL_API_URL}/webhooks/{address.public_id}"
    return Place(
        connection=connection,
        address=address,
        url=url or "",
        secrets=len(secrets_of(address)) if address else 0,
        reads=pace.reads_lately(connection.pk, queries.clock()),
    )
