"""Who may do what: one table, asked by pages for what to show and by views for what to allow."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import wraps
from typing import Concatenate, Final

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponseBase
from django_htmx.middleware import HtmxDetails

from effects.core.vocabulary import Role
from effects.models import Membership, Workspace

WORKSPACE_IN_SESSION: Final = "workspace_id"
SEEN_IS_NOTED_EVERY: Final = timedelta(minutes=1)
"""A membership is written at most this often: looking at pages must stay cheap."""
NAMES_SHOWN_MAX: Final = 3


class Ability(StrEnum):
    """One thing that a person may do. The verdicts carry the words of `vocabulary.Verdict`."""

    SEE = "see"
    NOTE = "note"
    TAKE = "take"
    ASSIGN = "assign"
    ASK = "ask"
    RUN = "run"  # a run of look-ups: starts, stops and repeats one
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    RELEASE_SAME = "release_same"
    RELEASE_NEW = "release_new"
    LOST = "lost"
    CLOSE = "close"
    SETTLE = "settle"
    REOPEN = "reopen"
    ALLOW = "allow"
    WITHDRAW = "withdraw"
    APPROVE = "approve"  # as the second person
    SECOND_PERSON = "second_person"  # asks one
    SNOOZE = "snooze"
    CLOSE_CASE = "close_case"
    EXPLAIN_GHOST = "explain_ghost"  # a provider's effect without a call
    JUDGE_DUPLICATE = "judge_duplicate"  # says what a group of calls is; sends nothing
    BULK_DECIDE = "bulk_decide"  # many calls at once; each needs its own ability as well
    EDIT_RETRY_CONSTANTS = "edit_retry_constants"  # when libraries and queues repeat here
    EDIT_RULES = "edit_rules"  # which decisions need a second person
    EDIT_CUSTOMER_TEXTS = "edit_customer_texts"
    VERIFY_CHAIN = "verify_chain"
    EDIT_TOOLS = "edit_tools"
    APPLY_AGAIN = "apply_again"  # an event that a ledger kept elsewhere sent
    SEE_WEBHOOKS = "see_webhooks"
    EDIT_WEBHOOKS = "edit_webhooks"
    SEE_TOKENS = "see_tokens"
    EDIT_TOKENS = "edit_tokens"
    EDIT_PEOPLE = "edit_people"
    SHARE_VIEW = "share_view"  # a saved view that everybody of the workspace sees
    EXPORT = "export"  # takes lists out of the product as files
    REVEAL = "reveal"  # a value that a redaction rule hid; asks for a reason and is kept
    EDIT_REDACTION = "edit_redaction"
    EDIT_RETENTION = "edit_retention"
    ACKNOWLEDGE = "acknowledge"  # a notification: somebody is at it
    SEE_NOTIFICATIONS = "see_notifications"
    EDIT_NOTIFICATIONS = "edit_notifications"
    SEE_AUDIT = "see_audit"
    EDIT_WORKSPACE = "edit_workspace"


ROLE_WORDS: Final = {
    Role.VIEWER: "Viewer",
    Role.SUPPORT: "Support",
    Role.LEAD: "Payments lead",
    Role.ENGINEER: "Engineer",
    Role.ADMIN: "Admin",
}

_EVERYBODY: Final = frozenset(Role)
_STAFF: Final = frozenset({Role.SUPPORT, Role.LEAD, Role.ENGINEER, Role.ADMIN})
_DECIDERS: Final = frozenset({Role.SUPPORT, Role.LEAD, Role.ADMIN})
_LEADS: Final = frozenset({Role.LEAD, Role.ADMIN})

ABILITIES: Final[dict[Ability, frozenset[Role]]] = {
    Ability.SEE: _EVERYBODY,
    Ability.NOTE: _STAFF,
    Ability.TAKE: _STAFF,
    Ability.ASSIGN: _STAFF,
    Ability.ASK: _STAFF,
    Ability.RUN: _STAFF,
    Ability.HAPPENED: _DECIDERS,
    Ability.NOT_HAPPENED: _DECIDERS,
    Ability.RELEASE_SAME: _DECIDERS,
    # May move money twice, or says which of two movements stands.
    Ability.RELEASE_NEW: _LEADS,
    Ability.LOST: _STAFF,
    Ability.CLOSE: _DECIDERS,
    Ability.SETTLE: _LEADS,
    Ability.REOPEN: _LEADS,
    Ability.ALLOW: _LEADS,
    Ability.WITHDRAW: _STAFF,
    Ability.APPROVE: _LEADS,
    Ability.SECOND_PERSON: _DECIDERS,
    Ability.SNOOZE: _STAFF,
    Ability.CLOSE_CASE: _DECIDERS,
    Ability.EXPLAIN_GHOST: _DECIDERS,
    Ability.JUDGE_DUPLICATE: _DECIDERS,
    # One wrong filter moves a thousand calls, so it is apart from deciding about one.
    Ability.BULK_DECIDE: _LEADS,
    Ability.EDIT_RETRY_CONSTANTS: frozenset({Role.ADMIN}),
    Ability.EDIT_RULES: frozenset({Role.ADMIN}),
    Ability.EDIT_CUSTOMER_TEXTS: frozenset({Role.ADMIN}),
    Ability.VERIFY_CHAIN: frozenset({Role.ADMIN}),
    Ability.APPLY_AGAIN: frozenset({Role.ENGINEER, Role.ADMIN}),
    Ability.EDIT_TOOLS: frozenset({Role.ADMIN}),
    # Webhooks as they came hold whatever the provider knows of its customers.
    Ability.SEE_WEBHOOKS: frozenset({Role.ENGINEER, Role.ADMIN}),
    Ability.EDIT_WEBHOOKS: frozenset({Role.ADMIN}),
    Ability.SEE_TOKENS: frozenset({Role.ENGINEER, Role.ADMIN}),
    Ability.EDIT_TOKENS: frozenset({Role.ADMIN}),
    Ability.EDIT_PEOPLE: frozenset({Role.ADMIN}),
    Ability.SHARE_VIEW: _STAFF,
    Ability.EXPORT: _STAFF,
    # What was hidden was hidden for a reason: whoever moves money may look, and says why.
    Ability.REVEAL: _LEADS,
    Ability.EDIT_REDACTION: frozenset({Role.ADMIN}),
    Ability.EDIT_RETENTION: frozenset({Role.ADMIN}),
    Ability.ACKNOWLEDGE: _STAFF,
    Ability.SEE_NOTIFICATIONS: _STAFF,
    Ability.EDIT_NOTIFICATIONS: _LEADS,
    Ability.SEE_AUDIT: frozenset({Role.LEAD, Role.ENGINEER, Role.ADMIN}),
    Ability.EDIT_WORKSPACE: frozenset({Role.ADMIN}),
}

# In the words of the pages, in the order in which the page about roles lists them.
ABILITY_WORDS: Final[dict[Ability, str]] = {
    Ability.SEE: "See the queue, calls, evidence, tools and people",
    Ability.TAKE: "Take a call",
    Ability.ASSIGN: "Assign a call to somebody",
    Ability.NOTE: "Write a note on a call",
    Ability.ASK: "Ask the provider now",
    Ability.RUN: "Start, stop and repeat runs of look-ups",
    Ability.EXPLAIN_GHOST: "Explain an effect that has no call",
    Ability.JUDGE_DUPLICATE: "Say what a group of duplicates is",
    Ability.SNOOZE: "Snooze a call",
    Ability.LOST: "Declare the worker lost",
    Ability.WITHDRAW: "Undo a held decision",
    Ability.HAPPENED: "Decide that it happened",
    Ability.NOT_HAPPENED: "Decide that it did not happen",
    Ability.RELEASE_SAME: "Release with the same key",
    Ability.CLOSE: "Stop, do not retry",
    Ability.CLOSE_CASE: "Close a case",
    Ability.SECOND_PERSON: "Ask a second person",
    Ability.APPROVE: "Approve as the second person",
    Ability.RELEASE_NEW: "Release with a new key",
    Ability.SETTLE: "Settle a conflict",
    Ability.REOPEN: "Reopen a settled call",
    Ability.ALLOW: "Allow a held request",
    Ability.BULK_DECIDE: "Decide about many calls at once",
    Ability.SEE_TOKENS: "See API tokens",
    Ability.EDIT_TOKENS: "Issue and revoke API tokens",
    Ability.EDIT_TOOLS: "Register and change tools",
    Ability.SEE_WEBHOOKS: "See webhooks, and have one applied again",
    Ability.EDIT_WEBHOOKS: "Change where webhooks arrive",
    Ability.APPLY_AGAIN: "Apply an event from elsewhere again",
    Ability.EDIT_RULES: "Change the rules for a second person",
    Ability.EDIT_RETRY_CONSTANTS: "Change the figures by which duplicates are told apart",
    Ability.EDIT_CUSTOMER_TEXTS: "Change what customers may be told",
    Ability.VERIFY_CHAIN: "Verify the chain of decisions",
    Ability.EDIT_PEOPLE: "Add people, change roles, deactivate",
    Ability.SHARE_VIEW: "Share a saved view with everybody",
    Ability.EXPORT: "Export lists as files",
    Ability.REVEAL: "Reveal a value that was hidden, with a reason",
    Ability.ACKNOWLEDGE: "Acknowledge a notification",
    Ability.SEE_NOTIFICATIONS: "See notifications and who got them",
    Ability.EDIT_NOTIFICATIONS: "Change who is notified of what",
    Ability.SEE_AUDIT: "See and export the audit log",
    Ability.EDIT_REDACTION: "Change what is hidden before it is stored",
    Ability.EDIT_RETENTION: "Change how long bodies are kept",
    Ability.EDIT_WORKSPACE: "Change the settings of the workspace",
}


def can(role: Role, ability: Ability) -> bool:
    """Whether a role has an ability."""
    return role in ABILITIES[ability]


def roles_with(ability: Ability) -> tuple[Role, ...]:
    """The roles that have an ability, from the one that may least to the one that may most."""
    return tuple(role for role in Role if role in ABILITIES[ability])


def needs(ability: Ability) -> str:
    """Who can do it instead, as a sentence: "Needs the role Payments lead or Admin."."""
    words = [ROLE_WORDS[role] for role in roles_with(ability)]
    listed = words[-1] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
    return f"Needs the role {listed}."


def shown_name(user: User) -> str:
    """A person as others read them: their name with how to reach them, or the name they sign in
    with."""
    name, login = user.get_full_name(), user.email or user.get_username()
    return f"{name} ({login})" if name and name != login else login


def whom(workspace_id: int, ability: Ability) -> str:
    """Who of the workspace has an ability: "Ask: Ilse Mark (ilse@example.org).", or nobody."""
    roles = [str(role) for role in ABILITIES[ability]]
    found = Membership.objects.select_related("user").filter(
        workspace_id=workspace_id, role__in=roles, user__is_active=True
    )
    # One more than is named tells whether there are others; the role that may least is asked first.
    people = sorted(found.order_by("pk")[:50], key=lambda one: list(Role).index(Role(one.role)))
    if not people:
        return "Nobody in this workspace has it yet; an admin can give it."
    names = ", ".join(shown_name(one.user) for one in people[:NAMES_SHOWN_MAX])
    return f"Ask: {names}{' and others' if len(people) > NAMES_SHOWN_MAX else ''}."


def needs_and_whom(workspace_id: int, ability: Ability) -> str:
    """Why something is disabled, and who can do it instead."""
    return f"{needs(ability)} {whom(workspace_id, ability)}"


class DeskRequest(HttpRequest):
    """A request of a signed-in person inside one workspace; made by `membership_required`."""

    user: User
    htmx: HtmxDetails
    membership: Membership
    workspace: Workspace
    role: Role


def membership_required[**P](
    view: Callable[Concatenate[DeskRequest, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Lets only members in, and puts `membership`, `workspace` and `role` on the request.

    The workspace is the one that the session names, or else the person's first. It is never taken
    from the address: whoever is sent a link sees their own workspace or a page not found.
    """

    @wraps(view)
    def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        membership = current_membership(request)
        if membership is None:
            raise PermissionDenied(
                "You are not a member of any workspace yet. Ask an admin of your workspace to "
                "add you."
            )
        _note_seen(membership, datetime.now(UTC))
        desk_request = _as_desk_request(request, membership)
        return view(desk_request, *args, **kwargs)

    return guarded


