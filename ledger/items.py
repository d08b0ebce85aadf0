"""What was sent to the ledger from elsewhere, as people look at it: lists, one item, its bytes."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Count

from effects.core.vocabulary import ItemState
from ledger.models import IngestItem

__all__ = ["IngestItem"]

ITEMS_PER_PAGE: Final = 50
RAW_BYTES_SHOWN_MAX: Final = 16_000
_KEPT: Final = frozenset("\n\t")
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Co", "Cn"})

TABS: Final = {
    "parked": ("Parked", (ItemState.PARKED,)),
    "conflicts": ("Conflicts", (ItemState.CONFLICT,)),
    "unreadable": ("Unreadable", (ItemState.UNREADABLE,)),
    "failed": ("Failed", (ItemState.FAILED, ItemState.RECEIVED)),
    "recent": ("Recent", tuple(ItemState)),
}
AGAIN: Final = frozenset({ItemState.PARKED, ItemState.FAILED, ItemState.RECEIVED})
"""States from which a person may have an item applied again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemPage:
    rows: tuple[IngestItem, ...]
    older: int | None


def item_page(workspace_id: int, tab: str, *, before: int | None) -> ItemPage:
    """The newest items under a tab, without their bytes; `before` is the id to go on from."""
    _, states = TABS[tab]
    found = IngestItem.objects.filter(workspace_id=workspace_id, state__in=states).defer("raw")
    if before is not None:
        found = found.filter(pk__lt=before)
    rows = list(found.order_by("-pk")[: ITEMS_PER_PAGE + 1])
    more = len(rows) > ITEMS_PER_PAGE
    rows = rows[:ITEMS_PER_PAGE]
    return ItemPage(rows=tuple(rows), older=rows[-1].pk if more else None)


def items_of_streams(workspace_id: int, streams: Sequence[int], *, after: int) -> ItemPage:
    """The items that told of these responses, oldest first, without their bytes; `older` is then
    the id to go on from."""
    found = IngestItem.objects.filter(workspace_id=workspace_id, stream_id__in=streams)
    rows = list(found.filter(pk__gt=after).defer("raw").order_by("pk")[: ITEMS_PER_PAGE + 1])
    more = len(rows) > ITEMS_PER_PAGE
    rows = rows[:ITEMS_PER_PAGE]
    return ItemPage(rows=tuple(rows), older=rows[-1].pk if more else None)


def counts(workspace_id: int) -> dict[str, int]:
    """How many items stand under each tab that may need somebody."""
    # By the index of these states: everything that went well is not even looked at.
    found = IngestItem.objects.filter(
        workspace_id=workspace_id,
        state__in=[one for one in ItemState if one not in {ItemState.APPLIED, ItemState.RECORDED}],
    )
    by_state = dict(found.values_list("state").annotate(many=Count("pk")))
    return {
        tab: sum(by_state.get(state, 0) for state in states)
        for tab, (_, states) in TABS.items()
        if tab != "recent"
    }


def item(workspace_id: int, item_id: int) -> IngestItem | None:
    return IngestItem.objects.filter(workspace_id=workspace_id, pk=item_id).first()


def others_of(found: IngestItem) -> list[IngestItem]:
    """The other contents that came under the same source and id, oldest first."""
    if not found.source:
        return []
    same = IngestItem.objects.filter(
        workspace_id=found.workspace_id, source=found.source, event_id=found.event_id
    )
    return list(same.exclude(pk=found.pk).order_by("pk")[:ITEMS_PER_PAGE])


def raw_shown(found: IngestItem, *, everything: bool = False) -> str | None:
    """The beginning of an item's bytes, or all of them, every byte and character that is not seen
    written out."""
    if found.raw is None:
        return None
    shown = bytes(found.raw) if everything else bytes(found.raw)[:RAW_BYTES_SHOWN_MAX]
    text = shown.decode("utf-8", "backslashreplace")
    return visible(text)


def visible(text: str) -> str:
    """The text with every character that is not seen written out."""
    return "".join(f"[U+{ord(c):04X}]" if is_unseen(c) else c for c in text)


def visible_json(text: str) -> str:
    """JSON text with every character that is not seen as its escape: the same value."""
    return "".join(json.dumps(c)[1:-1] if is_unseen(c) else c for c in text)


def is_unseen(character: str) -> bool:
    """Whether nothing of a character is seen, or it turns what stands around it."""
    return unicodedata.category(character) in _UNSEEN and character not in _KEPT
