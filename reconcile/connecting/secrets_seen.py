"""Which secrets the workers have: the desk cannot know, because only workers are given them."""

from __future__ import annotations

import os
from datetime import timedelta
from typing import Final

from django.db.models import Q

from effects.models import Connection
from effects.sealing import CannotOpen
from ledger import queries
from reconcile.connecting.saving import secret_of

NOTED_EVERY: Final = timedelta(minutes=1)
FRESH: Final = timedelta(minutes=10)
"""A secret that no worker has had for so long is taken for one that is not set."""


def note() -> None:
    """Writes down which connections' secrets are in the environment of this worker."""
    now = queries.clock()
    stale = Q(secret_seen_at=None) | Q(secret_seen_at__lt=now - NOTED_EVERY)
    named = Connection.objects.filter(stale).exclude(secret_name="")
    here = [pk for pk, name in named.values_list("pk", "secret_name") if os.environ.get(name)]
    if here:
        Connection.objects.filter(pk__in=here).update(secret_seen_at=now)


def is_set(connection: Connection) -> bool:
    """Whether the connection's secret is sealed and can be opened, or a worker had it lately."""
    if connection.secret_sealed is not None:
        return can_be_opened(connection)
    seen = connection.secret_seen_at
    return seen is not None and queries.clock() - seen <= FRESH


def can_be_opened(connection: Connection) -> bool:
    """Whether this installation has the key that the secret was sealed with."""
    try:
        secret_of(connection)
    except CannotOpen:
        return False
    return True
