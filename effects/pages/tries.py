"""Wrong sign-ins are counted, so that guessing passwords takes longer than anybody lives.

Counted three ways, because one is not enough: by name and address (a person at a keyboard), by
address (one machine that tries many names) and by name (many machines that try one). The last
limit is far higher than the first, so that nobody can lock a colleague out by typing badly.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from django.core.cache import cache

WINDOW_SECONDS: Final = 300
"""How long wrong tries are remembered, counted from the first of them, and how long one waits."""
TRIES_MAX: Final = {"name and address": 5, "address": 50, "name": 100}


@dataclass(frozen=True, slots=True, kw_only=True)
class Who:
    name: str
    address: str


def wait_seconds(who: Who) -> int:
    """How long this name or address has to wait before its next try; 0 for not at all."""
    counts = cache.get_many([_key(kind, who) for kind in TRIES_MAX])
    over = any(counts.get(_key(kind, who), 0) >= limit for kind, limit in TRIES_MAX.items())
    return WINDOW_SECONDS if over else 0


def failed(who: Who) -> None:
    """Counts one wrong try."""
    for kind in TRIES_MAX:
        key = _key(kind, who)
        # `add` starts the count and its end only once, so trying on does not prolong the wait.
        cache.add(key, 0, WINDOW_SECONDS)
        try:
            cache.incr(key)
        except ValueError:  # It ended between the two calls.
            cache.add(key, 1, WINDOW_SECONDS)


def succeeded(who: Who) -> None:
    """Forgets the tries of this name at this address; those of others still count."""
    cache.delete(_key("name and address", who))


def _key(kind: str, who: Who) -> str:
    # A name is any text that somebody typed, perhaps a password in the wrong field.
    parts = {"name and address": (who.name, who.address), "address": (who.address,)}
    text = "\x00".join(part.strip().casefold() for part in parts.get(kind, (who.name,)))
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return f"tries:{kind.replace(' ', '-')}:{digest}"
