"""The account of a soak: what the ledger says of each call, beside what the provider counted."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from django.db import connection as database

from effects.core.identity import read_marker
from effects.core.vocabulary import ClaimState, SightingWord
from reconcile.models import WebhookDelivery
from reconcile.sandbox.soak.fates import Case
from reconcile.sandbox.soak.rails import RAILS
from reconcile.sandbox.soak.witness import Seen

SENTENCES_MAX: Final = 50
"""How many faults are told one by one; all of them are counted."""
SHOWN: Final = frozenset({SightingWord.FOUND, SightingWord.FOUND_MANY})
IN_VAIN: Final = frozenset(
    {SightingWord.LOOKUP_FAILED, SightingWord.MISCONFIGURED, SightingWord.RATE_LIMITED}
)
SETTLED: Final = frozenset(
    {ClaimState.COMPLETED, ClaimState.NOT_EXECUTED, ClaimState.CONFLICTED, ClaimState.CLOSED}
)
_STATES: Final = "SELECT id, state::text, object FROM ledger_claim"
_SIGHTINGS: Final = """
SELECT claim_id, seq, extract(epoch FROM at)::float8, word::text, coalesce(counts, false),
  coalesce(objects_seen, '{}'), coalesce(data, '{}')::text
FROM ledger_event WHERE kind = 'sighting' ORDER BY claim_id, seq
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """One call as it was made. `reference` names its effect where no marker can."""

    case: Case
    claim_id: UUID
    asked_minor: int
    reference: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One answer as it is on record. `at` is the instant in seconds since 1970, `text` everything
    that is kept beside it."""

    seq: int
    at: float
    word: SightingWord
    counts: bool
    objects: frozenset[str]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded:
    """What the ledger holds of one call."""

    state: ClaimState
    object: str | None
    sightings: tuple[Sighting, ...] = ()

    def knows(self, object_id: str) -> bool:
        """Whether the object is on record, however it was judged."""
        return self.object == object_id or any(
            object_id in one.objects or f'"{object_id}"' in one.text for one in self.sightings
        )


@dataclass(slots=True)
class Account:
    """What a soak came to. Each sentence is one fault."""

    wrong_verdicts: list[str] = field(default_factory=list)
    lost_sightings: list[str] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        return not (self.wrong_verdicts or self.lost_sightings or self.figures["violations"])

    def to_json(self) -> dict[str, Any]:
        return {
            "claims": self.figures["claims"],
            "wrong_verdicts": len(self.wrong_verdicts),
            "lost_sightings": len(self.lost_sightings),
            **{name: value for name, value in self.figures.items() if name != "claims"},
            "faults": [*self.wrong_verdicts, *self.lost_sightings][:SENTENCES_MAX],
        }


def account(played: Sequence[Played], truth: Iterable[Mapping[str, Any]], seen: Seen) -> Account:
    """Compares, call by call. Nothing in it asks the product what it thinks of itself."""
    recorded, effects = _recorded(), _effects(played, truth)
    told = Account()
    for one in played:
        record, own = recorded[one.claim_id], effects[one.claim_id]
        fault = wrong(one, record, own)
        if fault is not None:
            told.wrong_verdicts.append(_named(one, fault))
        told.lost_sightings += [
            _named(one, f"{object_id} was shown and is on no record")
            for object_id in _shown(one, record, own, seen)
            if not record.knows(object_id)
        ]
    told.lost_sightings += _lost_webhooks(seen)
    told.figures = _figures(played, recorded, effects, seen)
    return told


def _shown(
    one: Played, record: Recorded, effects: Sequence[Mapping[str, Any]], seen: Seen
) -> list[str]:
    """The effects of a call that the product was shown when it asked about it, or by webhook."""
    names = (f"cf_{one.claim_id.hex}", one.reference)
    last = max((s.at for s in record.sightings if s.word not in IN_VAIN), default=0.0)
    ids = [str(effect["object_id"]) for effect in effects]
    # A webhook comes to one connection, and speaks of the calls of its tools.
    hears = not one.case.misplaced
    return [
        each
        for each in ids
        if seen.showed(each, asked_by=names, last_look=last) or (hears and seen.told_of(each))
    ]


def wrong(one: Played, record: Recorded, effects: Sequence[Mapping[str, Any]]) -> str | None:
    """Why what the rules made of a call contradicts the provider's count, or None."""
    ids = {effect["object_id"] for effect in effects}
    by_evidence = (_wrong_evidence(sighting, ids) for sighting in record.sightings)
    return next(filter(None, by_evidence), None) or _wrong_state(one, record, effects, ids)


