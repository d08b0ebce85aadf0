"""Which look-ups there are, and whether a registry entry describes one of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final

from reconcile.adapters import (
    checkout,
    gocardless,
    graphql,
    http,
    paypal,
    salesforce,
    sql,
    stripe,
)
from reconcile.adapters.base import Lookup
from reconcile.adapters.guard import guarded

_ADAPTERS: Final = (stripe, gocardless, paypal, checkout, salesforce, http, graphql, sql)
"""Every adapter's file; each exports its look-ups as `LOOKUPS`, in the order in which they are
offered."""

LOOKUPS: Final[Mapping[str, Lookup]] = {
    lookup.kind: guarded(lookup) for lookup in chain.from_iterable(a.LOOKUPS for a in _ADAPTERS)
}
"""By the word in `Tool.lookup_kind`; the empty word means that nobody can be asked."""


def fault_of(kind: str, config: Mapping[str, Any], *, connection_kind: str | None) -> str | None:
    """What is wrong with a tool's look-up, in one sentence for whoever enters it, or None."""
    if not kind:
        return None
    lookup = LOOKUPS.get(kind)
    if lookup is None:
        return f"{kind!r} is no look-up. Choose one of {', '.join(LOOKUPS)}, or none."
    if connection_kind != lookup.connection_kind:
        return f"{lookup.label} needs a connection of the kind {lookup.connection_kind}."
    try:
        lookup.read_config(config)
    except ValueError as error:
        return f"The look-up cannot be used: {error}."
    return None
