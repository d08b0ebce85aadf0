"""From one provider's answers to looks, for every adapter that reads objects by a tool's rules.

An answer is read whole or not at all: a fault on the third page is the look's word, whatever the
first two showed, because a second effect could stand on the pages that were not read.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import (
    CLOCK_SKEW_SECONDS,
    Delay,
    Look,
    MatchedBy,
    Probe,
    Scan,
    kept,
    literal,
)
from reconcile.adapters.door import Answered, NoAnswer, NotAllowed
from reconcile.adapters.matching import Match, seen
from reconcile.adapters.object_rules import (
    ObjectRules,
    Wanted,
    match_of,
    reference_of,
    stranger_of,
    wanted,
)

PAGES_MAX: Final = 50
"""Most pages of one list; a longer one is read in part, and the look says so."""
PAGE_ITEMS_MAX: Final = 1000
"""Most objects on one page."""
READING_SECONDS_MAX: Final = 60.0
NOT_SET: Final = "The secret of this connection is not set in the environment of the worker."
STRANGERS_MAX: Final = 1000
"""Most objects without a call that one scan names."""


class CannotSay(Exception):
    """An answer that says nothing about the call. `raw` is what of it may be kept."""

    def __init__(self, word: SightingWord, why: str, raw: bytes | None = None) -> None:
        super().__init__(why)
        self.word = word
        self.why = why
        self.raw = raw


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page as it was read. `following` is what asks for the next one, None on the last.

    `absent`: the answer is the one that the contract promises for something never seen.
    """

    items: Sequence[Any]
    body: bytes
    following: str | None = None
    absent: bool = False


@dataclass(slots=True)
class Reading:
    """All pages of one question. `complete`: the last page said that it is the last."""

    items: list[Any] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    complete: bool = False
    absent: bool = False

    @property
    def pages(self) -> int:
        return len(self.bodies)


@dataclass(slots=True)
class Told:
    """What the conversation with a provider left beside the objects, from the last answer."""

    reads: int = 0
    http_status: int | None = None
    request_id: str = ""
    retry_after_seconds: int | None = None
    dated: str = ""

    def note(self, answered: Answered) -> None:
        retry_after = answered.headers.get("retry-after", "")
        self.http_status = answered.status
        self.request_id = answered.headers.get("x-request-id", "")
        self.retry_after_seconds = int(retry_after) if retry_after.isdecimal() else None
        self.dated = answered.headers.get("date", "")


def read_pages(ask: Callable[[str | None], Page]) -> Reading:
    """Ask for page after page. What is raised on the way is the caller's."""
    reading, asked = Reading(), set[str | None]()
    following: str | None = None
    deadline = time.monotonic() + READING_SECONDS_MAX
    while following not in asked:
        asked.add(following)
        page = ask(following)
        if len(page.items) > PAGE_ITEMS_MAX:
            many = f"it lists {len(page.items)} objects; at most {PAGE_ITEMS_MAX} are read."
            raise CannotSay(SightingWord.UNMAPPED, unreadable(ValueError(many)), page.body)
        reading.items += page.items
        reading.bodies.append(page.body)
        reading.absent = page.absent
        following = page.following
        if following is None:
            reading.complete = True
            return reading
        if reading.pages >= PAGES_MAX or time.monotonic() > deadline:
            return reading
    # A page that leads back to one that was read would be read for ever.
    return reading


def fault_of_status(status: int) -> tuple[SightingWord, str] | None:
    """What an HTTP status says before the body is read; None where the body says it."""
    if status == 200:
        return None
    if status in {401, 403}:
        return SightingWord.MISCONFIGURED, f"The provider does not let us ask (HTTP {status})."
    if status == 429:
        return SightingWord.RATE_LIMITED, "The provider asks for fewer questions (HTTP 429)."
    if 300 <= status < 400:
        why = f"The provider sends us elsewhere (HTTP {status}), which is never followed."
        return SightingWord.MISCONFIGURED, f"{why} Register the address that answers."
    if status in {408, 425} or status >= 500:
        return SightingWord.LOOKUP_FAILED, f"The provider could not answer (HTTP {status})."
    why = (
        f"The provider answered HTTP {status}, and this tool's look-up does not say what it means."
    )
    return SightingWord.UNMAPPED, why


def begun(probe: Probe, route: str, *, rules: ObjectRules | None = None) -> Look:
    """The look that the answers complete; as it is, it says that nothing was found out."""
    return Look(
        word=SightingWord.LOOKUP_FAILED,
        why="",
        route=route,
        asked_at=probe.asked_at,
        delay_class=Delay(rules.delay_class) if rules else Delay.UNKNOWN,
        matched_by=MatchedBy.REFERENCE,
        interval_to=probe.asked_at,
        account=probe.place.account,
        mode=probe.place.mode,
    )


def misconfigured(probe: Probe, why: str, route: str) -> Look:
    """The look that asked nobody, because nobody could be."""
    return replace(begun(probe, route), word=SightingWord.MISCONFIGURED, why=why)


def in_vain(base: Look, error: CannotSay | NoAnswer | NotAllowed, told: Told) -> Look:
    """The look that found nothing out, with what kept it from it."""
    match error:
        case CannotSay():
            word, raw = error.word, error.raw
        case NotAllowed():
            word, raw = SightingWord.MISCONFIGURED, None
        case _:
            word, raw = SightingWord.LOOKUP_FAILED, None
    return completed(replace(base, word=word, why=str(error)), told, raw=raw)


def completed(look: Look, told: Told, *, raw: bytes | None) -> Look:
    """A look with what the conversation left beside the objects."""
    return replace(
        look,
        http_status=told.http_status,
        request_id=told.request_id,
        retry_after_seconds=told.retry_after_seconds,
        reads=told.reads,
        raw=None if raw is None else kept(raw),
    )


