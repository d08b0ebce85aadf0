"""The clocks of a soak: the ledger's and the provider's, moved forward together."""

from __future__ import annotations

import json
import time
import urllib.request
from typing import Any, Final

from django.db import connection as database

SECONDS_MAX: Final = 20

_SHIFTED: Final = """
CREATE TABLE soak_clock (shift interval NOT NULL);
INSERT INTO soak_clock VALUES ('0');
CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql VOLATILE
AS $$ SELECT clock_timestamp() + (SELECT shift FROM soak_clock) $$
"""
_MOVE: Final = "UPDATE soak_clock SET shift = shift + make_interval(secs => %s)"
_NEXT: Final = """
SELECT extract(epoch FROM min(at) - ledger_clock())::float8 FROM (
  SELECT min(at) AS at FROM ledger_due WHERE why IN ('lookup', 'clock')
  UNION ALL SELECT min(due_at) FROM reconcile_run WHERE due_at IS NOT NULL) due
"""


class Clocks:
    """For a database that is thrown away afterwards: production's clock is replaced in it."""

    def __init__(self, provider_url: str) -> None:
        self.provider_url = provider_url
        self.advanced_seconds = 0.0
        with database.cursor() as cursor:
            cursor.execute(_SHIFTED)

    def now(self) -> float:
        """Seconds since 1970 by the moved clocks, for whoever does not ask the database."""
        return time.time() + self.advanced_seconds

    def advance(self, seconds: float) -> None:
        """The provider's clock goes first, so that nothing is asked for that lies ahead of it."""
        say(self.provider_url, "/_sandbox/clock", {"advance_seconds": seconds})
        with database.cursor() as cursor:
            cursor.execute(_MOVE, [seconds])
        self.advanced_seconds += seconds

    def next_due_seconds(self) -> float | None:
        """How long until the product wants to do something by itself; None: never."""
        with database.cursor() as cursor:
            cursor.execute(_NEXT)
            row = cursor.fetchone()
        return None if row is None or row[0] is None else float(row[0])


def say(url: str, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    """One word to the provider's control, or a question where there is no body."""
    request = urllib.request.Request(  # noqa: S310 - on loopback.
        url + path,
        data=None if body is None else json.dumps(body).encode(),
        method="GET" if body is None else "POST",
    )
    with urllib.request.urlopen(request, timeout=SECONDS_MAX) as answer:  # noqa: S310 - on loopback.
        told: dict[str, Any] = json.loads(answer.read())
    return told