def _wrong_evidence(sighting: Sighting, ids: set[str]) -> str | None:
    if not sighting.counts:
        return None
    if sighting.word is SightingWord.ABSENT and ids:
        return f"evidence {sighting.seq} settled it as absent, the provider counts {_many(ids)}"
    if sighting.word in SHOWN and not sighting.objects <= ids:
        return f"evidence {sighting.seq} settled it by an object that is no effect of it"
    return None


def _wrong_state(
    one: Played, record: Recorded, effects: Sequence[Mapping[str, Any]], ids: set[str]
) -> str | None:
    match record.state:
        case ClaimState.COMPLETED if len(ids) != 1:
            return f"it happened, says the ledger, the provider counts {_many(ids)}"
        case ClaimState.COMPLETED if _other_amount(one, effects):
            return f"it happened as asked, says the ledger: {one.asked_minor} was asked"
        case ClaimState.NOT_EXECUTED if ids:
            return f"it did not happen, says the ledger, the provider counts {_many(ids)}"
        case ClaimState.CONFLICTED if len(ids) < 2:
            return f"two effects, says the ledger, the provider counts {_many(ids)}"
        case _:
            return None


def _other_amount(one: Played, effects: Sequence[Mapping[str, Any]]) -> bool:
    found = RAILS[one.case.rail].minor_of(effects[0])
    return found is not None and found != one.asked_minor


def _named(one: Played, fault: str) -> str:
    return f"{one.case.rail} {one.case.number} ({one.case.fate}, {one.claim_id}): {fault}"


def _many(ids: set[str]) -> str:
    return ", ".join(sorted(ids)) or "nothing"


def _recorded() -> dict[UUID, Recorded]:
    sightings: dict[UUID, list[Sighting]] = defaultdict(list)
    with database.cursor() as cursor:
        cursor.execute(_SIGHTINGS)
        for claim_id, seq, at, word, counts, objects, text in cursor.fetchall():
            kept = Sighting(
                seq=seq,
                at=at,
                word=SightingWord(word),
                counts=counts,
                objects=frozenset(objects),
                text=text,
            )
            sightings[claim_id].append(kept)
        cursor.execute(_STATES)
        rows = cursor.fetchall()
    return {
        claim_id: Recorded(
            state=ClaimState(state), object=named, sightings=tuple(sightings[claim_id])
        )
        for claim_id, state, named in rows
    }


def _effects(
    played: Sequence[Played], truth: Iterable[Mapping[str, Any]]
) -> dict[UUID, list[Mapping[str, Any]]]:
    by_reference = {one.reference: one.claim_id for one in played if one.reference}
    found: dict[UUID, list[Mapping[str, Any]]] = {one.claim_id: [] for one in played}
    for effect in truth:
        marked = read_marker(str(effect["marker"] or ""))
        claim_id = marked[0] if marked else by_reference.get(str(effect.get("reference", "")))
        if claim_id in found:
            found[claim_id].append(effect)
    return found


def _lost_webhooks(seen: Seen) -> list[str]:
    kept = set(WebhookDelivery.objects.values_list("event_id", flat=True))
    return [
        f"the webhook {event} was taken and is not kept"
        for event in seen.events
        if event not in kept
    ]


# Figures


def _figures(
    played: Sequence[Played],
    recorded: Mapping[UUID, Recorded],
    effects: Mapping[UUID, Sequence[Mapping[str, Any]]],
    seen: Seen,
) -> dict[str, Any]:
    sightings = [s for one in played for s in recorded[one.claim_id].sightings]
    triggers = Counter(json.loads(one.text).get("trigger", "other") for one in sightings)
    rails: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for one in played:
        record, row = recorded[one.claim_id], rails[one.case.rail]
        row["claims"] += 1
        row["effects"] += len(effects[one.claim_id])
        row["looked"] += len(record.sightings)
        row[record.state] += 1
    settled = sum(recorded[one.claim_id].state in SETTLED for one in played)
    return {
        "claims": len(played),
        "lookups": len(sightings),
        "settled_by_rule": settled,
        "still_unknown": len(played) - settled,
        "effects": sum(len(own) for own in effects.values()),
        "states": _sorted(Counter(str(recorded[one.claim_id].state) for one in played)),
        "words": _sorted(Counter(str(one.word) for one in sightings)),
        "triggers": _sorted(triggers),
        "fates": _sorted(Counter(str(one.case.fate) for one in played)),
        "misplaced": sum(one.case.misplaced for one in played),
        "rails": {name: dict(row) for name, row in sorted(rails.items())},
        "reads_at_provider": _sorted(seen.reads),
        "read_faults": _sorted(seen.faults),
        "webhooks": {**_sorted(seen.webhooks), "events": len(seen.events)},
        "violations": [],
    }


def _sorted(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items()))
