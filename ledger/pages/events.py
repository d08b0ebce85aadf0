"""What was sent from elsewhere and is not simply in the record: parked, in conflict, unreadable."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from effects.access import Ability, DeskRequest, can, membership_required, needs, require
from effects.core.vocabulary import ItemState
from ledger import ingest, items

STATE_WORDS: Final = {
    ItemState.RECEIVED: "Received, not applied yet",
    ItemState.APPLIED: "Applied",
    ItemState.RECORDED: "Kept, changes nothing",
    ItemState.PARKED: "Parked",
    ItemState.FAILED: "Failed, tried again",
    ItemState.CONFLICT: "Conflict: its id came before",
    ItemState.UNREADABLE: "Unreadable",
}
EMPTY: Final = {
    "parked": ("Nothing is parked", "Every event that arrived found what it speaks of."),
    "conflicts": ("No conflicts", "No id came twice with different content."),
    "unreadable": ("Nothing unreadable", "Every event that arrived could be read."),
    "failed": ("Nothing failed", "Every readable event was applied."),
    "recent": (
        "Nothing was sent yet",
        "Agents with a ledger of their own send events, with a token of scope ingest.",
    ),
}


@require_safe
@membership_required
def events(request: DeskRequest) -> HttpResponse:
    """The list; `?show=` is the tab, `?before=` the item to go on from."""
    tab = request.GET.get("show", "parked")
    if tab not in items.TABS:
        raise Http404("There is no such list.")
    counted = items.counts(request.workspace.pk)
    page = items.item_page(request.workspace.pk, tab, before=_number(request.GET.get("before")))
    title, text = EMPTY[tab]
    context = {
        "tabs": [
            {"word": word, "words": words, "count": counted.get(word), "current": word == tab}
            for word, (words, _) in items.TABS.items()
        ],
        "tab": tab,
        "rows": [{"item": row, "state": STATE_WORDS[ItemState(row.state)]} for row in page.rows],
        "older": f"?show={tab}&before={page.older}" if page.older else "",
        "newer": f"?show={tab}" if "before" in request.GET else "",
        "shown": f"{len(page.rows)} item{'' if len(page.rows) == 1 else 's'}",
        "empty_title": title,
        "empty_text": text,
    }
    return render(request, "ledger/events.html", context)


@require_safe
@membership_required
def event(request: DeskRequest, item_id: int) -> HttpResponse:
    """One item: what became of it, its bytes, and beside it what else came under its id."""
    found = _found(request, item_id)
    everything = request.GET.get("all") == "1"
    contents = sorted([found, *items.others_of(found)], key=lambda one: one.pk)
    context: dict[str, Any] = {
        "item": found,
        "state": STATE_WORDS[ItemState(found.state)],
        "contents": [
            {
                "item": one,
                "state": STATE_WORDS[ItemState(one.state)],
                "raw": items.raw_shown(one, everything=everything),
                "cut": one.raw_bytes > items.RAW_BYTES_SHOWN_MAX and not everything,
            }
            for one in contents
        ],
        "may_again": can(request.role, Ability.APPLY_AGAIN),
        "needs": needs(Ability.APPLY_AGAIN),
        "again": ItemState(found.state) in items.AGAIN,
    }
    return render(request, "ledger/event.html", context)


@require_safe
@membership_required
def body(request: DeskRequest, item_id: int) -> HttpResponse:
    """A part of a page: the beginning of an item's bytes, as text."""
    found = _found(request, item_id)
    context = {
        "item": found,
        "raw": items.raw_shown(found),
        "cut": found.raw_bytes > items.RAW_BYTES_SHOWN_MAX,
        "shown": items.RAW_BYTES_SHOWN_MAX,
    }
    return render(request, "ledger/_event_body.html", context)


@require_POST
@membership_required
def again(request: DeskRequest, item_id: int) -> HttpResponse:
    """Tries to apply an item once more."""
    require(request, Ability.APPLY_AGAIN)
    state = ingest.apply_again(request.workspace.pk, item_id)
    if state is None:
        raise Http404("There is no such item in this workspace.")
    done = state in ingest.DONE
    tell = messages.success if done else messages.warning
    tell(request, f"Tried again: {STATE_WORDS[state].lower()}.")
    return HttpResponseRedirect(reverse("event", args=[item_id]))


@require_safe
@membership_required
def raw(request: DeskRequest, item_id: int) -> HttpResponse:
    """The item's bytes, to keep: never shown by the browser as a page of ours."""
    found = _found(request, item_id)
    if found.raw is None:
        raise Http404("The bytes of this item were emptied.")
    response = HttpResponse(bytes(found.raw), content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="item-{item_id}.json"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _found(request: DeskRequest, item_id: int) -> items.IngestItem:
    found = items.item(request.workspace.pk, item_id)
    if found is None:
        raise Http404("There is no such item in this workspace.")
    return found


def _number(text: str | None) -> int | None:
    usable = text is not None and text.isascii() and text.isdecimal() and len(text) < 19
    return int(text) if text is not None and usable else None
