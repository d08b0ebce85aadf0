"""From clues to an answer: what nothing rules out stays a candidate, and one candidate is it.

Two laws hold. The order in which evidence is given changes nothing. And an answer that nothing
speaks against never turns into another one when evidence is taken away; it stays, or becomes
undetermined. Where a strong clue outweighs a weak one (a delivery count the gap), `against` says
so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from effects.core.diagnosis.bands import DEFAULTS, Constants
from effects.core.diagnosis.clues import Clue, clues
from effects.core.diagnosis.evidence import Execution, GatewayRecord, Pair, Source
from effects.core.diagnosis.layers import INTENT, LAYERS, Layer
from effects.core.diagnosis.missing import missing

EXECUTIONS_MAX: Final = 1_000
"""Most executions of one group that are compared."""
BEGIN_SKEW_SECONDS: Final = 1.0
"""A request up to this much before an attempt may be that attempt's, by two clocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """What became of one pair. `between` names both executions, `decided_by` the fingerprints
    without which the answer would be open, `against` those that say otherwise. `candidates` are
    empty for an answer and where the evidence contradicts itself; `missing` is what would decide.
    """

    between: tuple[str, str]
    gap_seconds: float
    layer: Layer
    decided_by: tuple[str, ...] = ()
    against: tuple[str, ...] = ()
    candidates: tuple[Layer, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Executions of one operation, or of one business identity."""

    executions: tuple[Execution, ...]
    gateway: tuple[GatewayRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDiagnosis:
    """Three numbers that are not the same, and an answer for each pair of neighbours."""

    operations: int
    app_attempts: int
    provider_requests: int
    pairs: tuple[Diagnosis, ...] = ()


def diagnose(group: Group, constants: Constants = DEFAULTS) -> GroupDiagnosis:
    """Compares neighbours in time: the provider's requests where they are known, because they count
    executions, else what the application did. Raises ValueError above `EXECUTIONS_MAX`."""
    if len(group.executions) > EXECUTIONS_MAX:
        raise ValueError(
            f"{len(group.executions)} executions are more than the limit EXECUTIONS_MAX, "
            f"{EXECUTIONS_MAX}."
        )
    attempts = _of(group, Source.APP)
    requests = _once_each(_of(group, Source.PROVIDER))
    seen = requests if len(requests) > 1 else attempts
    pairs = tuple(
        diagnose_pair(pair, constants) for pair in _pairs(seen, attempts, requests, group.gateway)
    )
    return GroupDiagnosis(
        operations=1 + sum(pair.layer in INTENT for pair in pairs),
        app_attempts=len(attempts),
        provider_requests=len(requests),
        pairs=pairs,
    )


def diagnose_pair(pair: Pair, constants: Constants = DEFAULTS) -> Diagnosis:
    """The layer at which the second was born, if the evidence leaves one."""
    if pair.second.order < pair.first.order:
        raise ValueError(f"{pair.second.name} came before {pair.first.name}.")
    known = clues(pair, constants)
    left = _left(known)
    between = (pair.first.name, pair.second.name)
    if len(left) != 1:
        return Diagnosis(
            between=between,
            gap_seconds=pair.gap_seconds,
            layer=Layer.UNDETERMINED,
            against=_names([clue for clue in known if clue.strong]) if not left else (),
            candidates=tuple(layer for layer in Layer if layer in left),
            missing=missing(pair, left),
        )
    (layer,) = left
    return Diagnosis(
        between=between,
        gap_seconds=pair.gap_seconds,
        layer=layer,
        decided_by=_names(_needed(known, layer)),
        against=_names([clue for clue in known if layer in clue.excludes]),
    )


def _left(known: Sequence[Clue]) -> frozenset[Layer]:
    """What the strong clues leave, and of that what the weak ones leave, if they leave any."""
    certain = LAYERS.difference(*(clue.excludes for clue in known if clue.strong))
    if len(certain) < 2:  # one is an answer, none a contradiction
        return certain
    likely = certain.difference(*(clue.excludes for clue in known if not clue.strong))
    return likely or certain


def _needed(known: Sequence[Clue], layer: Layer) -> list[Clue]:
    """The clues without which the answer would be open: the least telling are left out first."""
    needed = list(known)
    weak_first = sorted(range(len(known)), key=lambda place: (known[place].strong, -place))
    for clue in (known[place] for place in weak_first):
        without = [one for one in needed if one is not clue]
        if _left(without) == {layer}:
            needed = without
    return needed


def _names(found: Sequence[Clue]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for clue in found for name in clue.names))


# Pairs


def _of(group: Group, source: Source) -> list[Execution]:
    return sorted((e for e in group.executions if e.source is source), key=lambda e: e.order)


def _once_each(requests: Sequence[Execution]) -> list[Execution]:
    """One line of a log for each request: the same request id twice is one request."""
    seen: dict[str, Execution] = {}
    for request in requests:
        seen.setdefault(request.request_id or request.name, request)
    return list(seen.values())


def _pairs(
    seen: Sequence[Execution],
    attempts: Sequence[Execution],
    requests: Sequence[Execution],
    gateway: tuple[GatewayRecord, ...],
) -> list[Pair]:
    belongs = {request.name: _attempt_of(request, attempts) for request in requests}
    sent = {attempt.name: attempt.requests_sent for attempt in attempts}
    arrived = Counter(name for name in belongs.values() if name is not None)
    found = []
    for first, second in pairwise(seen):
        owner = belongs.get(first.name)
        found.append(
            Pair(
                first=first,
                second=second,
                attempts=(owner, belongs.get(second.name)),
                requests_sent=sent.get(owner) if owner else None,
                requests=arrived[owner] if owner else None,
                gateway=gateway,
            )
        )
    return found


def _attempt_of(request: Execution, attempts: Sequence[Execution]) -> str | None:
    """The application's attempt that a request belongs to: as its log says, or the last one that
    began before it, if the clocks leave no doubt."""
    if request.attempt is not None:
        return request.attempt
    begun = [one for one in attempts if (request.at - one.at).total_seconds() >= 0]
    soon = any(0 < (one.at - request.at).total_seconds() <= BEGIN_SKEW_SECONDS for one in attempts)
    return begun[-1].name if begun and not soon else None
