"""A look-up tried on a past call: asked now, read-only, with nothing kept and nothing decided.

A worker asks, because only workers have the secrets. What it found lies beside the record for an
hour, for the page of whoever tried, and then is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User

from effects.core.problems import ClaimNotFound
from effects.models import Connection, LookupTrial, Tool
from ledger import queries, redacting
from reconcile import pace
from reconcile.adapters.base import Look, Lookup
from reconcile.adapters.door import Limits, NotAllowed
from reconcile.facts import claim_facts, earlier_looks, probe
from reconcile.investigate import read_claim
from reconcile.judge import Judgement, judge
from reconcile.judge_words import judgement_words
from reconcile.lookups import LOOKUPS, fault_of

TRIAL_SECONDS_MAX: Final = 10.0
"""Longest that one request of a trial may take: a person waits for it."""
RAW_SHOWN_MAX: Final = 20_000
"""Most characters of a raw answer that are shown."""
OBJECTS_SHOWN_MAX: Final = 100
KEPT: Final = timedelta(hours=1)


class CannotTry(Exception):
    """Nobody was asked; the message says why, for whoever tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A tool's look-up as it is saved, or as somebody has just typed it."""

    kind: str
    connection: Connection | None
    lookup: Mapping[str, Any]


def settings_of(tool: Tool) -> Settings:
    return Settings(kind=tool.lookup_kind, connection=tool.connection, lookup=tool.lookup)


def order(tool: Tool, claim_id: UUID, settings: Settings, *, user: User) -> LookupTrial:
    """What a worker is to try. Raises `CannotTry` for what can be seen to fail without asking."""
    _checked(settings)
    assert settings.connection is not None, "what was checked has a connection"
    try:
        claim = queries.claim(tool.workspace_id, claim_id)
    except ClaimNotFound:
        raise CannotTry("No call of this workspace has this id.") from None
    if claim.tool_id != tool.pk:
        raise CannotTry(f"That call is one of {claim.tool.name}, not of {tool.name}.")
    entry = {
        "kind": settings.kind,
        "connection": settings.connection.pk,
        "lookup": dict(settings.lookup),
    }
    return LookupTrial.objects.create(
        workspace_id=tool.workspace_id,
        tool=tool,
        user=user,
        claim_id=claim_id,
        entry=json.dumps(entry),
        asked_at=queries.clock(),
    )


def entry_of(trial: LookupTrial) -> Settings:
    """The settings that are tried; the connection as it is now."""
    entry = json.loads(trial.entry)
    found = Connection.objects.filter(workspace=trial.workspace_id, pk=entry["connection"])
    return Settings(
        kind=entry["kind"],
        connection=found.select_related("workspace").first(),
        lookup=entry["lookup"],
    )


def perform(trial_id: int) -> None:
    """Asks, and leaves the answer for the page. Waits for the provider. A second copy does nothing.

    The reads count, because the provider counts them; nothing else of the product hears of it.
    """
    trial = LookupTrial.objects.select_related("tool").filter(pk=trial_id, answer="").first()
    if trial is None:
        return
    try:
        found = _try(trial, entry_of(trial))
    except CannotTry as error:
        found = {"fault": str(error)}
    known = redacting.known_values_if_any(trial.workspace_id, trial.claim_id)
    found = redacting.said(trial.workspace_id, found, known)
    # Text in ASCII: an answer may hold what PostgreSQL keeps in no text.
    LookupTrial.objects.filter(pk=trial_id).update(answer=json.dumps(found))


def forget() -> None:
    """Empties what is older than an hour: it may hold what providers know of customers."""
    LookupTrial.objects.filter(asked_at__lt=queries.clock() - KEPT).delete()


# Inside


def _checked(settings: Settings) -> Lookup:
    if not settings.kind:
        raise CannotTry("No look-up is chosen, so there is nobody to ask.")
    if settings.connection is None:
        raise CannotTry("A look-up needs a connection: the account to be asked.")
    fault = fault_of(settings.kind, settings.lookup, connection_kind=settings.connection.kind)
    if fault is not None:
        raise CannotTry(fault)
    return LOOKUPS[settings.kind]


def _try(trial: LookupTrial, settings: Settings) -> dict[str, Any]:
    lookup = _checked(settings)
    connection = settings.connection
    assert connection is not None, "what was checked has a connection"
    read = read_claim(trial.workspace_id, trial.claim_id)
    # The claim in hand is turned to the settings that are tried. It is saved nowhere.
    tried = trial.tool
    tried.lookup_kind, tried.connection = settings.kind, connection
    tried.lookup = dict(settings.lookup)
    read.claim.tool = tried
    facts = claim_facts(read)
    try:
        asked = probe(read, connection, facts)
    except NotAllowed as error:
        raise CannotTry(f"The connection {connection.name} cannot be used: {error}") from None
    way = replace(asked.place.way, limits=Limits(seconds=TRIAL_SECONDS_MAX))
    look = lookup.look(replace(asked, place=replace(asked.place, way=way)))
    pace.count_reads(connection.pk, look.reads, queries.clock())
    return _shown(look, judge(facts, look, earlier_looks(read.events)), connection)


def _shown(look: Look, judged: Judgement, connection: Connection) -> dict[str, Any]:
    """What the page shows of a look and of what it would mean."""
    raw = (look.raw or b"").decode("utf-8", "replace")
    numbers = tuple(number for number in judged.evidence if number)
    return {
        "word": look.word,
        "why": look.why,
        "query": look.query,
        "route": look.route,
        "delay_class": look.delay_class,
        "pages_complete": look.pages_complete,
        "connection": connection.name,
        "account": look.account,
        "mode": look.mode,
        "right_place": look.right_place,
        "asked_at": look.asked_at.isoformat(),
        "reads": look.reads,
        "http_status": look.http_status,
        "request_id": look.request_id,
        "matched_by": look.matched_by,
        "status": look.status,
        "objects": look.objects[:OBJECTS_SHOWN_MAX],
        "others": look.others[:OBJECTS_SHOWN_MAX],
        "compared": [
            (name, wish, look.found.get(name, ""), wish == look.found.get(name))
            for name, wish in look.requested.items()
        ],
        "strength": judged.strength,
        "means": judged.why,
        "known": judgement_words(judged.meaning, judged.rule, numbers),
        "counts": judged.counts,
        # As it came: a parser could lose a digit.
        "raw": raw[:RAW_SHOWN_MAX],
        "raw_is_cut": len(raw) > RAW_SHOWN_MAX,
    }
