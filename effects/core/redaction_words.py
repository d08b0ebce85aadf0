"""What is to be replaced in a text, and what of its words is.

`redaction_scan` follows JSON; what is no JSON is read here, by its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from effects.core.redaction_paths import Path, written
from effects.core.redaction_secrets import Secret, secrets_in_words, stand_in

__all__ = [
    "KNOWN_CHARACTERS_MIN",
    "Active",
    "Edit",
    "Looking",
    "apart",
    "edits_in_words",
    "moved",
    "place_in_words",
]

KNOWN_CHARACTERS_MIN: Final = 6
"""A shorter value of a claim is not looked for elsewhere: it would be found everywhere."""

Active: TypeAlias = tuple[tuple[int, int], ...]
"""Rules that may still fit below here: the rule's place among the paths, and its next step."""


@dataclass(frozen=True, slots=True)
class Edit:
    """`text[start:end]` is replaced by `by`. `value` is what is hidden, as its reader would see it;
    `cause` the number of a rule, or the kind of a secret."""

    start: int
    end: int
    by: str
    path: str
    value: str
    cause: int | Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class Looking:
    """What is looked for. `known` are values that were found before and hide wherever they are;
    `keeps` are beginnings of places that are never touched, each a tuple of keys."""

    paths: tuple[Path, ...] = ()
    secrets: frozenset[Secret] = frozenset()
    known: tuple[str, ...] = ()
    keeps: tuple[tuple[str | int, ...], ...] = ()

    def first(self) -> Active:
        return tuple((number, 0) for number in range(len(self.paths)))


def apart(edits: list[Edit]) -> list[Edit]:
    """Of edits that overlap the outermost one."""
    kept: list[Edit] = []
    for edit in sorted(edits, key=lambda one: (one.start, -one.end)):
        if not kept or edit.start >= kept[-1].end:
            kept.append(edit)
    return kept


def moved(edits: Sequence[Edit], by: int) -> Iterator[Edit]:
    for edit in edits:
        yield Edit(edit.start + by, edit.end + by, edit.by, edit.path, edit.value, edit.cause)


def edits_in_words(text: str, looking: Looking, place: tuple[str | int, ...]) -> list[Edit]:
    path = place_in_words(place)
    found = [
        Edit(start, end, stand_in(text[start:end]), path, text[start:end], kind)
        for start, end, kind in secrets_in_words(text, looking.secrets)
    ]
    for value in looking.known:
        at = text.find(value)
        while at >= 0 and len(value) >= KNOWN_CHARACTERS_MIN:
            end = at + len(value)
            found.append(Edit(at, end, stand_in(value), path, value, Secret.NAME))
            at = text.find(value, end)
    return apart(found)


PATH_STEPS_SHOWN_MAX: Final = 20
PATH_CHARACTERS_SHOWN_MAX: Final = 200


def place_in_words(place: tuple[str | int, ...]) -> str:
    """The place in words; of a very deep or long one the end, which names the value."""
    shown = "".join(map(written, place[-PATH_STEPS_SHOWN_MAX:]))
    whole = len(place) <= PATH_STEPS_SHOWN_MAX and len(shown) <= PATH_CHARACTERS_SHOWN_MAX
    return "$" + ("" if whole else "....") + shown[-PATH_CHARACTERS_SHOWN_MAX:]
