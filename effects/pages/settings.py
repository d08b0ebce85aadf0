"""A person's own settings of how pages look, kept in their session."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from django.http import HttpRequest

THEMES: Final = {"system": "System", "light": "Light", "dark": "Dark"}
TIMES: Final = {"relative": "Relative", "local": "Local", "utc": "UTC"}

THEME_IN_SESSION: Final = "theme"
TIMES_IN_SESSION: Final = "times"
ZONE_IN_SESSION: Final = "zone"

# Names outside these areas are historical ("GB-Eire") or technical ("Etc/GMT+5", signs reversed).
_AREAS: Final = (
    *("Africa/", "America/", "Antarctica/", "Asia/", "Atlantic/", "Australia/"),
    *("Europe/", "Indian/", "Pacific/"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTimes:
    """How instants are written for one person: as a distance, in their zone or in UTC."""

    word: str = "relative"
    zone: str = "UTC"

    @property
    def relative(self) -> bool:
        return self.word == "relative"

    def exact(self, instant: datetime) -> str:
        """Day, time to the second and zone: "29 Nov 2026 22:40:00 CET"."""
        return f"{self.local(instant):%-d %b %Y %H:%M:%S %Z}"

    def local(self, instant: datetime) -> datetime:
        """The instant in the person's zone. A sender's clock may stand on the first or the last day
        there is, where another zone would have no date for it: that stays in UTC."""
        try:
            return instant.astimezone(ZoneInfo(self.exact_zone))
        except OverflowError:
            return instant.astimezone(UTC)

    @property
    def exact_zone(self) -> str:
        """The zone that exact times are written in, by its IANA name."""
        return "UTC" if self.word == "utc" else self.zone

    @staticmethod
    def exact_utc(instant: datetime) -> str:
        return f"{instant.astimezone(UTC):%-d %b %Y %H:%M:%S} UTC"

    @staticmethod
    def iso(instant: datetime) -> str:
        """RFC 3339 in UTC, to the millisecond, as `<time datetime>` takes it."""
        return f"{instant.astimezone(UTC).isoformat(timespec='milliseconds')[:-6]}Z"

    @staticmethod
    def iso_exact(instant: datetime) -> str:
        """RFC 3339 in UTC with every digit that is kept, for programs."""
        return f"{instant.astimezone(UTC).isoformat(timespec='microseconds')[:-6]}Z"


@lru_cache(maxsize=1)
def zone_names() -> tuple[str, ...]:
    """The names that may be chosen, without the historical and the purely technical ones."""
    named = (name for name in available_timezones() if name.startswith(_AREAS))
    return ("UTC", *sorted(named))


def shown_times(request: HttpRequest | None) -> ShownTimes:
    """The person's setting, or relative times in UTC where nobody is signed in."""
    session = getattr(request, "session", {})
    word = session.get(TIMES_IN_SESSION)
    zone = session.get(ZONE_IN_SESSION)
    return ShownTimes(
        word=word if word in TIMES else "relative",
        zone=zone if zone in zone_names() else "UTC",
    )


def has_zone(request: HttpRequest) -> bool:
    return request.session.get(ZONE_IN_SESSION) in zone_names()


def theme(request: HttpRequest | None) -> str:
    word = getattr(request, "session", {}).get(THEME_IN_SESSION)
    return word if word in THEMES else "system"
