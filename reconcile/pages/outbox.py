"""What was told to agents: every delivery with its tries, and the addresses that take them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Count, QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects import audit
from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from ledger import queries
from reconcile.adapters.door import NotAllowed
from reconcile.outbox import composing, sending
from reconcile.outbox.models import AgentAddress, OutboxDelivery
from reconcile.outbox.news import NewsType
from reconcile.posting.handing import way_to

ROWS_MAX: Final = 50
ADDRESSES_MAX: Final = 20
"""Most addresses of one workspace: every change of a call is sent to each."""

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_State = OutboxDelivery.State
TABS: Final = {
    "all": ("All", tuple(_State.values)),
    "waiting": ("Waiting", (_State.WAITING,)),
    "given_up": ("Given up", (_State.GIVEN_UP,)),
    "delivered": ("Delivered", (_State.DELIVERED,)),
    "superseded": ("Superseded", (_State.SUPERSEDED,)),
}
"""Which deliveries a tab shows, by the word in its address."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tab:
    word: str
    words: str
    count: int
    current: bool


def _text(label: str, characters_max: int, help_text: str = "") -> forms.CharField:
    widget = forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"})
    return forms.CharField(
        label=label, max_length=characters_max, help_text=help_text, widget=widget
    )


class AddressForm(forms.Form):
    """Where news go, and what signs them."""

    name = _text("Name", 100)
    url = _text("Address", 500, "https://, where your agent's runtime takes a POST.")
    secret_name = _text(
        "Variable with the signing secret",
        100,
        "The environment variable's name, such as BILLING_AGENT_SECRET; its value starts with "
        "whsec_.",
    )
    types = forms.MultipleChoiceField(
        choices=[(str(word), str(word)) for word in NewsType],
        widget=forms.CheckboxSelectMultiple,
        required=False,
    )

    def clean_url(self) -> str:
        url = str(self.cleaned_data["url"])
        try:
            way = way_to(url)
        except NotAllowed as error:
            raise forms.ValidationError(str(error)) from None
        if url.startswith("http://") and not way.private:
            raise forms.ValidationError(
                "Results would travel unencrypted. Use https://, or have the operator of this "
                f"installation allow {way.origin} by name."
            )
        return url

    def clean_secret_name(self) -> str:
        name = str(self.cleaned_data["secret_name"])
        if not _VARIABLE.fullmatch(name):
            raise forms.ValidationError(
                "Name an environment variable, in capitals, not the secret itself."
            )
        return name


@require_safe
@membership_required
def outbox(request: DeskRequest) -> HttpResponse:
    """The deliveries, newest first, and the addresses above them."""
    require(request, Ability.SEE_WEBHOOKS)
    return _page(request, AddressForm())


@require_POST
@membership_required
def add(request: DeskRequest) -> HttpResponse:
    """A new address."""
    require(request, Ability.EDIT_WEBHOOKS)
    form = AddressForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=422)
    if _open(request).count() >= ADDRESSES_MAX:
        form.add_error(None, f"ADDRESSES_MAX is {ADDRESSES_MAX}: retire one first.")
        return _page(request, form, status=422)
    if _open(request).filter(name=form.cleaned_data["name"]).exists():
        form.add_error("name", "Another address of this workspace has this name.")
        return _page(request, form, status=422)
    address = AgentAddress.objects.create(
        workspace=request.workspace,
        made_at=queries.clock(),
        made_by=request.user,
        **form.cleaned_data,
    )
    messages.success(request, f"{address.name} is told from now on. Try it with a test message.")
    return redirect("outbox")


@require_POST
@membership_required
def retire(request: DeskRequest, address_id: int) -> HttpResponse:
    """Nothing more is sent there; what was sent stays on record."""
    require(request, Ability.EDIT_WEBHOOKS)
    address = _address(request, address_id)
    with transaction.atomic():
        address.retired_at = queries.clock()
        address.save(update_fields=["retired_at"])
        audit.keep(
            request.workspace.pk,
            "agent_address.retired",
            user_id=request.user.pk,
            target=address.name,
            address=reverse("outbox"),
            before={"url": address.url},
        )
    messages.success(request, f"Nothing more is sent to {address.name}.")
    return redirect("outbox")


