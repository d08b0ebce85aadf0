"""What was found for one claim, and the look that it makes. Also what Stripe's refusals mean."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import stripe

from effects.core.identity import MARKER_METADATA_KEY
from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import Delay, KeyLife, Look, Probe, Route, kept
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.matching import Match, seen
from reconcile.adapters.stripe_client import ReadOnly
from reconcile.adapters.stripe_kinds import Kind
from reconcile.adapters.stripe_objects import (
    MarkerIn,
    match,
    read_config,
    without_secrets,
)
from reconcile.adapters.stripe_reading import SKEW, Reading

_KEY_MODE = re.compile(r"(?:sk|rk)_(live|test)_")
CURSOR: Final = "starting_after"
_REPLACED: Final = (
    " Of {} objects there, a later call has written its marker over the one with which the object "
    "was made: it may be this call's."
)


@dataclass(slots=True)
class Findings:
    """The objects that carry one claim's reference, and how they were come by.

    `interval_from` and `interval_to` bound what was read for it. `whole`: an effect of the claim
    would have been seen. `replaced` counts objects of which nobody can say any more whose they are.
    """

    probe: Probe
    kind: Kind
    route: Route
    matches: list[Match] = field(default_factory=list)
    objects: dict[str, dict[str, Any]] = field(default_factory=dict)
    interval_from: datetime | None = None
    interval_to: datetime | None = None
    whole: bool = False
    replaced: int = 0

    def take(self, item: dict[str, Any], life: KeyLife | None) -> None:
        """One object that carries the claim's marker or was made by its key."""
        self.keep(item, match(self.probe, self.kind, item, life))

    def keep(self, item: dict[str, Any], matched: Match) -> None:
        self.objects[str(item["id"])] = without_secrets(item)
        self.matches.append(matched)

    def of(self, reading: Reading) -> None:
        """What a reading that has ended says about this claim's own interval."""
        start = self.probe.since - SKEW - reading.behind
        covered = reading.covers(start)
        self.interval_from = start if covered else reading.reached
        self.interval_to = reading.until or self.probe.asked_at
        self.replaced = reading.replaced_since(start)
        seen_all = covered and self._ends_before(reading) and not self.replaced
        self.whole = self.route.proves_absence and seen_all

    def _ends_before(self, reading: Reading) -> bool:
        """Whether nothing of the claim's can have been made after the reading's end."""
        if reading.until is None:
            return True
        settled = self.probe.settled_from
        return settled is not None and settled + SKEW <= reading.until

    def look(self, door: ReadOnly, *, right_place: bool, query: str) -> Look:
        """The answer. `reads` are those of the door so far."""
        said = seen(self.matches, noun=self.kind.noun)
        lost = self.replaced and said.word is SightingWord.ABSENT
        raw = json.dumps(list(self.objects.values()), indent=1).encode() if self.objects else None
        return replace(
            _dated(self.probe, self.route, door, query=query),
            word=said.word,
            why=said.why + (_REPLACED.format(self.replaced) if lost else ""),
            matched_by=self.route.matched_by,
            interval_from=self.interval_from,
            interval_to=self.interval_to,
            right_place=right_place,
            pages_complete=self.whole,
            partly=said.partly,
            status=said.status,
            objects=said.objects,
            others=said.others,
            requested=said.requested,
            found=said.found,
            raw=kept(raw) if raw else None,
        )


def query_of(probe: Probe, reading: Reading | None) -> str:
    """What was asked, as it stands on the page."""
    config = read_config(probe.config)
    grouped = config.marker_in is MarkerIn.TRANSFER_GROUP
    where = "transfer_group" if grouped else f"metadata[{MARKER_METADATA_KEY}]"
    asked = f"{where} in {', '.join(probe.markers)}"
    if reading is not None:
        asked = f"{reading.described}, {asked}; {reading.extent}"
    return asked


def in_vain(probe: Probe, route: Route, door: ReadOnly, *, error: Exception, query: str) -> Look:
    """The look that found no answer, whatever kept it from coming."""
    word, why = _word_of_error(error)
    retry_after = door.last.headers.get("retry-after", "") if door.last else ""
    told = isinstance(error, stripe.StripeError) and door.last is not None
    return replace(
        _dated(probe, route, door, query=query),
        word=word,
        why=why,
        right_place=False,
        http_status=door.last.status if told and door.last else None,
        retry_after_seconds=int(retry_after) if retry_after.isdecimal() else None,
        raw=kept(door.last.body) if told and door.last else None,
    )


def misplaced(probe: Probe, route: Route, door: ReadOnly, why: str) -> Look:
    """The look of a connection or an entry that cannot be used as it is."""
    look = _dated(probe, route, door, query="")
    return replace(look, word=SightingWord.MISCONFIGURED, why=why, right_place=False)


def _dated(probe: Probe, route: Route, door: ReadOnly, *, query: str) -> Look:
    last = door.last
    return Look(
        word=SightingWord.LOOKUP_FAILED,
        why="",
        route=route.name,
        query=query,
        asked_at=probe.asked_at,
        delay_class=route.delay_class or Delay.UNKNOWN,
        account=probe.place.account,
        mode=probe.place.mode,
        request_id=last.headers.get("request-id", "") if last else "",
        api_version=door.version if door.reads else "",
        http_status=last.status if last else None,
        reads=door.reads,
    )


def fault_of(probe: Probe) -> str | None:
    """Why nothing can be asked with this entry and this secret, or None."""
    try:
        read_config(probe.config)
    except ValueError as error:
        return f"This tool's look-up cannot be used: {error}."
    return fault_of_the_key(probe)


def fault_of_the_key(probe: Probe) -> str | None:
    """Why the secret is not one for this workspace, or None."""
    if not probe.place.secret:
        return "The secret of this connection is not set in the environment of the worker."
    said = _KEY_MODE.match(probe.place.secret)
    if said is None:
        return "The secret is not a Stripe key: it starts with neither sk_ nor rk_ and a mode."
    if said[1] != probe.place.mode:
        return f"The secret is for {said[1]} mode, the workspace is {probe.place.mode}."
    return None


def _word_of_error(error: Exception) -> tuple[SightingWord, str]:
    match error:
        case NotAllowed():
            return SightingWord.MISCONFIGURED, str(error)
        case NoAnswer():
            return SightingWord.LOOKUP_FAILED, str(error)
        case stripe.StripeError():
            return _word_of_refusal(error)
        case _:
            raise error


def _word_of_refusal(error: stripe.StripeError) -> tuple[SightingWord, str]:
    status = error.http_status
    said = error.user_message or str(error) or type(error).__name__
    match error:
        case stripe.RateLimitError():
            return SightingWord.RATE_LIMITED, f"Stripe asks for fewer questions: {said}"
        case stripe.AuthenticationError() | stripe.PermissionError():
            return SightingWord.MISCONFIGURED, f"Stripe does not let us ask ({status}): {said}"
        case stripe.InvalidRequestError() if error.param == CURSOR:
            # The object at which a page ended was deleted: nobody's mistake, and no absence.
            return SightingWord.LOOKUP_FAILED, f"The list changed while it was read: {said}"
        case stripe.InvalidRequestError():
            # "No such ..." is what a wrong account or mode answers too, so it is no absence.
            return SightingWord.MISCONFIGURED, f"Stripe did not understand ({status}): {said}"
        case _:
            return SightingWord.LOOKUP_FAILED, f"Stripe could not answer ({status}): {said}"
