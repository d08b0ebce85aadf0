"""What only pages about turns need: texts of agents made visible, sizes and digests."""

from __future__ import annotations

from typing import Final

from django import template

from ledger import items

register = template.Library()

DIGEST_CHARACTERS: Final = 12


@register.filter
def visible(text: object) -> str:
    """The text with every character that is not seen written out."""
    return items.visible(str(text))


@register.filter
def size(count: int) -> str:
    """A number of bytes in words: "512 bytes", "4.2 kB", "5.0 MB"; decimal units."""
    if count < 1000:
        return f"{count} byte{'' if count == 1 else 's'}"
    return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


@register.filter
def short_digest(digest: bytes | memoryview) -> str:
    """The beginning of a digest as people compare it."""
    return bytes(digest).hex()[:DIGEST_CHARACTERS]
