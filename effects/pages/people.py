"""The pages about people: who is in the workspace, what their role may do, and what was changed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, override

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from effects import mail, people
from effects.access import (
    ABILITIES,
    ABILITY_WORDS,
    ROLE_WORDS,
    Ability,
    DeskRequest,
    can,
    membership_required,
    needs_and_whom,
    require,
)
from effects.core.vocabulary import Role
from effects.models import MemberChange, Membership
from effects.people import Act

UNPROCESSABLE: Final = 422
LINK_DAYS: Final = 3
_SPACES: Final = re.compile(r"\s+")
ROLE_CHOICES: Final = [(str(role), ROLE_WORDS[role]) for role in Role]
ROLE_HELP: Final = {
    Role.VIEWER: "looks, and changes nothing",
    Role.SUPPORT: "settles calls, except where money could move twice",
    Role.LEAD: "also releases with a new key, settles conflicts, and is the second person",
    Role.ENGINEER: "asks providers and declares workers lost; decides nothing about money",
    Role.ADMIN: "everything, and who may do what",
}


class PersonForm(forms.Form):
    """Whom to let in, and as what."""

    login = forms.CharField(
        label="E-mail or user name",
        max_length=150,
        help_text="They sign in with it. Capitals count.",
        widget=forms.TextInput(
            attrs={"class": "form-control", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    name = forms.CharField(
        label="Name",
        max_length=100,
        required=False,
        help_text="As colleagues read it beside a decision.",
        widget=forms.TextInput(attrs={"class": "form-control", "autocomplete": "off"}),
    )
    role = forms.ChoiceField(
        label="Role",
        choices=ROLE_CHOICES,
        initial=str(Role.SUPPORT),
        widget=forms.Select(attrs={"class": "form-select"}),
    )

    @override
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""

    def clean_login(self) -> str:
        login = str(self.cleaned_data["login"])
        if "@" in login:
            validate_email(login)
        try:
            UnicodeUsernameValidator()(login)
        except ValidationError as wrong:
            raise ValidationError(
                "A user name has letters, digits and @ . + - _ only, without spaces."
            ) from wrong
        return login

    def clean_name(self) -> str:
        return _SPACES.sub(" ", str(self.cleaned_data["name"])).strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One thing that can be done, and for every role in turn whether it can do it."""

    words: str
    cells: tuple[bool, ...]


def matrix() -> list[MatrixRow]:
    """What a role may do, from the one table that the pages themselves ask."""
    return [
        MatrixRow(words=words, cells=tuple(role in ABILITIES[ability] for role in Role))
        for ability, words in ABILITY_WORDS.items()
    ]


@require_safe
@membership_required
def list_people(request: DeskRequest) -> HttpResponse:
    """Everybody of the workspace, what the roles may do, and the newest changes."""
    found = Membership.objects.select_related("user").filter(workspace=request.workspace)
    members = found.order_by("user__first_name", "user__username")
    context = {
        **_common(request),
        "members": [_row(one) for one in members],
        "former": [
            {"change": gone, "name": _name(gone.user), "role": _role_word(gone.role_before)}
            for gone in people.former_members(request.workspace)
        ],
        "matrix": matrix(),
        "roles": [{"word": ROLE_WORDS[role], "help": ROLE_HELP[role]} for role in Role],
        "own_role": ROLE_WORDS[request.role],
        "changes": [_change(one) for one in people.changes(request.workspace)],
    }
    return render(request, "effects/people.html", context)


@never_cache
@require_http_methods(["GET", "POST"])
@membership_required
def add(request: DeskRequest) -> HttpResponse:
    """Lets somebody in. The answer shows the link for their password; it is shown only there."""
    require(request, Ability.EDIT_PEOPLE)
    if request.method == "GET":
        form = PersonForm(initial={"login": request.GET.get("login", "")[:150]})
        return _add_page(request, form, status=200)
    form = PersonForm(request.POST)
    if not form.is_valid():
        return _add_page(request, form, status=UNPROCESSABLE)
    said = form.cleaned_data
    try:
        added = people.add(
            request.workspace,
            _act(request),
            login=said["login"],
            name=said["name"],
            role=Role(said["role"]),
        )
    except people.Refused as refused:
        form.add_error("login", str(refused))
        return _add_page(request, form, status=UNPROCESSABLE)
    user = added.membership.user
    if added.is_new:
        return _link_page(request, added.membership, people.link_path(user))
    messages.success(
        request,
        f"{user.get_username()} is {ROLE_WORDS[Role(added.membership.role)]} here now. The account "
        "existed already: they sign in as before.",
    )
    return redirect("person", added.membership.pk)


@require_safe
@membership_required
def person(request: DeskRequest, membership_id: int) -> HttpResponse:
    """One person; `?dialog=deactivate` asks whether to deactivate them."""
    member = _found(request, membership_id)
    user = member.user
    context = {
        **_common(request),
        "member": _row(member),
        "role_choices": ROLE_CHOICES,
        "link_refusal": people.link_refusal(user, request.user),
        "changes": [_change(one) for one in people.changes(request.workspace, user)],
        "is_self": user.pk == request.user.pk,
        "dialog": request.GET.get("dialog", "") if _may_edit(request) else "",
    }
    return render(request, "effects/person.html", context)