def seen_in(base: Look, matches: Iterable[Match], *, complete: bool) -> Look:
    """A look with what the matching objects amount to."""
    said = seen(matches, noun="Object")
    return replace(
        base,
        word=said.word,
        why=said.why,
        pages_complete=complete,
        partly=said.partly,
        status=said.status,
        objects=said.objects,
        others=said.others,
        requested=said.requested,
        found=said.found,
    )


def ours_in(
    probe: Probe, rules: ObjectRules, reading: Reading, about: Wanted
) -> tuple[list[Match], bytes]:
    """The objects that an answer to one question shows of this call, and what is kept of it.

    Raises `CannotSay` where nothing is there and no contract says what that means, and where a
    filter was ignored: everybody's objects would pass for ours.
    """
    ours = [
        item
        for item in reading.items
        if not rules.reference_field or reference_of(rules, item) == about.reference
    ]
    whole = b"\n".join(reading.bodies)
    if reading.items and not ours:
        # What is kept as evidence of one call never shows another call's objects.
        raise CannotSay(SightingWord.UNMAPPED, "Only other calls' objects are in the answer.")
    if not ours and not reading.absent:
        why = "Nothing is there, and this tool's look-up does not say what that means."
        raise CannotSay(SightingWord.UNMAPPED, why, whole)
    try:
        matches = [match_of(probe, rules, item, about.life) for item in ours]
    except ValueError as error:
        raise CannotSay(SightingWord.UNMAPPED, unreadable(error), whole) from None
    only_ours = len(ours) == len(reading.items)
    return matches, whole if only_ours else as_evidence(ours) or b""


def as_evidence(items: Sequence[Any]) -> bytes | None:
    """Objects as they are kept where their page may not be: it holds other calls' objects."""
    return json.dumps(list(items), default=str, indent=1).encode() if items else None


# One reading for many calls


def sort_out(
    probes: Sequence[Probe], rules: ObjectRules, reading: Reading, base: Look, told: Told
) -> Scan:
    """Give each call its objects out of one reading. Raises nothing."""
    by_reference: dict[str, list[Any]] = {}
    for item in reading.items:
        by_reference.setdefault(reference_of(rules, item) or "", []).append(item)
    known: set[str] = set()
    looks: dict[UUID, Look] = {}
    for probe in probes:
        own = replace(base, asked_at=probe.asked_at, interval_to=base.interval_to)
        try:
            references = wanted(probe, rules)
        except ValueError as error:
            looks[probe.claim_id] = misconfigured(probe, unusable(error), base.route)
            continue
        known |= {one.reference for one in references}
        looks[probe.claim_id] = _sorted_out(probe, rules, own, references, by_reference, reading)
    strangers = [
        stranger
        for reference, items in by_reference.items()
        if reference not in known
        for item in items
        if (stranger := stranger_of(rules, item)) is not None
    ]
    shared = {
        claim_id: replace(completed(look, told, raw=look.raw), reads=0)
        for claim_id, look in looks.items()
    }
    return Scan(looks=shared, reads=told.reads, strangers=tuple(strangers[:STRANGERS_MAX]))


def _sorted_out(
    probe: Probe,
    rules: ObjectRules,
    base: Look,
    references: Sequence[Wanted],
    by_reference: Mapping[str, list[Any]],
    reading: Reading,
) -> Look:
    ours = [(item, one.life) for one in references for item in by_reference.get(one.reference, ())]
    try:
        matches = [match_of(probe, rules, item, life) for item, life in ours]
    except ValueError as error:
        return replace(base, word=SightingWord.UNMAPPED, why=unreadable(error))
    look = seen_in(base, matches, complete=reading.complete)
    return replace(look, raw=as_evidence([item for item, _ in ours]))


def one_of(scan: Scan, probe: Probe) -> Look:
    """The look of a scan that was made for one call alone: its reads are the look's own."""
    return replace(scan.looks[probe.claim_id], reads=scan.reads)


def all_alike(probes: Sequence[Probe], look: Look, *, reads: int) -> Scan:
    """The scan that found nothing out: every call is told the same. A raw answer that may hold
    several calls' objects is nobody's evidence, so it is kept where one call alone was asked."""
    raw = look.raw if len(probes) == 1 else None
    looks = {
        probe.claim_id: replace(look, asked_at=probe.asked_at, reads=0, raw=raw) for probe in probes
    }
    return Scan(looks=looks, reads=reads)


def unusable(error: ValueError) -> str:
    return f"This tool's look-up cannot be used: {error}."


def unreadable(error: ValueError) -> str:
    return f"The answer cannot be read: {error}"


# Instants


def window_of(probes: Sequence[Probe]) -> tuple[datetime, datetime]:
    """The interval in which an effect of these calls may be dated by a clock that is not ours."""
    skew = timedelta(seconds=CLOCK_SKEW_SECONDS)
    return min(p.since for p in probes) - skew, max(p.asked_at for p in probes) + skew


def written(instant: datetime, how: str) -> str:
    """An instant as a provider wants it: "iso" (UTC, to the second) or "unix" (seconds)."""
    if how == "unix":
        return str(int(instant.timestamp()))
    return f"{instant.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}"


def checked_place(base: Look, expression: str, found: object) -> Look:
    """The look, if the answer is of the registered account; the look says that it is not sure of
    its place where an answer does not tell, or nobody said where it would. Raises `CannotSay` for
    another account."""
    if not base.account:
        return base
    if not expression:
        return replace(base, right_place=False)
    if found is None or found == "":
        return replace(base, right_place=False)
    if str(found) != base.account:
        why = f"The answer is of the account {literal(found)}, not of {base.account}."
        raise CannotSay(SightingWord.MISCONFIGURED, why)
    return base
