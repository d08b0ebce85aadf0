"""Asks a database, or a replica of it, by one registered SELECT.

A replica shows the past. How far it has come is read in the same transaction, before the rows: if
that is later than the last instant at which the effect could still come, by more than clocks may
differ, then a row that is not there was never committed; otherwise not seeing it proves nothing
yet. PostgreSQL says when the last transaction that was replayed had committed
(https://www.postgresql.org/docs/current/functions-admin.html#FUNCTIONS-RECOVERY-CONTROL); on a
primary where nothing happens that instant stands still, so a replica of it can only be taken for
late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Reading,
    Told,
    all_alike,
    as_evidence,
    begun,
    completed,
    in_vain,
    misconfigured,
    one_of,
    ours_in,
    seen_in,
    sort_out,
    unusable,
    window_of,
)
from reconcile.adapters.base import (
    CLOCK_SKEW_SECONDS,
    Delay,
    Look,
    Lookup,
    MatchedBy,
    Place,
    Probe,
    Route,
    Scan,
    literal,
)
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.matching import Match
from reconcile.adapters.object_rules import wanted
from reconcile.adapters.sql_config import ALL, SqlLookup, read_config
from reconcile.adapters.sql_door import Rows, select

ROUTE: Final = "SELECT in the database"
REPLICA_ROUTE: Final = "SELECT in a replica"
REFERENCES_MAX: Final = 5
"""Most SELECTs of one look-up: one for each generation of the key."""
SHARED_MAX: Final = 500
"""Most calls that one SELECT answers for."""


def look_in_database(probe: Probe) -> Look:
    """`lookup_kind` "sql". Never raises for anything that a database does."""
    return one_of(look_in_database_for_many([probe]), probe)


def look_in_database_for_many(probes: Sequence[Probe]) -> Scan:
    """One reading for calls of one place and one entry; `probes` holds at least one.

    A query that names one call is asked for each of them; only one over arrays or a time is shared.
    """
    first = probes[0]
    try:
        config = read_config(first.config)
    except ValueError as error:
        return all_alike(probes, misconfigured(first, unusable(error), ROUTE), reads=0)
    if not first.place.secret:
        return all_alike(probes, misconfigured(first, NOT_SET, ROUTE), reads=0)
    if not config.is_shared:
        return _together([_AskingForOne(probe, config).look() for probe in probes], probes)
    shares = [probes[at : at + SHARED_MAX] for at in range(0, len(probes), SHARED_MAX)]
    scans = [_shared(share, config) for share in shares]
    looks = {claim_id: look for scan in scans for claim_id, look in scan.looks.items()}
    return Scan(
        looks=looks,
        reads=sum(scan.reads for scan in scans),
        strangers=tuple(stranger for scan in scans for stranger in scan.strangers)
        if len(scans) == 1
        else (),
    )


LOOKUPS: Final = (
    Lookup(
        kind="sql",
        label="SQL: one read-only SELECT",
        connection_kind="sql",
        look=look_in_database,
        read_config=read_config,
        look_many=look_in_database_for_many,
        routes=(
            Route(
                name=ROUTE,
                delay_class=None,
                proves_absence=True,
                matched_by=MatchedBy.REFERENCE,
            ),
            Route(
                name=REPLICA_ROUTE,
                delay_class=None,
                proves_absence=True,
                matched_by=MatchedBy.REFERENCE,
            ),
        ),
    ),
)


def _together(looks: Sequence[Look], probes: Sequence[Probe]) -> Scan:
    by_claim: dict[UUID, Look] = {
        probe.claim_id: replace(look, reads=0) for probe, look in zip(probes, looks, strict=True)
    }
    return Scan(looks=by_claim, reads=sum(look.reads for look in looks))


# One call


class _AskingForOne:
    """All SELECTs of one look-up, and what their rows amount to together."""

    def __init__(self, probe: Probe, config: SqlLookup) -> None:
        self.probe = probe
        self.config = config
        self.told = Told()
        self.base = begun(probe, ROUTE, rules=config)

    def look(self) -> Look:
        matches: list[Match] = []
        evidence: list[bytes] = []
        asked: list[str] = []
        complete = True
        try:
            references = wanted(self.probe, self.config)
        except ValueError as error:
            return misconfigured(self.probe, unusable(error), ROUTE)
        try:
            for life in self.probe.generations:
                about = next(one for one in references if one.life in {None, life})
                values = {
                    "reference": about.reference,
                    "key": life.key,
                    "marker": life.marker,
                    "claim": str(self.probe.claim_id),
                }
                shown = _shown(self.config, values)
                if shown in asked:
                    continue
                asked.append(shown)
                self._check_number(asked)
                self.base = replace(self.base, query=shown)
                rows = _select([self.probe], self.config, values, self.told)
                _check_place(rows, self.probe.place)
                self.base = _dated(self.base, rows, self.probe)
                reading = _reading(self.config, rows)
                complete = complete and reading.complete
                ours, kept_of_it = ours_in(self.probe, self.config, reading, about)
                matches += ours
                evidence.append(kept_of_it)
        except (CannotSay, NoAnswer, NotAllowed) as error:
            return in_vain(self.base, error, self.told)
        base = replace(self.base, query="; ".join(asked))
        look = seen_in(base, matches, complete=complete)
        return completed(look, self.told, raw=b"\n".join(evidence))

    def _check_number(self, asked: Sequence[str]) -> None:
        if len(asked) > REFERENCES_MAX:
            # Asking about some of them alone would pass silence about the others for an absence.
            why = f"It would take more than {REFERENCES_MAX} questions, one for each key."
            raise CannotSay(SightingWord.MISCONFIGURED, why)


# Many calls


def _shared(probes: Sequence[Probe], config: SqlLookup) -> Scan:
    """One SELECT for all of these calls."""
    told = Told()
    base = begun(probes[0], ROUTE, rules=config)
    lives = [life for probe in probes for life in probe.generations]
    values: dict[str, Any] = {
        "references": sorted(_references(probes, config)),
        "keys": [life.key for life in lives],
        "markers": [life.marker for life in lives],
        "claims": [str(probe.claim_id) for probe in probes],
    }
    if config.reference == "marker" and not config.parameters & ALL:
        base = replace(base, matched_by=MatchedBy.MARKER)
    base = replace(base, query=_shown(config, values))
    try:
        rows = _select(probes, config, values, told)
        _check_place(rows, probes[0].place)
        reading = _reading(config, rows)
    except (CannotSay, NoAnswer, NotAllowed) as error:
        return all_alike(probes, in_vain(base, error, told), reads=told.reads)
    scan = _no_silent_absence(sort_out(probes, config, reading, base, told), config)
    dated = {p.claim_id: _dated(scan.looks[p.claim_id], rows, p) for p in probes}
    return replace(scan, looks=dated)


def _references(probes: Sequence[Probe], config: SqlLookup) -> set[str]:
    found: set[str] = set()
    for probe in probes:
        try:
            found |= {one.reference for one in wanted(probe, config)}
        except ValueError:
            continue  # `sort_out` tells this call what is wrong.
    return found


def _no_silent_absence(scan: Scan, config: SqlLookup) -> Scan:
    """Where the entry does not say that no row means no effect, no row says nothing."""
    if config.absent_when.empty:
        return scan
    why = "Nothing is there, and this tool's look-up does not say what that means."
    looks = {
        claim_id: replace(look, word=SightingWord.UNMAPPED, why=why)
        if look.word is SightingWord.ABSENT and not look.others
        else look
        for claim_id, look in scan.looks.items()
    }
    return replace(scan, looks=looks)


# The question and the rows


def _select(
    probes: Sequence[Probe], config: SqlLookup, values: Mapping[str, Any], told: Told
) -> Rows:
    since, until = window_of(probes)
    every = {**values, "since": since, "until": until}
    told.reads += 1
    return select(
        probes[0].place,
        config.query,
        {name: every[name] for name in config.parameters},
        statement_seconds=config.statement_seconds,
    )


def _reading(config: SqlLookup, rows: Rows) -> Reading:
    return Reading(
        items=list(rows.rows),
        bodies=[as_evidence(rows.rows) or b"[]"],
        complete=rows.complete,
        absent=config.absent_when.empty and not rows.rows,
    )


def _check_place(rows: Rows, place: Place) -> None:
    """Raises `CannotSay` for another database: a pooler may lead a name wherever it likes."""
    database = place.base_url.rsplit("/", 1)[-1]
    if rows.database != database or (place.account and rows.role != place.account):
        why = f"The answer is of {literal(rows.role)} in {literal(rows.database)}."
        raise CannotSay(SightingWord.MISCONFIGURED, f"{why} Another one was meant.")


def _dated(look: Look, rows: Rows, probe: Probe) -> Look:
    """The look with how late the database shows what was committed."""
    since, _ = window_of([probe])
    look = replace(look, interval_from=since)
    if not rows.is_replica:
        return look
    until, settled = rows.replayed_until, probe.settled_from
    margin = timedelta(seconds=CLOCK_SKEW_SECONDS)
    came_far = until is not None and settled is not None and until > settled + margin
    delay = look.delay_class if came_far else Delay.EVENTUAL
    return replace(look, route=REPLICA_ROUTE, delay_class=delay, interval_to=until)


def _shown(config: SqlLookup, values: Mapping[str, Any]) -> str:
    """The question as it is kept: the query and its parameters, of which arrays are counted."""
    named = {
        name: values[name] if isinstance(values[name], str) else f"{len(values[name])} values"
        for name in sorted(config.parameters & values.keys())
    }
    return f"{' '.join(config.query.split())} {json.dumps(named)}"
