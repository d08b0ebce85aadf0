"""The names by which an agent may speak of a claim, told apart by their shape alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from effects.core.identity import digest, read_marker
from effects.core.problems import ClaimNotFound

__all__ = ["Reference", "as_claim_id", "not_found", "read_reference"]

CHARACTERS_SHOWN_MAX: Final = 80

_FORWARDED_KEY: Final = re.compile(r"(cf1-[0-9a-f]{32})(?:-[1-9][0-9]{0,8})?")
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """What a text may name: a claim's id, a forwarded key without its generation, and a key that a
    caller brought. None: it has not that shape."""

    claim_id: UUID | None
    key: str | None
    caller_key: str | None

    def caller(self, workspace_id: int) -> bytes | None:
        """The caller's key as the workspace's claims keep it."""
        return None if self.caller_key is None else digest("caller", workspace_id, self.caller_key)


def read_reference(text: str) -> Reference:
    """Every claim that the text could mean.

    A claim's id may also be written as its marker. Any text that a database can store may be a key
    that a caller brought, whatever it looks like.
    """
    marked = read_marker(text)
    forwarded = _FORWARDED_KEY.fullmatch(text)
    return Reference(
        claim_id=marked[0] if marked is not None else as_claim_id(text),
        key=forwarded[1] if forwarded else None,
        caller_key=text if _UNSTORABLE.search(text) is None else None,
    )


def as_claim_id(text: str) -> UUID | None:
    """The id that the text is, or None."""
    try:
        return UUID(text)
    except ValueError:
        return None


def not_found(text: str) -> ClaimNotFound:
    """The same for a claim of nobody and for another workspace's."""
    shown = ascii(
        text if len(text) <= CHARACTERS_SHOWN_MAX else text[:CHARACTERS_SHOWN_MAX] + "..."
    )
    return ClaimNotFound(
        f"No claim {shown} is in this workspace. That proves nothing about the world: ask with the "
        "id or the key that a claim's answer gave."
    )
