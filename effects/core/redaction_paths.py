"""Where a rule applies: a subset of JSONPath (RFC 9535), and how it is followed while text is read.

    $.a.b   $['a']['b']   $.items[0]   $.items[*]   $.*   $..card   $..['card no']

Filters, slices, unions and negative places are refused by name. A string that holds JSON is read as
what it holds, so `$.body.card` finds the card in an escaped body too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias

from effects.core.exact_json import unstorable_at

__all__ = ["PATH_CHARACTERS_MAX", "STEPS_MAX", "BadPath", "Path", "Step", "parse_path", "written"]

PATH_CHARACTERS_MAX: Final = 300
STEPS_MAX: Final = 30


class BadPath(ValueError):
    """A path that is not read here. `at` is the offset of what is wrong, from 0."""

    def __init__(self, sentence: str, at: int) -> None:
        super().__init__(sentence, at)
        self.sentence = sentence
        self.at = at

    # typing.override came with Python 3.12; agents run 3.11 too.
    def __str__(self) -> str:  # type: ignore[explicit-override]
        return f"{self.sentence} (offset {self.at})."


@dataclass(frozen=True, slots=True)
class Step:
    """One step down: to the member or place `key`, to any (None), at any depth if `deep`."""

    key: str | int | None
    deep: bool = False

    def fits(self, key: str | int) -> bool:
        return self.key is None or (type(self.key) is type(key) and self.key == key)


Path: TypeAlias = tuple[Step, ...]

_NAME: Final = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_\u0080-\U0010ffff-]*")
_QUOTED: Final = re.compile(r"""'((?:[^'\\]|\\['\\])*)'|"((?:[^"\\]|\\["\\])*)\"""")
_PLACE: Final = re.compile(r"0|[1-9][0-9]{0,8}")
_ESCAPED: Final = re.compile(r"\\(.)")


def parse_path(text: str) -> Path:
    """The steps of a path. Raises `BadPath` with what is wrong and where."""
    if len(text) > PATH_CHARACTERS_MAX:
        says = f"The path is longer than PATH_CHARACTERS_MAX, {PATH_CHARACTERS_MAX} characters"
        raise BadPath(says, PATH_CHARACTERS_MAX)
    if not text.startswith("$"):
        raise BadPath("A path begins with $, the whole text", 0)
    unstorable = unstorable_at(text)
    if unstorable is not None:
        raise BadPath("Here stands a character that cannot be stored", unstorable)
    steps: list[Step] = []
    at = 1
    while at < len(text):
        step, at = _step(text, at)
        steps.append(step)
        if len(steps) > STEPS_MAX:
            raise BadPath(f"The path has more steps than STEPS_MAX, {STEPS_MAX}", at)
    return tuple(steps)


def _step(text: str, at: int) -> tuple[Step, int]:
    deep = text.startswith("..", at)
    if deep:
        at += 2
        if text.startswith("[", at):
            return _bracketed(text, at, deep=True)
    elif text.startswith("[", at):
        return _bracketed(text, at, deep=False)
    elif text.startswith(".", at):
        at += 1
    else:
        raise BadPath("A step begins with . or [", at)
    if text.startswith("*", at):
        return Step(None, deep), at + 1
    name = _NAME.match(text, at)
    if name is None:
        raise BadPath("Here a name is missing; write other names as ['the name']", at)
    return Step(name[0], deep), name.end()


def _bracketed(text: str, at: int, *, deep: bool) -> tuple[Step, int]:
    inside = at + 1
    key, end = _key(text, inside)
    if not text.startswith("]", end):
        word = text[end : end + 1]
        if word in {":", ","} or text.startswith("?", inside):
            raise BadPath("Filters, slices and lists of several are not read here", inside)
        raise BadPath("A ] is missing", end)
    return Step(key, deep), end + 1


def _key(text: str, at: int) -> tuple[str | int | None, int]:
    if text.startswith("*", at):
        return None, at + 1
    quoted = _QUOTED.match(text, at)
    if quoted is not None:
        name = quoted[1] if quoted[1] is not None else quoted[2]
        return _ESCAPED.sub(r"\1", name), quoted.end()
    place = _PLACE.match(text, at)
    if place is not None:
        return int(place[0]), place.end()
    if text[at : at + 1] in {"?", ":", "-"}:
        raise BadPath("Filters, slices and places from the end are not read here", at)
    raise BadPath("In brackets stands 'a name', a place such as 0, or *", at)


_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def written(key: str | int) -> str:
    """One step of a place that was found, as a path writes it."""
    if isinstance(key, int):
        return f"[{key}]"
    if _PLAIN.fullmatch(key):
        return f".{key}"
    escaped = key.replace("\\", "\\\\").replace("'", "\\'")
    return f"['{escaped}']"