def current_membership(request: HttpRequest) -> Membership | None:
    """The signed-in person's membership in the session's workspace, or their first one.

    All of theirs stay on the request, because every page lists them.
    """
    memberships = Membership.objects.select_related("workspace", "user").order_by(
        "workspace__name", "pk"
    )
    own = list(memberships.filter(user__pk=request.user.pk or 0))
    request.own_memberships = tuple(own)  # type: ignore[attr-defined]  # as _as_desk_request says
    chosen = request.session.get(WORKSPACE_IN_SESSION)
    return next((one for one in own if one.workspace_id == chosen), own[0] if own else None)


def require(request: DeskRequest, ability: Ability) -> None:
    """Raises PermissionDenied, with the roles that could, if this person's role has it not."""
    if not can(request.role, ability):
        reason = needs_and_whom(request.workspace.pk, ability)
        raise PermissionDenied(f"{reason} Your role here is {ROLE_WORDS[request.role]}.")


def _note_seen(membership: Membership, now: datetime) -> None:
    """Keeps when the person last opened a page of the workspace, to the minute."""
    seen = membership.last_seen_at
    if seen is None or now >= seen + SEEN_IS_NOTED_EVERY:
        Membership.objects.filter(pk=membership.pk).update(last_seen_at=now)


def _as_desk_request(request: HttpRequest, membership: Membership) -> DeskRequest:
    # The attributes are added to the request that the middleware made; its class stays as it is.
    request.membership = membership  # type: ignore[attr-defined]  # see above
    request.workspace = membership.workspace  # type: ignore[attr-defined]  # see above
    request.role = Role(membership.role)  # type: ignore[attr-defined]  # see above
    return request  # type: ignore[return-value]  # it now has all that DeskRequest promises
