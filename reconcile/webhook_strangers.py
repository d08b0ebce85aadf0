"""Events about an effect that no call accounts for: kept among the ghosts."""

from __future__ import annotations

from effects.core.identity import MARKER_METADATA_KEY, read_marker
from effects.models import Connection, Tool
from ledger import queries
from reconcile.adapters.stripe_events import StripeEvent
from reconcile.adapters.stripe_kinds import KIND_OF_LOOKUP, Kind
from reconcile.adapters.stripe_objects import stranger_of
from reconcile.ghosts import noting


def note(connection: Connection, event: StripeEvent) -> None:
    """The object of an event that matched no call for as long as it was tried.

    Only kinds of objects that a tool of this connection makes are an effect that a call could have
    had; the rest of what an account does is nobody's ghost.
    """
    kind = _kind_of(connection, event)
    if kind is None or not event.object_id:
        return
    text = str(event.metadata.get(MARKER_METADATA_KEY))
    marker = text if read_marker(text) is not None else ""
    item = {"currency": "", **event.object, "id": event.object_id}
    noting.note_strangers(connection, [stranger_of(kind, item, marker=marker)], queries.clock())


def _kind_of(connection: Connection, event: StripeEvent) -> Kind | None:
    asked = set(Tool.objects.filter(connection=connection).values_list("lookup_kind", flat=True))
    kinds = (kind for word, kind in KIND_OF_LOOKUP.items() if word in asked)
    return next((kind for kind in kinds if kind.object == event.noun), None)
