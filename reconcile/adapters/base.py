"""What an adapter is asked, and what it answers: sightings, never verdicts.

A `Probe` holds everything that a question needs, so an adapter reads no database. A `Look` is one
dated answer with how it was come by: the route, how late that route may be, the interval that was
read, in which account and mode, whether all pages were read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from pydantic import ValidationError

from effects.core.vocabulary import SightingWord
from effects.money import Money
from reconcile.adapters.door import NoAnswer, NotAllowed, Way

RAW_BYTES_MAX: Final = 256 * 1024
"""Most bytes of a raw answer that are kept as evidence; a longer one is cut, and says so."""
CLOCK_SKEW_SECONDS: Final = 300
"""How far a provider's clock may differ from ours without an object falling out of the interval."""
LITERAL_CHARACTERS_MAX: Final = 100
"""How much of a value that nobody mapped is quoted."""


class Delay(StrEnum):
    """How late a route may show what has happened."""

    NONE = "none"  # what is committed is listed at once
    EVENTUAL = "eventual"  # it will be listed, nobody says when
    UNKNOWN = "unknown"


class MatchedBy(StrEnum):
    """By what the answer was matched to the claim."""

    MARKER = "marker"  # only a request that carried it can be found
    REFERENCE = "reference"  # the provider requires it in every request


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLife:
    """One generation of the claim's key. `open`: some attempt with it may still have happened."""

    generation: int
    key: str
    marker: str
    open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One account at one provider: `mode` is "live" or "test", `account` empty where not given."""

    way: Way
    base_url: str
    mode: str
    account: str = ""
    secret: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """One question about one claim.

    `since` is the first grant, by our clock. `arguments` is the decoded arguments object, or None
    where it was emptied. `amount` and `customer` are what the tool says its arguments ask for.
    `unmarked` says that some open attempt is not known to have carried our marker. `settled_from`
    is the instant from which on no provider still works on the last possible send, None where no
    attempt is open. `named` are the provider objects that attempts named in their reports.
    `api_version` is the provider's version in which the claim was asked about before, if it was.
    """

    claim_id: UUID
    generations: tuple[KeyLife, ...]
    since: datetime
    asked_at: datetime
    place: Place
    config: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] | None = None
    amount: Money | None = None
    customer: str | None = None
    unmarked: bool = False
    settled_from: datetime | None = None
    named: tuple[str, ...] = ()
    api_version: str = ""

    @property
    def markers(self) -> dict[str, KeyLife]:
        return {life.marker: life for life in self.generations}

    @property
    def keys(self) -> dict[str, KeyLife]:
        return {life.key: life for life in self.generations}


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """One provider answer.

    `objects` are the effects that carry our reference; `others` are objects that do, and are none
    (declined, or of a key whose refusal is known). `status` is the provider's own word.
    `right_place` is False where the account or mode could not be confirmed to be the registered
    one. `partly` says that what was asked for has begun and is not whole (money held, not taken).
    `api_version` is the provider's version that was asked for, empty where there is none.
    `reads` is how many requests it took: providers allow an account only so many.
    """

    word: SightingWord
    why: str
    route: str
    asked_at: datetime
    query: str = ""
    delay_class: Delay = Delay.UNKNOWN
    matched_by: MatchedBy = MatchedBy.MARKER
    interval_from: datetime | None = None
    interval_to: datetime | None = None
    account: str = ""
    mode: str = ""
    right_place: bool = True
    pages_complete: bool = False
    partly: bool = False
    status: str = ""
    objects: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    requested: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)
    request_id: str = ""
    api_version: str = ""
    http_status: int | None = None
    retry_after_seconds: int | None = None
    reads: int = 0
    raw: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A provider object that a scan met and no probe of it asked about.

    `marker` is our marker if it carries one, else empty. `noun` names one such object
    ("PaymentIntent"). `amount` is as people read it, empty where there is none.
    """

    id: str
    noun: str
    created_at: datetime | None = None
    status: str = ""
    marker: str = ""
    amount: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """One reading that answered many probes: `looks` by claim id, one for each probe.

    `reads` is how many requests the whole reading took; the looks in it carry 0, because a scan is
    counted once. `strangers` are the objects on the pages that belong to no probe,
    `strangers_left_off` how many more there were than a scan names.
    """

    looks: Mapping[UUID, Look]
    reads: int = 0
    strangers: tuple[Stranger, ...] = ()
    strangers_left_off: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """One way that a look-up may take, for the page that explains it and for tests.

    `name` is how `Look.route` begins when the look was come by that way. `proves_absence`: a whole
    reading that shows nothing can be proof; `delay_class` and `matched_by` are those of its looks,
    `delay_class` None where the tool's own configuration says it.
    """

    name: str
    delay_class: Delay | None
    proves_absence: bool
    matched_by: MatchedBy


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """One way of asking one kind of connection; an adapter file exports one or more of them.

    `kind` is the word in `Tool.lookup_kind`, `label` its name for people; `kind` begins with the
    connection's kind, then a dot where it says more ("http.list"). `read_config` raises
    `ValueError` for a configuration that cannot be used. `look` answers one probe and
    never raises for anything that a provider does. `look_many` answers probes of one place and one
    configuration with one shared reading, None where this route cannot be shared. `contract` names
    the provider contract that the look-up belongs to, `routes` the ways it may take, first the one
    that it tries first.
    """

    kind: str
    label: str
    connection_kind: str
    look: Callable[[Probe], Look]
    read_config: Callable[[Mapping[str, Any]], object]
    look_many: Callable[[Sequence[Probe]], Scan] | None = None
    contract: str = "generic"
    routes: tuple[Route, ...] = ()


def looked_in_vain(probe: Probe, error: NoAnswer | NotAllowed, *, route: str, query: str) -> Look:
    """The look that found no answer at all."""
    refused = isinstance(error, NotAllowed)
    return Look(
        word=SightingWord.MISCONFIGURED if refused else SightingWord.LOOKUP_FAILED,
        why=str(error),
        route=route,
        query=query,
        asked_at=probe.asked_at,
        account=probe.place.account,
        mode=probe.place.mode,
    )


def literal(value: object) -> str:
    """A value that nobody expected, as it may be quoted: short, printable, in ASCII."""
    text = ascii(value)
    return text if len(text) <= LITERAL_CHARACTERS_MAX else f"{text[:LITERAL_CHARACTERS_MAX]}..."


def kept(raw: bytes) -> bytes:
    """A raw answer as it is stored: whole, or cut with a last line that says so."""
    if len(raw) <= RAW_BYTES_MAX:
        return raw
    return raw[:RAW_BYTES_MAX] + f"\n[cut: {len(raw)} bytes in all]".encode()


MAPPABLE: Final = frozenset(
    {
        SightingWord.FOUND,
        SightingWord.FOUND_DIFFERENT,
        SightingWord.PENDING,
        SightingWord.ABSENT,
    }
)
"""What a provider's status may be mapped to: the effect is there, there is another one, it may
still come, or this object is proof of none."""


def checked_map(words: dict[str, str]) -> dict[str, str]:
    """A status map, if each status is mapped to a word that a map may use."""
    odd = sorted(set(words.values()) - MAPPABLE)
    if odd:
        raise ValueError(f"maps to {', '.join(odd)}; use one of {', '.join(sorted(MAPPABLE))}")
    return words


def faults_of(error: ValidationError) -> str:
    """What is wrong with an entry, for the person who wrote it."""
    return "; ".join(f"{'.'.join(map(str, e['loc']))} {e['msg']}" for e in error.errors())