@require_POST
@membership_required
def change_role(request: DeskRequest, membership_id: int) -> HttpResponse:
    """Gives somebody another role, from the next page that they open."""
    require(request, Ability.EDIT_PEOPLE)
    _found(request, membership_id)
    words = {str(role): role for role in Role}
    role, seen = words.get(request.POST.get("role", "")), words.get(request.POST.get("seen", ""))
    if role is None or seen is None:
        messages.error(request, "Choose one of the roles.")
        return redirect("person", membership_id)
    try:
        member = people.change_role(
            request.workspace, membership_id, _act(request), role=role, seen=seen
        )
    except people.Refused as refused:
        messages.error(request, f"Nothing was changed. {refused}")
    else:
        messages.success(request, f"{_name(member.user)} is {ROLE_WORDS[role]} now.")
    return redirect("person", membership_id)


@require_POST
@membership_required
def deactivate(request: DeskRequest, membership_id: int) -> HttpResponse:
    """Takes somebody's membership away and signs them out at once."""
    require(request, Ability.EDIT_PEOPLE)
    _found(request, membership_id)
    try:
        user = people.deactivate(request.workspace, membership_id, _act(request))
    except people.Refused as refused:
        messages.error(request, f"Nothing was changed. {refused}")
        return redirect("person", membership_id)
    messages.success(
        request,
        f"{_name(user)} is no member any more and was signed out. Their decisions stay in the "
        "record. API tokens that they issued keep working until somebody revokes them.",
    )
    return redirect("people")


@never_cache
@require_POST
@membership_required
def new_link(request: DeskRequest, membership_id: int) -> HttpResponse:
    """Makes a link with which the person sets a password; it is shown only in this answer."""
    require(request, Ability.EDIT_PEOPLE)
    member = _found(request, membership_id)
    try:
        path = people.make_link(request.workspace, membership_id, _act(request))
    except people.Refused as refused:
        messages.error(request, f"No link was made. {refused}")
        return redirect("person", membership_id)
    return _link_page(request, member, path)


def _add_page(request: DeskRequest, form: PersonForm, *, status: int) -> HttpResponse:
    context = {
        "form": form,
        "roles": [{"word": ROLE_WORDS[role], "help": ROLE_HELP[role]} for role in Role],
    }
    return render(request, "effects/people_add.html", context, status=status)


def _link_page(request: DeskRequest, member: Membership, path: str) -> HttpResponse:
    link = request.build_absolute_uri(path)
    user, sent = member.user, ""
    if user.email and mail.is_configured():
        sent = mail.send_link(to=user.email, link=link, workspace=request.workspace.name)
    context = {"member": _row(member), "link": link, "days": LINK_DAYS, "mail": sent}
    return render(request, "effects/people_link.html", context)


def _common(request: DeskRequest) -> dict[str, Any]:
    may_edit = _may_edit(request)
    needed = "" if may_edit else needs_and_whom(request.workspace.pk, Ability.EDIT_PEOPLE)
    return {"now": _now(), "may_edit": may_edit, "needs": needed}


def _may_edit(request: DeskRequest) -> bool:
    return can(request.role, Ability.EDIT_PEOPLE)


def _row(member: Membership) -> dict[str, Any]:
    user = member.user
    return {
        "pk": member.pk,
        "user": user,
        "name": _name(user),
        "login": user.get_username(),
        "role": str(member.role),
        "role_word": _role_word(str(member.role)),
        "last_seen_at": member.last_seen_at,
        "waits": not user.has_usable_password(),
        "off": not user.is_active,
    }


def _change(change: MemberChange) -> dict[str, Any]:
    name = _name(change.user)
    before, after = _role_word(change.role_before), _role_word(change.role_after)
    kind = MemberChange.Kind
    says = {
        kind.ADDED: f"{name} was added as {after}",
        kind.ACTIVATED: f"{name} is back as {after}",
        kind.ROLE: f"{name} became {after}, was {before}",
        kind.DEACTIVATED: f"{name} was deactivated, was {before}",
        kind.LINK: f"a link to set a password was made for {name}",
        kind.PASSWORD: f"{name} set a password by their link",
    }
    return {
        "at": change.changed_at,
        "says": says[kind(change.kind)],
        "by": _name(change.changed_by) if change.changed_by else "a shell of the machine",
        "reason": change.reason,
    }


def _role_word(role: str) -> str:
    return ROLE_WORDS[Role(role)] if role else ""


def _name(user: User) -> str:
    return user.get_full_name() or user.get_username()


def _found(request: DeskRequest, membership_id: int) -> Membership:
    found = Membership.objects.select_related("user").filter(
        workspace=request.workspace, pk=membership_id
    )
    member = found.first()
    if member is None:
        raise Http404("No member of this workspace has this number.")
    return member


def _act(request: DeskRequest) -> Act:
    reason = request.POST.get("reason", "").replace("\x00", "").strip()
    return Act(by=request.user, now=_now(), reason=reason)


def _now() -> datetime:
    return datetime.now(UTC)
