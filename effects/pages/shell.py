"""What surrounds every page: where one can go, in which workspace, and as whom."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse

from effects.access import ROLE_WORDS, Ability, can, current_membership
from effects.core.vocabulary import Role
from effects.models import Membership
from effects.pages import settings as own


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the navigation. `current` is true on the page itself and on pages below it."""

    word: str
    icon: str
    address: str
    current: bool

    @property
    def key(self) -> str:
        """The letter that leads there after `g`."""
        return self.word[0].lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    entries: tuple[Entry, ...]
    membership: Membership | None
    memberships: tuple[Membership, ...]
    name: str
    initials: str
    role: str
    theme: str
    times: str
    zone: str
    zone_is_chosen: bool


# Word, icon, url name, and how the url names of the pages below it begin. An entry whose page is
# not part of this installation is left out.
_NAVIGATION: Final = (
    ("Queue", "queue", "queue", ("queue", "call", "decision"), Ability.SEE),
    ("Events", "turns", "events", ("event", "turn"), Ability.SEE),
    ("Tools", "tools", "tools", ("tool",), Ability.SEE),
    ("Webhooks", "download", "webhooks", ("webhook",), Ability.SEE_WEBHOOKS),
    ("Outbox", "up", "outbox", ("outbox",), Ability.SEE_WEBHOOKS),
    ("People", "people", "people", ("people", "person"), Ability.SEE),
    ("Sandbox", "sandbox", "sandbox", ("sandbox",), Ability.SEE),
    ("Second person", "eye", "second-person", ("second-person",), Ability.SEE),
    ("API tokens", "key", "tokens", ("token",), Ability.SEE_TOKENS),
)


def shell_of(request: HttpRequest | None) -> Shell:
    """The shell for a request, which may be nobody's: an error page has one too."""
    membership = _membership(request)
    signed_in = request is not None and membership is not None
    times = own.shown_times(request)
    return Shell(
        entries=_entries(request, Role(membership.role)) if membership and signed_in else (),
        membership=membership,
        memberships=_memberships(membership),
        name=_name(membership),
        initials=initials(_name(membership)),
        role=ROLE_WORDS[Role(membership.role)] if membership else "",
        theme=own.theme(request),
        times=times.word,
        zone=times.zone,
        zone_is_chosen=signed_in and request is not None and own.has_zone(request),
    )


def _membership(request: HttpRequest | None) -> Membership | None:
    """The membership that the view found, or, on an error page that no view made, finds itself."""
    found: Membership | None = getattr(request, "membership", None)
    if found is not None or request is None:
        return found
    signed_in = getattr(getattr(request, "user", None), "is_authenticated", False)
    return current_membership(request) if signed_in else None


def first_address() -> str:
    """Where the desk begins: the first entry of the navigation that exists here."""
    entries = _entries(None)
    return entries[0].address if entries else reverse("settings")


def initials(name: str) -> str:
    """Up to two letters that stand for a person: "Ilse M." is IM, "jonas" is JO."""
    words = [word for word in name.replace("@", " ").replace(".", " ").split() if word]
    if not words:
        return "?"
    letters = words[0][0] + words[1][0] if len(words) > 1 else words[0][:2]
    return letters.upper()


def _entries(request: HttpRequest | None, role: Role | None = None) -> tuple[Entry, ...]:
    match = getattr(request, "resolver_match", None)
    here = (match.url_name or "") if match else ""
    found = []
    for word, icon, url_name, below, ability in _NAVIGATION:
        if role is not None and not can(role, ability):
            continue
        try:
            address = reverse(url_name)
        except NoReverseMatch:
            continue
        found.append(Entry(word=word, icon=icon, address=address, current=here.startswith(below)))
    return tuple(found)


def _memberships(membership: Membership | None) -> tuple[Membership, ...]:
    if membership is None:
        return ()
    own_ones = Membership.objects.select_related("workspace").filter(user_id=membership.user_id)
    return tuple(own_ones.order_by("workspace__name", "pk"))


def _name(membership: Membership | None) -> str:
    if membership is None:
        return ""
    return membership.user.get_full_name() or membership.user.get_username()
