"""The responses of a turn that was asked more than once, each beside the one before it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ledger.turn_parts.compare import Change, Pair, Said, compare
from ledger.turn_parts.lines import end_words

if TYPE_CHECKING:
    from ledger.models import Call, Stream
    from ledger.turn_parts.loading import TurnFacts

SHOWN_MAX: Final = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Retried:
    """Two responses of one turn. `same`: the second announced the same calls as the first."""

    first: str
    second: str
    first_end: str
    second_end: str
    other_model: str
    pairs: Sequence[Pair]
    summary: str

    @property
    def same(self) -> bool:
        return all(pair.same for pair in self.pairs)


def retried_of(facts: TurnFacts) -> tuple[Retried, ...]:
    """Each response beside the one before it, the newest of them."""
    pairs = list(itertools.pairwise(facts.streams))[-SHOWN_MAX:]
    return tuple(_retried(facts, first, second) for first, second in pairs)


def _retried(facts: TurnFacts, first: Stream, second: Stream) -> Retried:
    pairs = compare(_said(facts, first), _said(facts, second))
    changed = first.model != second.model and bool(first.model and second.model)
    return Retried(
        first=first.name,
        second=second.name,
        first_end=end_words(first.terminal),
        second_end=end_words(second.terminal),
        other_model=f"{first.model}, then {second.model}" if changed else "",
        pairs=pairs,
        summary=_summary(pairs),
    )


def _said(facts: TurnFacts, stream: Stream) -> list[Said]:
    return [_one(call) for call in facts.announced if call.stream_id == stream.pk]


def _one(call: Call) -> Said:
    return Said(
        position=call.position,
        tool=call.tool or "",
        call_id=call.call_id or "",
        complete=call.complete,
        arguments=bytes(call.arguments_digest),
        arguments_bytes=call.arguments_bytes,
    )


def _summary(pairs: Sequence[Pair]) -> str:
    if not pairs:
        return "Neither announced a call."
    counted = {change: sum(change in pair.changes for pair in pairs) for change in Change}
    if counted[Change.SAME] == len(pairs):
        return "Both announced the same calls."
    told = [
        (counted[Change.LOST], "not called again"),
        (counted[Change.ADDED], "new"),
        (counted[Change.OTHER_ARGUMENTS], "with other arguments"),
        (counted[Change.OTHER_ID], "under another id"),
        (counted[Change.OTHER_END], "whole in one and cut in the other"),
        (counted[Change.SAME], "the same"),
    ]
    return f"{', '.join(f'{n} {words}' for n, words in told if n)}.".capitalize()
