"""Asks a GraphQL server by one registered query, as the tool's registry entry describes it.

An answer of HTTP 200 may hold errors, and then it is no whole answer: a member that is null beside
an error was not looked up (https://spec.graphql.org/draft/#sec-Errors). So errors are never an
absence, whatever data stands beside them. A mutation cannot be asked: see `door.query`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Page,
    Reading,
    Told,
    all_alike,
    begun,
    checked_place,
    completed,
    fault_of_status,
    in_vain,
    misconfigured,
    one_of,
    ours_in,
    read_pages,
    seen_in,
    sort_out,
    unreadable,
    unusable,
    window_of,
    written,
)
from reconcile.adapters.base import Look, Lookup, MatchedBy, Probe, Route, Scan, literal
from reconcile.adapters.door import NoAnswer, NotAllowed, query
from reconcile.adapters.graphql_config import (
    CONSTANT,
    CURSOR,
    GraphqlList,
    GraphqlLookup,
    GraphqlQuestion,
    read_config,
    read_list_config,
)
from reconcile.adapters.matching import Match
from reconcile.adapters.object_rules import (
    ARGUMENT_PREFIX,
    Wanted,
    argument,
    checked_items,
    decoded,
    search,
    wanted,
)

REFERENCES_MAX: Final = 5
"""Most references that one look-up asks about: one for each generation of the key."""
ROUTE: Final = "GraphQL query"
LIST_ROUTE: Final = "GraphQL list of the time in question"
ERRORS_NAMED_MAX: Final = 3

_REFUSED: Final = frozenset({"UNAUTHENTICATED", "UNAUTHORIZED", "FORBIDDEN", "ACCESS_DENIED"})
_TOO_OFTEN: Final = frozenset({"THROTTLED", "RATE_LIMITED", "MAX_COST_EXCEEDED"})
"""What servers write into `errors[].extensions.code`; every other code says that they could not
answer."""


def look_by_query(probe: Probe) -> Look:
    """`lookup_kind` "graphql". Never raises for anything that a provider does."""
    try:
        config = read_config(probe.config)
        asked = _questions(probe, config)
    except ValueError as error:
        return misconfigured(probe, unusable(error), ROUTE)
    if not probe.place.secret:
        return misconfigured(probe, NOT_SET, ROUTE)
    if len(asked) > REFERENCES_MAX:
        why = f"It would take {len(asked)} questions; at most {REFERENCES_MAX} are asked."
        return misconfigured(probe, why, ROUTE)
    return _Asking([probe], config, begun(probe, ROUTE, rules=config)).about(asked)


def look_in_list(probe: Probe) -> Look:
    """`lookup_kind` "graphql.list". Never raises for anything that a provider does."""
    return one_of(look_in_list_for_many([probe]), probe)


def look_in_list_for_many(probes: Sequence[Probe]) -> Scan:
    """One reading for calls of one place and one entry; `probes` holds at least one."""
    first = probes[0]
    try:
        config = read_list_config(first.config)
    except ValueError as error:
        return all_alike(probes, misconfigured(first, unusable(error), LIST_ROUTE), reads=0)
    if not first.place.secret:
        return all_alike(probes, misconfigured(first, NOT_SET, LIST_ROUTE), reads=0)
    base = begun(first, LIST_ROUTE, rules=config)
    if config.reference == "marker":
        base = replace(base, matched_by=MatchedBy.MARKER)
    return _Asking(probes, config, base).for_all()


LOOKUPS: Final = (
    Lookup(
        kind="graphql",
        label="GraphQL: a query that names the call",
        connection_kind="graphql",
        look=look_by_query,
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
        kind="graphql.list",
        label="GraphQL: a list of the time in question, read whole",
        connection_kind="graphql",
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
    """One conversation with the server: its queries, and what the answers amount to together."""

    def __init__(self, probes: Sequence[Probe], config: GraphqlLookup, base: Look) -> None:
        self.probes = probes
        self.config = config
        self.base = base
        self.told = Told()
        self.account: Any = None

    def about(self, asked: Sequence[tuple[Wanted, dict[str, Any]]]) -> Look:
        """The look for the one call that is asked about, by each of its references."""
        matches: list[Match] = []
        evidence: list[bytes] = []
        complete = True
        try:
            for about, variables in asked:
                reading = self._read(variables)
                complete = complete and reading.complete
                ours, kept_of_it = ours_in(self.probes[0], self.config, reading, about)
                matches += ours
                evidence.append(kept_of_it)
        except (CannotSay, NoAnswer, NotAllowed) as error:
            return in_vain(self.base, error, self.told)
        self.base = replace(
            self.base, query="; ".join(self._described(variables) for _, variables in asked)
        )
        look = seen_in(self.base, matches, complete=complete)
        return completed(look, self.told, raw=b"\n".join(evidence))

    def for_all(self) -> Scan:
        """The looks for all calls, out of one reading of the time in question."""
        since, until = window_of(self.probes)
        how = self.config.instants
        named = {"since": written(since, how), "until": written(until, how)}
        variables = {
            name: value
            for name, source in self.config.variables.items()
            if (value := _constant(source, named)) is not _NOTHING
        }
        try:
            reading = self._read(variables)
        except (CannotSay, NoAnswer, NotAllowed) as error:
            look = in_vain(self.base, error, self.told)
            return all_alike(self.probes, look, reads=self.told.reads)
        counted = f"{len(reading.items)} objects on {reading.pages} pages"
        base = replace(
            self.base,
            query=f"{self.base.query}; {counted}",
            interval_from=since,
            interval_to=self.probes[0].asked_at,
        )
        return sort_out(self.probes, self.config, reading, base, self.told)

    def _described(self, variables: dict[str, Any]) -> str:
        return f"POST {self.config.path} {json.dumps(variables)}"

    def _read(self, variables: dict[str, Any]) -> Reading:
        self.base = replace(self.base, query=self._described(variables))
        reading = read_pages(lambda cursor: self._page(variables, cursor))
        self.base = checked_place(self.base, self.config.account, self.account)
        return reading

    def _page(self, variables: dict[str, Any], cursor: str | None) -> Page:
        config, place = self.config, self.probes[0].place
        turned = {name: cursor for name, said in config.variables.items() if said == CURSOR}
        self.told.reads += 1
        answered = query(
            place.base_url.rstrip("/") + config.path,
            config.parsed,
            {**variables, **turned},
            way=place.way,
            headers={
                "Accept": "application/graphql-response+json, application/json",
                config.auth_header: f"{config.auth_prefix}{place.secret}",
            },
        )
        self.told.note(answered)
        try:
            # A server may answer 400 or 500 and still say in `errors` what was wrong.
            answer = decoded(answered.body)
            _raise_errors(answer, answered.body)
            if (fault := fault_of_status(answered.status)) is not None:
                raise CannotSay(*fault, answered.body)
            return self._read_page(answer, answered.body)
        except ValueError as error:
            if (fault := fault_of_status(answered.status)) is not None:
                raise CannotSay(*fault, answered.body) from None
            raise CannotSay(SightingWord.UNMAPPED, unreadable(error), answered.body) from None

    def _read_page(self, answer: Any, body: bytes) -> Page:
        """The objects of one answer without errors. Raises ValueError for one without data."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, dict) or not data:
            raise ValueError("it holds no data.")
        config = self.config
        self.account = search(config.account, data) if config.account else None
        found = search(config.items, data)
        if isinstance(found, dict):
            found = [found]
        if found is None and config.absent_when.null:
            return Page(items=(), body=body, absent=True)
        items = checked_items(found, named=config.items)
        absent = config.absent_when.empty or isinstance(config, GraphqlList)
        return Page(
            items=items,
            body=body,
            following=_following(search(config.page_info, data)) if config.page_info else None,
            absent=absent and not items,
        )


