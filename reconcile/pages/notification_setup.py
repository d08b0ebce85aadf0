"""The forms of rules and channels, and what is done to one with a single button."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from effects.access import Ability, DeskRequest, membership_required, require
from effects.pages.settings import shown_times
from ledger import queries
from reconcile.models import NotificationChannel, NotificationRule
from reconcile.notify import saving, tasks, telling, words
from reconcile.notify.forms import ChannelForm, RuleForm, rule_initial

UNPROCESSABLE = 422


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def new_rule(request: DeskRequest) -> HttpResponse:
    """A rule that nobody has entered yet."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    return _rule_form(request, NotificationRule(workspace=request.workspace), is_new=True)


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def rule(request: DeskRequest, rule_id: int) -> HttpResponse:
    """One rule, to change it."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    return _rule_form(request, _rule(request, rule_id), is_new=False)


@require_POST
@membership_required
def pause_rule(request: DeskRequest, rule_id: int) -> HttpResponse:
    """Pauses a rule, or has a paused one speak again."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    kept = _rule(request, rule_id)
    saving.pause(kept, user=request.user, now=queries.clock())
    done = "tells nobody until somebody resumes it" if kept.paused_at else "speaks again"
    messages.success(request, f"{kept.name} {done}.")
    return redirect("notifications")


@require_POST
@membership_required
def retire_rule(request: DeskRequest, rule_id: int) -> HttpResponse:
    """Nothing more is told by it; what was told stays on record."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    kept = _rule(request, rule_id)
    saving.retire_rule(kept, user=request.user, now=queries.clock())
    messages.success(request, f"Nothing more is told by {kept.name}.")
    return redirect("notifications")


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def new_channel(request: DeskRequest) -> HttpResponse:
    """A channel of the kind that the address names, email where it names none."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    asked_for = request.GET.get("kind", "")
    kinds = NotificationChannel.Kind
    kind = asked_for if asked_for in kinds.values else str(kinds.EMAIL)
    return _channel_form(
        request, NotificationChannel(workspace=request.workspace, kind=kind), is_new=True
    )


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def channel(request: DeskRequest, channel_id: int) -> HttpResponse:
    """One channel, to change it. Its secret can be entered anew, and is never shown."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    return _channel_form(request, _channel(request, channel_id), is_new=False)


@require_POST
@membership_required
def try_channel(request: DeskRequest, channel_id: int) -> HttpResponse:
    """Sends a message about no call; its page shows what the receiver answered."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    kept = _channel(request, channel_id)
    sent = telling.trial(kept)
    if not sent:
        messages.error(request, f"{kept.name} reaches nobody: its people have no mailbox here.")
        return redirect("notifications")
    tasks.soon()
    return redirect("notification", notification_id=sent[0].notification_id)


@require_POST
@membership_required
def retire_channel(request: DeskRequest, channel_id: int) -> HttpResponse:
    """Nothing more is sent there, and its secret is forgotten."""
    require(request, Ability.EDIT_NOTIFICATIONS)
    kept = _channel(request, channel_id)
    saving.retire_channel(kept, user=request.user, now=queries.clock())
    messages.success(request, f"Nothing more is sent to {kept.name}.")
    return redirect("notifications")


# Inside


def _rule_form(request: DeskRequest, kept: NotificationRule, *, is_new: bool) -> HttpResponse:
    zone = shown_times(request).zone
    form = RuleForm(
        request.POST if request.method == "POST" else None,
        workspace=request.workspace,
        rule_id=kept.pk,
        initial=rule_initial(None if is_new else kept, zone),
    )
    if request.method != "POST":
        return _rule_page(request, form, kept, is_new=is_new)
    if not form.is_valid():
        return _rule_page(request, form, kept, is_new=is_new, status=UNPROCESSABLE)
    said = request.POST.get("version", "")
    version = int(said) if said.isascii() and said.isdigit() and len(said) < 10 else 0
    try:
        saving.save_rule(
            form.filled(kept),
            form.cleaned_data["channels"],
            read_version=None if is_new else version,
            user=request.user,
            now=queries.clock(),
        )
    except saving.LimitMet as limit:
        form.add_error(None, str(limit))
        return _rule_page(request, form, kept, is_new=is_new, status=UNPROCESSABLE)
    except saving.RuleMoved:
        form.add_error(None, "Somebody saved this rule meanwhile. Open it again, then change it.")
        return _rule_page(request, form, kept, is_new=is_new, status=409)
    messages.success(request, f"{kept.name} is in force: {words.condition_words(kept)}.")
    return redirect("notifications")


def _rule_page(
    request: DeskRequest,
    form: RuleForm,
    kept: NotificationRule,
    *,
    is_new: bool,
    status: int = 200,
) -> HttpResponse:
    state = None
    if not is_new and kept.paused_at is None and status == 200:
        state = telling.state_of(request.workspace.pk, [kept])[kept.pk]
    context = {
        "now": queries.clock(),
        "form": form,
        "kept": None if is_new else kept,
        "state": state,
        "channels_exist": form.fields["channels"].queryset.exists(),  # type: ignore[attr-defined]  # a ModelMultipleChoiceField
        "exposure": ("exposure",),
    }
    return render(request, "reconcile/notification_rule.html", context, status=status)


def _channel_form(request: DeskRequest, kept: NotificationChannel, *, is_new: bool) -> HttpResponse:
    initial: dict[str, Any] = {"names_calls": True}
    if not is_new:
        initial = {
            "name": kept.name,
            "people": [str(one) for one in kept.people],
            "address": kept.address,
            "names_calls": kept.names_calls,
        }
    form = ChannelForm(
        request.POST if request.method == "POST" else None,
        workspace=request.workspace,
        kind=kept.kind,
        channel_id=None if is_new else kept.pk,
        initial=initial,
    )
    context = {
        "now": queries.clock(),
        "form": form,
        "kept": None if is_new else kept,
        "kind": NotificationChannel.Kind(kept.kind).label,
        "is_email": kept.kind == NotificationChannel.Kind.EMAIL,
        "action": "" if not is_new else f"{reverse('notification-channel-new')}?kind={kept.kind}",
    }
    page = "reconcile/notification_channel.html"
    if request.method != "POST":
        return render(request, page, context)
    if not form.is_valid():
        return render(request, page, context, status=UNPROCESSABLE)
    try:
        saving.save_channel(kept, form.cleaned_data, user=request.user, now=queries.clock())
    except saving.LimitMet as limit:
        form.add_error(None, str(limit))
        return render(request, page, context, status=UNPROCESSABLE)
    messages.success(request, f"{kept.name} is saved. Try it with a test message.")
    return redirect("notifications")


def _rule(request: DeskRequest, rule_id: int) -> NotificationRule:
    found = NotificationRule.objects.filter(workspace=request.workspace, retired_at=None)
    kept = found.select_related("tool", "workspace").filter(pk=rule_id).first()
    if kept is None:
        raise Http404("No rule of this workspace has this number.")
    return kept


def _channel(request: DeskRequest, channel_id: int) -> NotificationChannel:
    found = NotificationChannel.objects.filter(workspace=request.workspace, retired_at=None)
    kept = found.select_related("workspace").filter(pk=channel_id).first()
    if kept is None:
        raise Http404("No channel of this workspace has this number.")
    return kept
