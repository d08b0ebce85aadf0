"""The settings of a workspace: its name, and where its traces are looked at."""

from __future__ import annotations

from typing import Any, Final, override

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from effects import audit
from effects.access import Ability, DeskRequest, can, membership_required, needs_and_whom, require
from effects.models import Workspace
from effects.trace_links import EXAMPLES, FIELDS, TEMPLATE_CHARACTERS_MAX, fault_of, filled

UNPROCESSABLE: Final = 422
CONFLICT: Final = 409
ACT: Final = "workspace.changed"


class WorkspaceForm(forms.Form):
    """What an admin may change. `seen_` are the values that the page showed: of two people who
    change it at once, the second is told."""

    name = forms.CharField(
        label="Name",
        max_length=100,
        help_text="As it stands in the bar above every page.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    trace_url = forms.CharField(
        label="Address of a trace",
        max_length=TEMPLATE_CHARACTERS_MAX,
        required=False,
        strip=True,
        help_text="With fields in braces. A link is shown where every field in it is known.",
        widget=forms.TextInput(
            attrs={
                "class": "form-control mono",
                "autocomplete": "off",
                "spellcheck": "false",
                "placeholder": "https://traces.example.com/trace/{trace_id}",
            }
        ),
    )
    seen_name = forms.CharField(required=False, widget=forms.HiddenInput, strip=False)
    seen_trace_url = forms.CharField(required=False, widget=forms.HiddenInput, strip=False)

    @override
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    def clean_trace_url(self) -> str:
        template = str(self.cleaned_data["trace_url"])
        fault = fault_of(template) if template else ""
        if fault:
            raise ValidationError(fault)
        return template


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def workspace_settings(request: DeskRequest) -> HttpResponse:
    """Everybody sees the settings; an admin changes them, and may look at an example first."""
    if request.method != "POST":
        return _page(request, WorkspaceForm(initial=_values(request.workspace)))
    require(request, Ability.EDIT_WORKSPACE)
    form = WorkspaceForm(request.POST)
    if not form.is_valid():
        return _page(request, form, status=UNPROCESSABLE)
    if "preview" in request.POST:
        return _page(request, form)
    changed = _save(request, form.cleaned_data)
    if changed is None:
        form.add_error(
            None, "Somebody else changed these settings since you opened this page. Look again."
        )
        return _page(request, form, status=CONFLICT)
    if changed:
        messages.success(request, "The settings of the workspace are saved.")
    return redirect("workspace-settings")


def _values(workspace: Workspace) -> dict[str, str]:
    return {
        "name": workspace.name,
        "trace_url": workspace.trace_url,
        "seen_name": workspace.name,
        "seen_trace_url": workspace.trace_url,
    }


def _save(request: DeskRequest, wanted: dict[str, Any]) -> bool | None:
    """Whether anything changed; None where it is not any more what the page showed."""
    with transaction.atomic():
        workspace = Workspace.objects.select_for_update().get(pk=request.workspace.pk)
        before = {"name": workspace.name, "trace_url": workspace.trace_url}
        if before != {"name": wanted["seen_name"], "trace_url": wanted["seen_trace_url"]}:
            return None
        after = {"name": wanted["name"], "trace_url": wanted["trace_url"]}
        if before == after:
            return False
        workspace.name, workspace.trace_url = after["name"], after["trace_url"]
        workspace.save(update_fields=["name", "trace_url"])
        audit.keep(
            workspace.pk,
            ACT,
            user_id=request.user.pk,
            target=f"workspace {workspace.slug}",
            address=reverse("workspace-settings"),
            before=before,
            after=after,
        )
    return True


def _page(request: DeskRequest, form: WorkspaceForm, *, status: int = 200) -> HttpResponse:
    template = str(form["trace_url"].value() or "").strip()
    context = {
        "form": form,
        "workspace": request.workspace,
        "fields": FIELDS,
        "template": template,
        "example": filled(template, EXAMPLES),
        "may_edit": can(request.role, Ability.EDIT_WORKSPACE),
        "needs": needs_and_whom(request.workspace.pk, Ability.EDIT_WORKSPACE),
    }
    return render(request, "effects/workspace_settings.html", context, status=status)
