"""When an id of version 7 was made, and the first id of an instant: lists go on by time, and claims
are found by their ids.

The first 48 bits are milliseconds since 1970 (RFC 9562, section 5.7); PostgreSQL keeps the fraction
of a millisecond in the 12 bits after the version (section 6.2, method 3).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTIONS: Final = 4096
_MILLISECONDS_MAX: Final = 2**48 - 1


def first_id(instant: datetime) -> UUID:
    """The lowest id that can have been made at this instant, to the microsecond, or later."""
    microseconds = max(0, (instant - _EPOCH) // timedelta(microseconds=1))
    milliseconds, rest = divmod(microseconds, 1000)
    fraction = -(-rest * _FRACTIONS // 1000)  # rounded up
    milliseconds = min(milliseconds, _MILLISECONDS_MAX)
    return UUID(int=(milliseconds << 80) | (7 << 76) | (fraction << 64) | (2 << 62))


def made_at(made: UUID) -> datetime:
    """When an id was made, cut to the microsecond."""
    fraction = (made.int >> 64) & (_FRACTIONS - 1)
    microseconds = (made.int >> 80) * 1000 + fraction * 1000 // _FRACTIONS
    return _EPOCH + timedelta(microseconds=microseconds)
