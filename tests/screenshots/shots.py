"""The table of pictures: a page in a state, as whom, and what is done there before."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from django.urls import NoReverseMatch, reverse
from playwright.sync_api import Page

from tests.screenshots import scenes
from tests.screenshots.scenes import CONVERSATION, Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Shot:
    """One picture. `who` "" is signed out; `before` changes the data, `steps` acts on the page."""

    name: str
    address: Callable[[Scene], str]
    who: str = "ada"
    status: int = 200
    before: Callable[[Scene], None] | None = None
    steps: Callable[[Page], None] | None = None


def named(beginnings: Sequence[str]) -> list[Shot]:
    """The shots whose names begin so, all where none is said. Raises SystemExit for a name that
    none has."""
    every = [*SHOTS, *_plain()]
    names = {one.name for one in every}
    assert len(names) == len(every), "two shots of one name overwrite each other"
    for word in beginnings:
        if not any(name.startswith(word) for name in names):
            raise SystemExit(f"No picture is called {word}. There are: {', '.join(sorted(names))}")
    return [one for one in every if not beginnings or one.name.startswith(tuple(beginnings))]


def _at(address: str) -> Callable[[Scene], str]:
    return lambda _: address


def _call(name: str, query: str = "") -> Callable[[Scene], str]:
    return lambda scene: f"/calls/{scene.calls[name]}{query}"


def _turn(query: str) -> Callable[[Scene], str]:
    return lambda _: f"/turns/?conversation={CONVERSATION}{query}"


def _select_rows(page: Page) -> None:
    boxes = page.locator('tr[data-row] input[type="checkbox"]')
    for number in range(3):
        boxes.nth(number).check()


def _sheet(page: Page) -> None:
    page.locator("#main").focus()
    page.keyboard.press("?")


SHOTS: Final = (
    Shot(name="login", who="", address=_at("/login/")),
    Shot(name="queue", who="ana", address=_at("/queue/")),
    Shot(name="queue-viewer", who="vera", address=_at("/queue/")),
    Shot(name="queue-bulk-bar", who="lea", address=_at("/queue/"), steps=_select_rows),
    Shot(name="queue-empty", who="quinn", address=_at("/queue/")),
    Shot(name="queue-nothing-found", who="ana", address=_at("/queue/?q=pi_nowhere")),
    Shot(name="queue-search-amount", who="ana", address=_at("/queue/?q=149.00")),
    Shot(name="queue-all", who="ana", address=_at("/queue/?view=all")),
    Shot(name="queue-resolved", who="ana", address=_at("/queue/?view=resolved")),
    Shot(name="queue-keys", who="ana", address=_at("/queue/"), steps=_sheet),
    *(
        Shot(name=f"call-{state.replace('_', '-')}", who="lea", address=_call(state))
        for state in (
            *("unknown", "late", "closing", "gift", "twice", "released", "closed", "completed"),
            *("found", "not_executed", "in_flight", "snoozed", "transfer"),
        )
    ),
    Shot(name="call-held", who="lea", address=_call("held"), before=scenes.hold),
    Shot(name="call-viewer", who="vera", address=_call("unknown")),
    Shot(name="call-dialog-release", who="lea", address=_call("closing", "?dialog=release_same")),
    Shot(name="call-dialog-release-new", who="lea", address=_call("gift", "?dialog=release_new")),
    Shot(name="turns-none", who="tomas", address=_at("/turns/")),
    Shot(name="conversation", who="tomas", address=_turn("")),
    Shot(name="turn-cut", who="tomas", address=_turn("&turn=3")),
    Shot(name="turn-whole", who="tomas", address=_turn("&turn=1")),
    Shot(name="turn-empty", who="tomas", address=_turn("&turn=9")),
    Shot(name="run", who="lea", address=lambda scene: f"/runs/{scene.ids['run']}/"),
    Shot(name="runs-start", who="lea", address=_at("/runs/?dialog=run")),
    Shot(name="tool", address=lambda scene: f"/tools/{scene.tools['charge'].pk}/"),
    Shot(name="tool-unkeyed", address=lambda scene: f"/tools/{scene.tools['gift'].pk}/"),
    Shot(name="tool-seen", address=lambda scene: f"/tools/{scene.tools['seen'].pk}/"),
    Shot(
        name="tool-viewer", who="vera", address=lambda scene: f"/tools/{scene.tools['charge'].pk}/"
    ),
    Shot(
        name="notification",
        who="lea",
        address=lambda scene: f"/notifications/{scene.ids['notification']}/",
    ),
    Shot(name="notification-rule", who="lea", address=_at("/notifications/rules/new/")),
    Shot(name="no-such-page", status=404, address=_at("/nowhere/")),
)

PLAIN: Final = (
    *("runs", "duplicates", "duplicate-constants", "ghosts", "told-otherwise", "tools", "tool-new"),
    *("tool-contracts", "connections", "connection-new", "customer-texts", "webhooks", "outbox"),
    *("events", "people", "people-add", "tokens", "settings", "password", "second-person"),
    *("bulks", "sandbox", "api-docs"),
    # Pages that this issue brings; each is taken as soon as its address exists.
    *("capture", "exposure", "trends", "weekly-report", "tools-double-fire", "notifications"),
    *("health", "audit-log", "redaction", "retention", "workspace-settings", "views"),
)
"""Pages that need no state of their own, by the name of their address."""


def _plain() -> list[Shot]:
    found = []
    for name in PLAIN:
        try:
            address = reverse(name)
        except NoReverseMatch:
            continue
        found.append(Shot(name=name, address=_at(address)))
    return found
