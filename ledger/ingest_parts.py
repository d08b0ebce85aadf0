"""What every kind of message needs to be applied: its context, and what may come of it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from effects.core.messages import Message
from effects.core.vocabulary import ItemState
from ledger.functions import call
from ledger.ingest_reading import Item

WAITS_CHARACTERS_MAX: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """`refs`: names that are known from now on, so that whatever waits for them can be applied."""

    state: ItemState = ItemState.APPLIED
    reason: str | None = None
    says: str | None = None
    claim_id: UUID | None = None
    stream_id: int | None = None
    refs: tuple[bytes, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parked:
    """The parent that is waited for, by its reference and in words."""

    ref: bytes
    words: str


Outcomes = Applied | Parked


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """`exact` are digests of what was redacted in the item, as `ingest_redacting` made them."""

    workspace_id: int
    item_id: int
    item: Item
    exact: Mapping[str, Any] | None = None

    def ref(self, kind: str, *names: str) -> bytes:
        return reference(self.workspace_id, self.item.source, kind, *names)

    def data(self, message: Message, *names: str) -> dict[str, Any]:
        """What people are shown of a message: who said it, when by their clock, and `names`."""
        shown = {"elsewhere": self.item.source, "item": self.item_id}
        if self.item.said_at is not None:
            shown["said_at"] = self.item.said_at.isoformat()
        found = message.model_dump(mode="json", include=set(names), exclude_none=True)
        return shown | found


def reference(workspace_id: int, source: str, kind: str, *names: str) -> bytes:
    """The digest under which a name of a ledger kept elsewhere is known here."""
    parts = [str(workspace_id), source, kind, *names]
    written = b"".join(len(p.encode()).to_bytes(4, "big") + p.encode() for p in parts)
    return hashlib.sha256(written).digest()


def parked_unless_known(context: Context, words: str, ref: bytes) -> Parked | None:
    """Holds the name's lock, so that its parent cannot become known unseen meanwhile."""
    call("SELECT ledger_item_lock_v1(%s)", (ref,))
    if call("SELECT FROM ledger_foreignname WHERE ref = %s", (ref,)):
        return None
    return Parked(ref=ref, words=f"{words} of {context.item.source}"[:WAITS_CHARACTERS_MAX])