# The question

_NOTHING: Final = object()


def _questions(probe: Probe, config: GraphqlQuestion) -> list[tuple[Wanted, dict[str, Any]]]:
    """The variables of one query for each generation, or of one in all where they share them.

    Raises ValueError where the call has no such reference.
    """
    since, until = window_of([probe])
    named = {
        "since": written(since, config.instants),
        "until": written(until, config.instants),
        "claim": str(probe.claim_id),
    }
    references = wanted(probe, config)
    asked: dict[str, tuple[Wanted, dict[str, Any]]] = {}
    for life in probe.generations:
        about = next(one for one in references if one.life in {None, life})
        own = {**named, "reference": about.reference, "key": life.key, "marker": life.marker}
        variables = {}
        for name, source in config.variables.items():
            if source.startswith(ARGUMENT_PREFIX):
                variables[name] = argument(probe, source)
            elif (value := _constant(source, own)) is not _NOTHING:
                variables[name] = value
        asked.setdefault(json.dumps(variables), (about, variables))
    return list(asked.values())


def _constant(source: str, named: dict[str, str]) -> Any:
    """What a variable is, from its source; the cursor is nothing that is known beforehand."""
    if source.startswith(CONSTANT):
        return json.loads(source.removeprefix(CONSTANT))
    return named.get(source, _NOTHING)


# The answer


def _raise_errors(answer: Any, body: bytes) -> None:
    errors = answer.get("errors") if isinstance(answer, dict) else None
    if not errors:
        return
    listed = errors if isinstance(errors, list) else [errors]
    codes = {str(search("extensions.code", error)).upper() for error in listed}
    said = "; ".join(literal(search("message", error)) for error in listed[:ERRORS_NAMED_MAX])
    if codes & _TOO_OFTEN:
        word, why = SightingWord.RATE_LIMITED, f"The server asks for fewer questions: {said}."
    elif codes & _REFUSED:
        word, why = SightingWord.MISCONFIGURED, f"The server does not let us ask: {said}."
    else:
        why = f"The answer holds errors, so it is not whole: {said}."
        word = SightingWord.LOOKUP_FAILED
    raise CannotSay(word, why, body)


def _following(page_info: Any) -> str | None:
    """The cursor of the next page, None on the last. Raises ValueError where it does not say."""
    more, cursor = search("hasNextPage", page_info), search("endCursor", page_info)
    if more is False:
        return None
    if more is not True or not isinstance(cursor, str) or not cursor:
        raise ValueError("its PageInfo does not say whether and where there is a next page.")
    return cursor
