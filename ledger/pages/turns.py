"""Turns: the newest of the workspace, those of a conversation, and one turn with all that is known
of it: drawn, in words, and as it was received."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from effects.models import Workspace
from effects.pages.settings import shown_times
from effects.trace_links import trace_link
from ledger import items, queries, turns
from ledger.items import visible
from ledger.paths import conversation_address, turn_address
from ledger.turn_lanes import Placed
from ledger.turn_parts import listing
from ledger.turn_parts.calls import GoesBack, TurnCall
from ledger.turn_parts.comparing import Retried, retried_of
from ledger.turn_parts.drawing import Drawn, drawn_of
from ledger.turn_parts.lines import TurnLine, lines_of
from ledger.turn_parts.loading import CLAIMS_MAX, TurnFacts, load
from ledger.turn_parts.results import WrittenBack, written_back
from ledger.turn_parts.words import ANSWERS, heading_of, recovery_of_turn
from ledger.turns import TurnStream

DIGITS_MAX: Final = 10
NO_TURN: Final = "none"
LINES_PER_PAGE: Final = 250
TABS: Final = {"timeline": "Timeline", "responses": "Responses", "raw": "Raw"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The address of a turn's page, and what is asked of it in the query string."""

    base: str
    asked: dict[str, str]

    def with_(self, **changes: object) -> str:
        """The same page with other questions; None takes one away."""
        asked = {**self.asked, **{n: v for n, v in changes.items() if v is not None}}
        kept = {n: v for n, v in asked.items() if n not in changes or changes[n] is not None}
        if not kept:
            return self.base
        return f"{self.base}{'&' if '?' in self.base else '?'}{urlencode(kept)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRow:
    """A call with its addresses: of what goes back for it, and of its traces elsewhere."""

    call: TurnCall
    chosen: bool
    orphan_address: str
    traces: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineRow:
    line: TurnLine
    offset: str
    no_return: bool


@require_safe
@membership_required
def turn(request: DeskRequest, conversation: str, index: int) -> HttpResponse:
    """One turn's page."""
    around = {
        "earlier": turn_address(conversation, index - 1) if index else "",
        "later": turn_address(conversation, index + 1),
    }
    return _page(request, conversation, index, around)


@require_safe
@membership_required
def conversation(request: DeskRequest) -> HttpResponse:
    """The newest turns; of `?conversation=` its turns; with `?turn=` that turn itself, and with
    `none` the calls that name no turn."""
    name, wanted = request.GET.get("conversation", ""), request.GET.get("turn", "")
    index = _number(wanted)
    if name and index is not None:
        answer = turn(request, name, index)
        assert isinstance(answer, HttpResponse)
        return answer
    if name and wanted == NO_TURN:
        return _page(request, name, None, {})
    return _of_conversation(request, name) if name else _newest(request)


# Lists


def _newest(request: DeskRequest) -> HttpResponse:
    shown = request.GET.get("show", "")
    kind = listing.Filter(shown) if shown in list(listing.Filter) else listing.Filter.ALL
    before = _instant(request.GET.get("before", ""))
    now = queries.clock()
    page = listing.newest(request.workspace.pk, kind, before=before, now=now)
    here = Place(base=reverse("turns"), asked={"show": str(kind)})
    older = here.with_(before=page.older.astimezone(UTC).isoformat()) if page.older else ""
    context = {
        "now": now,
        "kind": kind,
        "tabs": [(one, one.words, here.with_(show=one)) for one in listing.Filter],
        "page": page,
        "rows": _addressed(page.rows),
        "older": older,
        "newer": here.with_() if before else "",
    }
    return render(request, "ledger/turns.html", context)


def _of_conversation(request: DeskRequest, name: str) -> HttpResponse:
    first = _number(request.GET.get("from", "0")) or 0
    now = queries.clock()
    page = listing.turns_of(request.workspace.pk, name, first, now=now)
    here = conversation_address(name)
    step = listing.CONVERSATION_TURNS_PER_PAGE
    context = {
        "now": now,
        "name": visible(name),
        "asked": name,
        "page": page,
        "rows": _addressed(page.rows),
        "turnless": 0 if "\x00" in name else listing.turnless(request.workspace.pk, name).count(),
        "turnless_address": f"{here}&turn={NO_TURN}",
        "first": first,
        "last": first + step - 1,
        "next": f"{here}&from={first + step}",
        "trace": trace_link(request.workspace, conversation=name),
    }
    return render(request, "ledger/conversation.html", context)


def _addressed(rows: Sequence[listing.TurnRow]) -> list[dict[str, Any]]:
    return [
        {
            "row": row,
            "name": visible(row.conversation),
            "address": turn_address(row.conversation, row.index),
            "conversation": conversation_address(row.conversation),
        }
        for row in rows
    ]


# One turn


def _page(
    request: DeskRequest, conversation: str, index: int | None, around: dict[str, str]
) -> HttpResponse:
    facts = load(request.workspace.pk, conversation, index, now=queries.clock())
    lines = lines_of(facts)
    first = min(_number(request.GET.get("from", "0")) or 0, max(len(lines) - 1, 0))
    first -= first % LINES_PER_PAGE
    found = turns.turn_of(facts, lines, lines_from=first, lines_max=LINES_PER_PAGE)
    tab = request.GET.get("tab", "")
    place = _place(request, conversation, index)
    context: dict[str, Any] = {
        "now": facts.now,
        "turn": found,
        "claims_max": CLAIMS_MAX,
        "name": visible(conversation),
        "every": conversation_address(conversation),
        "tab": tab if tab in TABS else "timeline",
        "tabs": [(word, words, place.with_(tab=word)) for word, words in TABS.items()],
        "heading": heading_of(found),
        "here": place.with_(),
        "trace": trace_link(request.workspace, conversation=conversation, turn=index),
        **around,
    }
    if context["tab"] == "raw":
        context |= _raw(request, facts, place)
    elif context["tab"] == "responses":
        context["retried"] = _retried(facts, found.streams)
    else:
        context |= _timeline(request, facts, found, lines, place)
    return render(request, "ledger/turn.html", context)


