"""Two responses of one turn side by side: what the second one says otherwise. Pure.

A turn that is asked again may be answered with the same calls under other ids, with other
arguments, or with other calls. Only the first is a repeat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Change(StrEnum):
    """What differs between a call and the one in its place in the other response."""

    SAME = "same"
    OTHER_TOOL = "other_tool"
    OTHER_ID = "other_id"
    OTHER_ARGUMENTS = "other_arguments"
    OTHER_PLACE = "other_place"
    OTHER_END = "other_end"  # whole in one of them, cut in the other
    LOST = "lost"
    ADDED = "added"

    @property
    def words(self) -> str:
        return _WORDS[self]


_WORDS = {
    Change.SAME: "the same",
    Change.OTHER_TOOL: "another tool under the same id",
    Change.OTHER_ID: "another id",
    Change.OTHER_ARGUMENTS: "other arguments",
    Change.OTHER_PLACE: "another place",
    Change.OTHER_END: "whole in one, cut in the other",
    Change.LOST: "not called again",
    Change.ADDED: "new",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A call as one response announced it; `arguments` is the digest of their bytes."""

    position: int
    tool: str
    call_id: str
    complete: bool
    arguments: bytes
    arguments_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same call in two responses, or one that only one of them has."""

    first: Said | None
    second: Said | None
    changes: tuple[Change, ...]

    @property
    def same(self) -> bool:
        return self.changes == (Change.SAME,)


def compare(first: Sequence[Said], second: Sequence[Said]) -> tuple[Pair, ...]:
    """Every call of both responses once: those of the first in their order, then the new ones.

    A call's partner has its id; else its tool and arguments; else its tool, in their order.
    """
    left = list(second)
    partners: dict[int, Said] = {}
    for alike in (_same_id, _same_call, _same_tool):
        for number, one in enumerate(first):
            if number in partners:
                continue
            partner = next((other for other in left if alike(one, other)), None)
            if partner is not None:
                partners[number] = partner
                left.remove(partner)
    pairs = [_pair(one, partners.get(number)) for number, one in enumerate(first)]
    added = [Pair(first=None, second=other, changes=(Change.ADDED,)) for other in left]
    return (*pairs, *added)


def _same_id(one: Said, other: Said) -> bool:
    return bool(one.call_id) and one.call_id == other.call_id


def _same_call(one: Said, other: Said) -> bool:
    return one.tool == other.tool and one.arguments == other.arguments


def _same_tool(one: Said, other: Said) -> bool:
    return one.tool == other.tool


def _pair(one: Said, other: Said | None) -> Pair:
    if other is None:
        return Pair(first=one, second=None, changes=(Change.LOST,))
    changes = tuple(_changes(one, other))
    return Pair(first=one, second=other, changes=changes or (Change.SAME,))


def _changes(one: Said, other: Said) -> Iterator[Change]:
    if one.tool != other.tool:
        yield Change.OTHER_TOOL
    if one.call_id != other.call_id:
        yield Change.OTHER_ID
    if one.complete != other.complete:
        yield Change.OTHER_END
    elif one.complete and one.arguments != other.arguments:
        # Of two that were both cut nobody knows what the whole would have been.
        yield Change.OTHER_ARGUMENTS
    if one.position != other.position:
        yield Change.OTHER_PLACE
