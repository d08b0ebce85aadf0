"""Letting people into a workspace, changing what they may do there, and letting them go again.

A person who goes keeps their account and their name in the history, but loses the membership: every
query asks for one, so nothing has to remember that somebody is gone. Every change happens under the
workspace's row lock, where the rights of whoever asks are read anew, and is recorded with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.contrib.auth.models import User
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from effects.access import ROLE_WORDS, Ability, can, needs
from effects.core.vocabulary import Role
from effects.models import MemberChange, Membership, Workspace
from effects.sessions import end_sessions

Kind = MemberChange.Kind

PEOPLE_MAX: Final = 500
"""Most members of one workspace."""
CHANGES_SHOWN_MAX: Final = 100
REASON_CHARACTERS_MAX: Final = 500


class Refused(Exception):
    """The change is not made; the text says why and what to do instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """Who changes something, when, and why in their own words."""

    by: User
    now: datetime
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """`is_new`: the account was made now, so its person needs a link to set a password."""

    membership: Membership
    is_new: bool


def refusal(*, is_own: bool, before: Role | None, after: Role | None, admins: int) -> str:
    """Why a change of role is refused, or "". `after` None lets the person go; `admins` counts
    those who can sign in."""
    order = list(Role)
    if is_own and after is None:
        return "Nobody deactivates themselves. Ask another admin."
    if is_own and before and after and order.index(after) > order.index(before):
        return "Nobody raises their own role. Ask another admin."
    if before is Role.ADMIN and after is not Role.ADMIN and admins <= 1:
        return (
            "This is the last admin of the workspace who can sign in. Make somebody else an admin "
            "first."
        )
    return ""


def add(workspace: Workspace, act: Act, *, login: str, name: str, role: Role) -> Added:
    """Lets somebody in: a new account, or one that this installation knows. Raises `Refused`."""
    with transaction.atomic():
        _alone_with(workspace, act.by)
        if Membership.objects.filter(workspace=workspace).count() >= PEOPLE_MAX:
            raise Refused(f"A workspace has at most {PEOPLE_MAX} members.")
        user = User.objects.filter(username__iexact=login).first()
        is_new = user is None
        if user is None:
            email = login if "@" in login else ""
            user = User.objects.create_user(login, email=email, password=None, first_name=name)
        if Membership.objects.filter(workspace=workspace, user=user).exists():
            raise Refused(f"{user.get_username()} is a member of this workspace already.")
        # An account is switched off with its last membership, and on with its next first one.
        if not user.is_active and user.memberships.count() == 0:
            user.is_active = True
            user.save(update_fields=["is_active"])
        was_here = MemberChange.objects.filter(workspace=workspace, user=user).exists()
        membership = Membership.objects.create(workspace=workspace, user=user, role=role)
        kind = Kind.ACTIVATED if was_here else Kind.ADDED
        _record(workspace, user, kind, act, after=role)
    return Added(membership=membership, is_new=is_new)


def change_role(
    workspace: Workspace, membership_id: int, act: Act, *, role: Role, seen: Role
) -> Membership:
    """Gives a member another role; `seen` is the role that the form showed. Raises `Refused`, and
    `Membership.DoesNotExist` for who is no member of this workspace."""
    with transaction.atomic():
        _alone_with(workspace, act.by)
        membership = _member(workspace, membership_id)
        before = Role(membership.role)
        if before is not seen:
            raise Refused(
                f"Somebody else made this person {ROLE_WORDS[before]} meanwhile. Look again."
            )
        if before is role:
            raise Refused(f"This person is {ROLE_WORDS[role]} already.")
        _refuse(workspace, membership, act.by, after=role)
        membership.role = role
        membership.save(update_fields=["role"])
        _record(workspace, membership.user, Kind.ROLE, act, before=before, after=role)
    return membership


def deactivate(workspace: Workspace, membership_id: int, act: Act) -> User:
    """Takes the membership away and ends the person's sessions at once. Who is in no workspace any
    more cannot sign in. Raises `Refused` and `Membership.DoesNotExist`."""
    with transaction.atomic():
        _alone_with(workspace, act.by)
        membership = _member(workspace, membership_id)
        _refuse(workspace, membership, act.by, after=None)
        user, before = membership.user, Role(membership.role)
        membership.delete()
        _record(workspace, user, Kind.DEACTIVATED, act, before=before)
        if user.memberships.count() == 0:
            user.is_active = False
            user.save(update_fields=["is_active"])
        end_sessions(user.pk)
    return user


