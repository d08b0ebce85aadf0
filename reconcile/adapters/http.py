"""Asks any provider's own status endpoint, as the tool's registry entry describes it.

Nothing is assumed about the provider: a status that the map does not name is `unmapped`, and not
finding the call is an absence only where the entry says how absence looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import quote

from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Told,
    begun,
    checked_place,
    completed,
    in_vain,
    misconfigured,
    ours_in,
    read_pages,
    seen_in,
    unusable,
)
from reconcile.adapters.base import Look, Lookup, MatchedBy, Probe, Route
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.http_config import HttpLookup, read_config, read_list_config
from reconcile.adapters.http_list import LIST_ROUTE, look_in_list, look_in_list_for_many
from reconcile.adapters.http_pages import HttpPages
from reconcile.adapters.matching import Match
from reconcile.adapters.object_rules import Wanted, wanted

REFERENCES_MAX: Final = 5
"""Most references that one look-up asks about: one for each generation of the key."""
ROUTE: Final = "Status endpoint"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One address to ask, and what it asks about."""

    path: str
    about: Wanted


def look_by_url(probe: Probe) -> Look:
    """`lookup_kind` "http". Never raises for anything that a provider does."""
    try:
        config = read_config(probe.config)
        questions = _questions(probe, config)
    except ValueError as error:
        return misconfigured(probe, unusable(error), ROUTE)
    if not probe.place.secret:
        return misconfigured(probe, NOT_SET, ROUTE)
    if len(questions) > REFERENCES_MAX:
        # Asking about some of them alone would pass silence about the others for an absence.
        why = f"It would take {len(questions)} questions; at most {REFERENCES_MAX} are asked."
        return misconfigured(probe, why, ROUTE)
    return _Asking(probe, config).ask(questions)


LOOKUPS: Final = (
    Lookup(
        kind="http",
        label="HTTP: a status endpoint that is asked by key or reference",
        connection_kind="http",
        look=look_by_url,
        read_config=read_config,
        routes=(
            Route(
                name=ROUTE,
                delay_class=None,
                proves_absence=True,
                matched_by=MatchedBy.REFERENCE,
            ),
        ),
    ),
    Lookup(
        kind="http.list",
        label="HTTP: a list of the time in question, read whole",
        connection_kind="http",
        look=look_in_list,
        read_config=read_list_config,
        look_many=look_in_list_for_many,
        routes=(
            Route(
                name=LIST_ROUTE,
                delay_class=None,
                proves_absence=True,
                matched_by=MatchedBy.MARKER,
            ),
        ),
    ),
)


class _Asking:
    """All questions of one look-up, and what their answers amount to together."""

    def __init__(self, probe: Probe, config: HttpLookup) -> None:
        self.probe = probe
        self.config = config
        self.told = Told()
        self.base = begun(probe, ROUTE, rules=config)
        self.complete = True
        self.evidence: list[bytes] = []

    def ask(self, questions: Sequence[_Question]) -> Look:
        matches: list[Match] = []
        try:
            for question in questions:
                self.base = replace(self.base, query=f"GET {question.path}")
                matches += self._answered(question)
        except (CannotSay, NoAnswer, NotAllowed) as error:
            return in_vain(self.base, error, self.told)
        query = "; ".join(f"GET {question.path}" for question in questions)
        look = seen_in(replace(self.base, query=query), matches, complete=self.complete)
        return completed(look, self.told, raw=b"\n".join(self.evidence))

    def _answered(self, question: _Question) -> list[Match]:
        """The objects of one question, none where the contract says so. Raises `CannotSay`."""
        pages = HttpPages(self.probe.place, self.config, question.path, self.told)
        reading = read_pages(pages.ask)
        self.base = checked_place(self.base, self.config.account, pages.account)
        self.complete = self.complete and reading.complete
        matches, evidence = ours_in(self.probe, self.config, reading, question.about)
        self.evidence.append(evidence)
        return matches


def _questions(probe: Probe, config: HttpLookup) -> list[_Question]:
    """One question for each generation of the key, or one in all where they share a reference.

    Raises ValueError where the call has no such reference.
    """
    # A reference that all generations share may stand in an address beside one of which each has
    # its own ("{key}"), so every generation's own address is asked.
    references = wanted(probe, config)
    asked: dict[str, _Question] = {}
    for life in probe.generations:
        about = next(one for one in references if one.life in {None, life})
        path = config.url.format(
            reference=quote(about.reference, safe=""),
            key=quote(life.key, safe=""),
            marker=quote(life.marker, safe=""),
            claim=str(probe.claim_id),
        )
        asked.setdefault(path, _Question(path=path, about=about))
    return list(asked.values())
