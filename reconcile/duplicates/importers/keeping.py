"""Keeps imported lines: each once, with the call that it names, all of a file or nothing of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Final
from uuid import UUID, uuid4

from django.db import transaction

from effects.core.exact_json import unstorable_at
from effects.core.problems import ClaimNotFound
from ledger import queries
from reconcile.duplicates import constants
from reconcile.models import ImportedEvidence

LINES_MAX: Final = 100_000
"""Most lines of one import; give the rest in another."""
NAME_CHARACTERS_MAX: Final = 300
TEXT_CHARACTERS_MAX: Final = 255
KEPT_AT_ONCE: Final = 1_000


class CannotImport(ValueError):
    """Why nothing of it was kept, in a sentence that names the place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line in our own words. `names` are the keys, markers or ids by which it names a call."""

    source: ImportedEvidence.Source
    name: str
    at: datetime
    facts: Mapping[str, Any]
    names: tuple[str, ...] = ()
    conversation: str = ""


@dataclass(slots=True, kw_only=True)
class Imported:
    """What became of an import. `known` lines had come before and are kept as they were."""

    new: int = 0
    known: int = 0
    without_a_call: int = 0
    run: UUID = field(default_factory=uuid4)


def keep(workspace_id: int, lines: Iterable[Line], *, claim_id: UUID | None = None) -> Imported:
    """Keeps what is new. `claim_id` is the call that every line is about, where they do not say it.

    Raises `CannotImport`, and `ClaimNotFound` for a call that is not in this workspace.
    """
    if claim_id is not None:
        queries.claim(workspace_id, claim_id)
    # Whoever is asked for lines is asked before the transaction begins.
    given = list(islice(lines, LINES_MAX + 1))
    if len(given) > LINES_MAX:
        raise CannotImport(f"There are more than {LINES_MAX} lines, the limit LINES_MAX.")
    imported, found, now = Imported(), _Names(workspace_id), queries.clock()
    waiting: list[ImportedEvidence] = []
    with transaction.atomic():
        for line in given:
            waiting.append(_row(workspace_id, line, claim_id or found.of(line), imported, now))
            if len(waiting) == KEPT_AT_ONCE:
                _store(waiting, imported)
        _store(waiting, imported)
        # What is known has changed, so every answer is given anew.
        constants.forget_answers(workspace_id)
    return imported


def _row(
    workspace_id: int, line: Line, claim_id: UUID | None, imported: Imported, now: datetime
) -> ImportedEvidence:
    if not line.name or len(line.name) > NAME_CHARACTERS_MAX:
        raise CannotImport(f"{line.name[:60]!a} is no name: it is empty, or too long.")
    said = (line.name, line.conversation, *_texts(line.facts))
    if any(unstorable_at(text) is not None for text in said):
        raise CannotImport(f"{line.name[:60]!a} holds a character that cannot be kept.")
    if claim_id is None and not line.conversation:
        imported.without_a_call += 1
    return ImportedEvidence(
        workspace_id=workspace_id,
        source=line.source,
        name=line.name,
        at=line.at,
        claim_id=claim_id,
        conversation=line.conversation[:TEXT_CHARACTERS_MAX],
        facts=dict(line.facts),
        imported_at=now,
        run=imported.run,
    )


def _texts(said: Any) -> Iterator[str]:
    if isinstance(said, str):
        yield said
    elif isinstance(said, Mapping):
        for value in said.values():
            yield from _texts(value)
    elif isinstance(said, list):
        for value in said:
            yield from _texts(value)


def _store(rows: list[ImportedEvidence], imported: Imported) -> None:
    if not rows:
        return
    workspace_id, run = rows[0].workspace_id, imported.run
    ImportedEvidence.objects.bulk_create(rows, ignore_conflicts=True)
    # What the database kept, not what it was given: a conflict is silent.
    new = ImportedEvidence.objects.filter(workspace_id=workspace_id, run=run).count()
    imported.known += len(rows) - (new - imported.new)
    imported.new = new
    rows.clear()


class _Names:
    """Which calls the keys and markers of an import name; each is looked up once."""

    def __init__(self, workspace_id: int) -> None:
        self._workspace_id = workspace_id
        self._known: dict[str, UUID | None] = {}

    def of(self, line: Line) -> UUID | None:
        return next((claim for claim in map(self._one, line.names) if claim is not None), None)

    def _one(self, name: str) -> UUID | None:
        if name not in self._known:
            try:
                self._known[name] = queries.claim_by_key(self._workspace_id, name.strip('"')).pk
            except ClaimNotFound:
                self._known[name] = None
        return self._known[name]