def link_refusal(user: User, by: User) -> str:
    """Why this admin may make no link for that person, or "".

    Whoever holds the link signs in as that person everywhere. So it takes an admin of every
    workspace that the person is in: nobody enters a workspace through an account that is shared.
    """
    if user.pk == by.pk:
        return "Your own password is changed in your settings."
    if not user.is_active or user.is_staff or user.is_superuser:
        return "This account gets its password from a shell of the machine."
    theirs = set(user.memberships.values_list("workspace_id", flat=True))
    own = Membership.objects.filter(user=by, role=Role.ADMIN, workspace_id__in=theirs)
    if theirs - set(own.values_list("workspace_id", flat=True)):
        return (
            "This person is in other workspaces too, where you are no admin. They sign in as "
            "before; an admin of all their workspaces can make a link."
        )
    return ""


def make_link(workspace: Workspace, membership_id: int, act: Act) -> str:
    """The path of a link with which the person sets a password, once, within three days. Raises
    `Refused` and `Membership.DoesNotExist`."""
    with transaction.atomic():
        _alone_with(workspace, act.by)
        user = _member(workspace, membership_id).user
        if sentence := link_refusal(user, act.by):
            raise Refused(sentence)
        if not user.has_usable_password():
            # An earlier link is void from now on: it was made for the earlier random text.
            user.set_unusable_password()
            user.save(update_fields=["password"])
        _record(workspace, user, Kind.LINK, act)
    return link_path(user)


def link_path(user: User) -> str:
    uid = urlsafe_base64_encode(force_bytes(user.pk))
    return reverse("join", args=[uid, default_token_generator.make_token(user)])


def record_password(user: User, now: datetime) -> None:
    """Notes in each of the person's workspaces that they set their password by a link."""
    for membership in user.memberships.select_related("workspace"):
        _record(membership.workspace, user, Kind.PASSWORD, Act(by=user, now=now))


def changes(workspace: Workspace, user: User | None = None) -> list[MemberChange]:
    """The newest changes of the workspace, or those of one person, newest first."""
    found = MemberChange.objects.filter(workspace=workspace).select_related("user", "changed_by")
    if user is not None:
        found = found.filter(user=user)
    return list(found.order_by("-pk")[:CHANGES_SHOWN_MAX])


def former_members(workspace: Workspace) -> list[MemberChange]:
    """Who was a member and is none now, with the change that ended it, newest first."""
    here = Membership.objects.filter(workspace=workspace).values("user_id")
    gone = MemberChange.objects.filter(workspace=workspace, kind=Kind.DEACTIVATED)
    last = gone.exclude(user_id__in=here).order_by("user_id", "-pk").distinct("user_id")
    found = list(last.select_related("user", "changed_by")[:PEOPLE_MAX])
    return sorted(found, key=lambda change: -change.pk)[:CHANGES_SHOWN_MAX]


def _alone_with(workspace: Workspace, by: User) -> None:
    """Locks the workspace, and asks again whether this person may: they may have been demoted."""
    Workspace.objects.select_for_update().get(pk=workspace.pk)
    role = Membership.objects.filter(
        workspace=workspace, user=by, user__is_active=True
    ).values_list("role", flat=True)
    held = role.first()
    if held is None or not can(Role(held), Ability.EDIT_PEOPLE):
        raise Refused(needs(Ability.EDIT_PEOPLE))


def _member(workspace: Workspace, membership_id: int) -> Membership:
    return Membership.objects.select_related("user").get(workspace=workspace, pk=membership_id)


def _refuse(workspace: Workspace, membership: Membership, by: User, *, after: Role | None) -> None:
    # An admin who never set a password could not let anybody in.
    active = Membership.objects.filter(workspace=workspace, role=Role.ADMIN, user__is_active=True)
    admins = sum(one.user.has_usable_password() for one in active.select_related("user"))
    sentence = refusal(
        is_own=membership.user_id == by.pk,
        before=Role(membership.role),
        after=after,
        # Who cannot sign in was not counted, so taking their role away takes no admin away.
        admins=admins if membership.user.has_usable_password() else admins + 1,
    )
    if sentence:
        raise Refused(sentence)


def _record(
    workspace: Workspace,
    user: User,
    kind: str,
    act: Act,
    *,
    before: Role | None = None,
    after: Role | None = None,
) -> None:
    MemberChange.objects.create(
        workspace=workspace,
        user=user,
        kind=kind,
        role_before=str(before or ""),
        role_after=str(after or ""),
        changed_at=act.now,
        changed_by=act.by,
        reason=act.reason[:REASON_CHARACTERS_MAX],
    )