def _place(request: DeskRequest, conversation: str, index: int | None) -> Place:
    base = f"{conversation_address(conversation)}&turn={NO_TURN}"
    if index is not None:
        base = turn_address(conversation, index)
    asked = {name: request.GET[name] for name in ("idle", "all", "orphan") if request.GET.get(name)}
    return Place(base=base, asked=asked)


def _timeline(
    request: DeskRequest,
    facts: TurnFacts,
    found: turns.Turn,
    lines: Sequence[TurnLine],
    place: Place,
) -> dict[str, Any]:
    idle, everything = bool(place.asked.get("idle")), bool(place.asked.get("all"))
    drawn = drawn_of(facts, shown_times(request), idle=idle, everything=everything)
    chosen = _chosen(found.calls, place.asked.get("orphan", ""))
    return {
        "drawn": drawn,
        "marks": _linked(drawn, lines, found.lines_from, place),
        "idle": idle,
        "idle_switch": place.with_(idle=None if idle else 1),
        "all_switch": place.with_(all=None if everything else 1),
        "everything": everything,
        "rows": _call_rows(request.workspace, facts, found.calls, chosen, place),
        "orphans": sum(call.orphan for call in found.calls),
        "back": _written_back(request.workspace.pk, chosen),
        "recovery": recovery_of_turn(found),
        "answers": ANSWERS,
        "lines": _line_rows(found.lines, drawn),
        "older": place.with_(**{"from": found.lines_from + LINES_PER_PAGE})
        if found.lines_from + LINES_PER_PAGE < found.lines_total
        else "",
        "newer": place.with_(**{"from": found.lines_from - LINES_PER_PAGE})
        if found.lines_from
        else "",
    }


def _linked(
    drawn: Drawn | None, lines: Sequence[TurnLine], first: int, place: Place
) -> list[tuple[Placed, str]]:
    """Everything that is drawn, with where it stands in the table, also on another page of it."""
    if drawn is None:
        return []
    pages = {line.key: number - number % LINES_PER_PAGE for number, line in enumerate(lines)}
    found = []
    for placed in drawn.drawing.marks:
        page = pages.get(placed.mark.href.removeprefix("#"), first)
        before = "" if page == first else place.with_(**{"from": page})
        found.append((placed, f"{before}{placed.mark.href}"))
    return found


def _chosen(calls: Sequence[TurnCall], wanted: str) -> TurnCall | None:
    """The call of which is shown what goes back: the one that is asked for, or the first
    of those of which most is known."""
    with_result = [(call, call.goes_back) for call in calls if call.goes_back is not None]
    asked = next((call for call, _ in with_result if str(call.announced) == wanted), None)
    telling = sorted(with_result, key=lambda one: list(GoesBack).index(one[1]))
    return asked or next((call for call, _ in telling), None)


def _call_rows(
    workspace: Workspace,
    facts: TurnFacts,
    calls: Sequence[TurnCall],
    chosen: TurnCall | None,
    place: Place,
) -> list[CallRow]:
    rows = []
    for call in calls:
        link = partial(
            trace_link,
            workspace,
            conversation=facts.conversation,
            turn=facts.index,
            call_id=call.call_id or "",
        )
        links = [(one, link(trace_id=one)) for one in call.traces]
        if not links and call.call_id and "{call_id}" in workspace.trace_url:
            links = [("", link())]
        rows.append(
            CallRow(
                call=call,
                chosen=chosen is call,
                orphan_address=f"{place.with_(orphan=call.announced)}#back"
                if call.goes_back is not None
                else "",
                traces=tuple(links),
            )
        )
    return rows


def _written_back(workspace_id: int, chosen: TurnCall | None) -> WrittenBack | None:
    return None if chosen is None else written_back(workspace_id, chosen)


def _line_rows(lines: Sequence[TurnLine], drawn: Drawn | None) -> list[LineRow]:
    rows, at = [], drawn.no_return if drawn else None
    for line in lines:
        crossed = at is not None and line.at >= at
        rows.append(
            LineRow(line=line, offset=drawn.offset(line.at) if drawn else "", no_return=crossed)
        )
        at = None if crossed else at
    return rows


def _retried(facts: TurnFacts, streams: Sequence[TurnStream]) -> Sequence[Retried]:
    return retried_of(facts) if len(streams) > 1 else ()


def _raw(request: DeskRequest, facts: TurnFacts, place: Place) -> dict[str, Any]:
    after = _number(request.GET.get("after", "0")) or 0
    streams = [stream.pk for stream in facts.streams]
    page = items.items_of_streams(request.workspace.pk, streams, after=after)
    here = Place(base=place.base, asked={**place.asked, "tab": "raw"})
    return {
        "items": page.rows,
        "raw_bytes": sum(item.raw_bytes for item in page.rows),
        "older": here.with_(after=page.older) if page.older else "",
        "newer": here.with_() if after else "",
    }


def _number(text: str) -> int | None:
    usable = text.isascii() and text.isdecimal() and len(text) < DIGITS_MAX
    return int(text) if usable else None


def _instant(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError:
        return None
    return instant if instant.tzinfo is not None else None