@require_POST
@membership_required
def trial(request: DeskRequest, address_id: int) -> HttpResponse:
    """Sends a message that says nothing about any call."""
    require(request, Ability.EDIT_WEBHOOKS)
    address = _address(request, address_id)
    delivery = composing.trial_message(address)
    messages.success(request, f"A test message is on its way to {address.name}.")
    return redirect(f"{reverse('outbox')}#d{delivery.pk}")


@require_POST
@membership_required
def again(request: DeskRequest, sent_id: int) -> HttpResponse:
    """Has one delivery tried once more, within a second or two."""
    require(request, Ability.SEE_WEBHOOKS)
    delivery = _delivery(request, sent_id)
    if delivery.state == _State.DELIVERED:
        messages.error(request, "It was taken already, so it is not sent again.")
    else:
        sending.send_again(delivery)
        messages.success(request, f"It is sent to {delivery.address.name} again.")
    return redirect(f"{reverse('outbox')}#d{delivery.pk}")


@require_safe
@membership_required
def body(request: DeskRequest, sent_id: int) -> HttpResponse:
    """The bytes that were signed, to keep: never shown by the browser as a page of ours."""
    require(request, Ability.SEE_WEBHOOKS)
    message = _delivery(request, sent_id).message
    response = HttpResponse(bytes(message.body), content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{message.public_id}.json"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


# Inside


def _page(request: DeskRequest, form: AddressForm, *, status: int = 200) -> HttpResponse:
    asked_for = request.GET.get("show", "")
    show = asked_for if asked_for in TABS else "all"
    found = _deliveries(request).filter(state__in=TABS[show][1])
    before = request.GET.get("before", "")
    if before.isascii() and before.isdigit() and len(before) < 18:
        found = found.filter(pk__lt=int(before))
    rows = list(found.defer("message__body").order_by("-pk")[: ROWS_MAX + 1])
    older = f"?show={show}&before={rows[ROWS_MAX - 1].pk}" if len(rows) > ROWS_MAX else ""
    context = {
        "now": queries.clock(),
        "addresses": [(one, len(sending.secrets_of(one))) for one in _open(request)],
        "form": form,
        "tabs": _tabs(request, show),
        "show": show,
        "rows": rows[:ROWS_MAX],
        "older": older,
        "newer": f"?show={show}" if before else "",
        "may_edit": can(request.role, Ability.EDIT_WEBHOOKS),
        "needs": needs(Ability.EDIT_WEBHOOKS),
    }
    return render(request, "reconcile/outbox.html", context, status=status)


def _open(request: DeskRequest) -> QuerySet[AgentAddress]:
    found = AgentAddress.objects.filter(workspace=request.workspace, retired_at=None)
    return found.select_related("made_by").order_by("name")


def _address(request: DeskRequest, address_id: int) -> AgentAddress:
    found = _open(request).filter(pk=address_id).first()
    if found is None:
        raise Http404("No open address of this workspace has this number.")
    return found


def _deliveries(request: DeskRequest) -> QuerySet[OutboxDelivery]:
    return OutboxDelivery.objects.filter(address__workspace=request.workspace).select_related(
        "message", "address"
    )


def _delivery(request: DeskRequest, delivery_id: int) -> OutboxDelivery:
    found = _deliveries(request).filter(pk=delivery_id).first()
    if found is None:
        raise Http404("No delivery of this workspace has this number.")
    return found


def _tabs(request: DeskRequest, show: str) -> list[Tab]:
    of_workspace = OutboxDelivery.objects.filter(address__workspace=request.workspace)
    counted = dict(of_workspace.values_list("state").annotate(n=Count("pk")))
    return [
        Tab(
            word=word,
            words=words,
            count=sum(counted.get(str(state), 0) for state in states),
            current=word == show,
        )
        for word, (words, states) in TABS.items()
    ]
