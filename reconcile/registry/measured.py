"""What traffic says about one tool, as plain facts; the lint and the audit page read nothing else.

The facts are kept as one JSON object for each tool, so that a page reads a row and not the record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final

DAYS: Final = 7
"""How far back traffic is looked at. Pages say it: "Calls 7 d"."""
RECENT_MAX: Final = 20
"""How many of the newest calls are named, and have their arguments read."""
NAMED_MAX: Final = 5
"""How many calls one remark rests on by name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One tool over the last seven days.

    `calls` are claims, `written` those claimed as a write, `unknown` those whose outcome was not
    known at some time; `announced` are calls that recorded streams named. Everything from
    `requests` to `repeated_inside` comes from imported records of providers and gateways:
    `keyed_requests` of `requests` carried a key; `missing`, `differing` and `changing` name calls
    whose requests carried none, another one than was granted, and several ones under one grant;
    `posts` name calls with a request whose method writes; `repeated_inside` counts requests that a
    library sent again by itself. Of `read` newest calls whose arguments could be read,
    `amount_missed` had no amount where the tool says it stands, `customer_missed` no customer, and
    `holes_missed` names the summary's fields that were in none of them.
    """

    calls: int = 0
    written: int = 0
    unknown: int = 0
    announced: int = 0
    first_at: datetime | None = None
    last_at: datetime | None = None
    recent: tuple[str, ...] = ()
    recent_unknown: tuple[str, ...] = ()
    requests: int = 0
    keyed_requests: int = 0
    missing: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    changing: tuple[str, ...] = ()
    posts: tuple[str, ...] = ()
    posts_seen: int = 0
    repeated_inside: int = 0
    read: int = 0
    amount_missed: int = 0
    customer_missed: int = 0
    holes_missed: tuple[str, ...] = ()
    tool_version: int = 0

    @property
    def seen(self) -> int:
        """Calls, by whichever record knows more of them: a read is announced, and never claimed."""
        return max(self.calls, self.announced)

    @property
    def unknown_percent(self) -> float | None:
        """The share of claims that were unknown at some time; None where there were none."""
        return 100 * self.unknown / self.calls if self.calls else None

    @property
    def unknown_words(self) -> str:
        """That share as it is written everywhere, "6.2 %"; empty where there is none."""
        share = self.unknown_percent
        return "" if share is None else f"{share:.1f} %"

    @property
    def key_on_every_request(self) -> bool:
        return self.requests > 0 and self.keyed_requests == self.requests


def counted(number: int, what: str) -> str:
    """ "1 call", "1,493 calls"."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


NOTHING: Final = Measured()
_MOMENTS: Final = ("first_at", "last_at")


def to_json(measured: Measured) -> dict[str, Any]:
    """The facts as JSON can hold them; `from_json` reads them back equal."""
    said = asdict(measured)
    return said | {name: said[name].isoformat() if said[name] else None for name in _MOMENTS}


def from_json(facts: Mapping[str, Any]) -> Measured:
    """The facts as they were kept. What an older version did not measure stays at nothing."""
    known = {one.name for one in fields(Measured)}
    said = {name: _value(name, value) for name, value in facts.items() if name in known}
    return Measured(**said)


def _value(name: str, value: Any) -> Any:
    if name in _MOMENTS:
        return datetime.fromisoformat(value) if value else None
    return tuple(value) if isinstance(value, list) else value
