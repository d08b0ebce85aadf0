"""A look-up tried on a past call: asked now, read-only, with nothing kept and nothing decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from effects.models import Connection, Tool
from ledger import queries
from reconcile import pace
from reconcile.adapters.base import Look, Lookup, Probe
from reconcile.adapters.door import Limits, NotAllowed
from reconcile.facts import Read, claim_facts, earlier_looks, probe
from reconcile.investigate import read_claim
from reconcile.judge import Judgement, judge
from reconcile.judge_words import judgement_words
from reconcile.lookups import LOOKUPS, fault_of

TRIAL_SECONDS_MAX: Final = 10.0
"""Longest that one request of a trial may take: a person waits for it."""
RAW_SHOWN_MAX: Final = 20_000
"""Most characters of a raw answer on the page."""


class CannotTry(Exception):
    """Nobody was asked; the message says why, for whoever tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A tool's look-up as it is saved, or as somebody has just typed it."""

    kind: str
    connection: Connection | None
    lookup: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a look-up would find out about a call now, and what that would mean."""

    read: Read
    lookup: Lookup
    connection: Connection
    probe: Probe
    look: Look
    judgement: Judgement

    @property
    def raw(self) -> str:
        """The beginning of the raw answer, as it came: a parser could lose a digit."""
        return (self.look.raw or b"").decode("utf-8", "replace")[:RAW_SHOWN_MAX]

    @property
    def raw_is_cut(self) -> bool:
        return len(self.look.raw or b"") > RAW_SHOWN_MAX

    @property
    def known(self) -> str:
        """What would be known, by which rule, and what that rests on."""
        judged = self.judgement
        return judgement_words(judged.meaning, judged.rule, tuple(n for n in judged.evidence if n))

    @property
    def compared(self) -> list[tuple[str, str, str, bool]]:
        """Each field that was compared: its name, requested, found, and whether they are equal."""
        found = self.look.found
        return [
            (name, wish, found.get(name, ""), wish == found.get(name))
            for name, wish in self.look.requested.items()
        ]


def settings_of(tool: Tool) -> Settings:
    return Settings(kind=tool.lookup_kind, connection=tool.connection, lookup=tool.lookup)


def try_look_up(tool: Tool, claim_id: UUID, settings: Settings) -> Trial:
    """Asks the provider about a past call of this tool. Waits for it.

    Raises `CannotTry` where nobody can be asked, and `ClaimNotFound`. The reads count, because the
    provider counts them; nothing else is written.
    """
    lookup = _checked(settings)
    connection = settings.connection
    assert connection is not None, "what was checked has a connection"
    read = read_claim(tool.workspace_id, claim_id)
    if read.claim.tool_id != tool.pk:
        raise CannotTry(f"That call is one of {read.tool.name}, not of {tool.name}.")
    # The claim in hand is turned to the settings that are tried. It is saved nowhere.
    read.claim.tool = _as_if(read.tool, settings)
    facts = claim_facts(read)
    try:
        asked = probe(read, connection, facts)
    except NotAllowed as error:
        raise CannotTry(f"The connection {connection.name} cannot be used: {error}") from None
    way = replace(asked.place.way, limits=Limits(seconds=TRIAL_SECONDS_MAX))
    asked = replace(asked, place=replace(asked.place, way=way))
    look = lookup.look(asked)
    pace.count_reads(connection.pk, look.reads, queries.clock())
    return Trial(
        read=read,
        lookup=lookup,
        connection=connection,
        probe=asked,
        look=look,
        judgement=judge(facts, look, earlier_looks(read.events)),
    )


def _checked(settings: Settings) -> Lookup:
    if not settings.kind:
        raise CannotTry("No look-up is chosen, so there is nobody to ask.")
    if settings.connection is None:
        raise CannotTry("A look-up needs a connection: the account to be asked.")
    fault = fault_of(settings.kind, settings.lookup, connection_kind=settings.connection.kind)
    if fault is not None:
        raise CannotTry(fault)
    return LOOKUPS[settings.kind]


def _as_if(tool: Tool, settings: Settings) -> Tool:
    """A copy of the tool with these settings, not the stored one."""
    tried = Tool.objects.get(pk=tool.pk)
    tried.lookup_kind, tried.connection = settings.kind, settings.connection
    tried.lookup = dict(settings.lookup)
    return tried
