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
class Page:
    """One page that the navigation leads to. `current` on the page itself and on those below it."""

    word: str
    address: str
    current: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the navigation: a page, or several that belong together. Its link leads to the
    first of those that the person may see, and so does `key`, typed after `g`."""

    word: str
    icon: str
    key: str
    pages: tuple[Page, ...]

    @property
    def address(self) -> str:
        return self.pages[0].address

    @property
    def current(self) -> bool:
        return any(page.current for page in self.pages)


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


# Word, icon and key, then the pages: word, url name, how the url names of the pages below it begin,
# and who may see it. A page that is not part of this installation is left out, and so is an entry
# without pages.
_NAVIGATION: Final = (
    (
        "Queue",
        "queue",
        "q",
        (("Queue", "queue", ("queue", "call", "decision", "bulk", "view"), Ability.SEE),),
    ),
    (
        "Turns",
        "turns",
        "u",
        (
            ("Turns", "turns", ("turn",), Ability.SEE),
            ("Events", "events", ("event",), Ability.SEE),
            ("Read a stream", "capture", ("capture",), Ability.SEE),
        ),
    ),
    ("Runs", "runs", "r", (("Runs", "runs", ("run",), Ability.SEE),)),
    (
        "Exposure",
        "exposure",
        "e",
        (
            ("Exposure", "exposure", ("exposure",), Ability.SEE),
            ("Trends", "trends", ("trend",), Ability.SEE),
            ("Weekly report", "weekly-report", ("weekly-report",), Ability.SEE),
        ),
    ),
    (
        "Duplicates",
        "duplicate",
        "d",
        (
            ("Duplicates", "duplicates", ("duplicate",), Ability.SEE),
            ("Ghosts", "ghosts", ("ghost",), Ability.SEE),
            ("Told otherwise", "told-otherwise", ("told-otherwise",), Ability.SEE),
        ),
    ),
    (
        "Tools",
        "tools",
        "t",
        (
            ("Tools", "tools", ("tool",), Ability.SEE),
            ("Double fire", "tools-double-fire", ("tools-double-fire",), Ability.SEE),
            ("Contracts", "tool-contracts", ("tool-contract",), Ability.SEE),
            ("Connections", "connections", ("connection",), Ability.EDIT_TOOLS),
            ("Customer texts", "customer-texts", ("customer-texts",), Ability.SEE),
        ),
    ),
    (
        "Messages",
        "download",
        "m",
        (
            ("Notifications", "notifications", ("notification",), Ability.SEE_NOTIFICATIONS),
            ("Webhooks", "webhooks", ("webhook",), Ability.SEE_WEBHOOKS),
            ("Outbox", "outbox", ("outbox",), Ability.SEE_WEBHOOKS),
        ),
    ),
    (
        "People",
        "people",
        "p",
        (
            ("People", "people", ("people", "person"), Ability.SEE),
            ("Second person", "second-person", ("second-person",), Ability.SEE),
            ("API tokens", "tokens", ("token",), Ability.SEE_TOKENS),
        ),
    ),
    (
        "Admin",
        "settings",
        "a",
        (
            ("Health", "health", ("health",), Ability.SEE),
            ("Audit log", "audit-log", ("audit-log",), Ability.SEE_AUDIT),
            ("Redaction", "redaction", ("redaction",), Ability.SEE),
            ("Retention", "retention", ("retention",), Ability.SEE),
            ("Workspace", "workspace-settings", ("workspace-settings",), Ability.SEE),
        ),
    ),
    ("Sandbox", "sandbox", "s", (("Sandbox", "sandbox", ("sandbox",), Ability.SEE),)),
)


def shell_of(request: HttpRequest | None) -> Shell:
    """The shell for a request, which may be nobody's: an error page has one too."""
    membership = _membership(request)
    signed_in = request is not None and membership is not None
    times = own.shown_times(request)
    return Shell(
        entries=_entries(request, Role(membership.role)) if membership and signed_in else (),
        membership=membership,
        memberships=getattr(request, "own_memberships", ()),
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
    # Where several fit, the longest beginning is meant: a tool's contract is a contract, no tool.
    begun = (begin for *_, pages in _NAVIGATION for _, _, below, _ in pages for begin in below)
    mine = max(filter(here.startswith, begun), key=len, default=None)
    found = []
    for word, icon, key, listed in _NAVIGATION:
        pages = tuple(
            Page(word=name, address=address, current=mine in below)
            for name, url_name, below, ability in listed
            if (role is None or can(role, ability)) and (address := _address(url_name))
        )
        if pages:
            found.append(Entry(word=word, icon=icon, key=key, pages=pages))
    return tuple(found)


def _address(url_name: str) -> str:
    try:
        return reverse(url_name)
    except NoReverseMatch:
        return ""


def _name(membership: Membership | None) -> str:
    if membership is None:
        return ""
    return membership.user.get_full_name() or membership.user.get_username()
