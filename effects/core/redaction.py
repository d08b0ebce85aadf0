"""Hides parts of a text before it is stored: by rules, and secrets that everybody knows.

What is not hidden stays as it was received, byte for byte: digits, order, spaces. In place of a
value stands `....`, or `....4242` for a long number. What was hidden is handed back with its place,
so that it can be sealed and put in again exactly (`restored`).

Identities are made of the exact text before this, so two values that look alike once they are
hidden stay two (ADR 1, ADR 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from effects.core.redaction_paths import Path
from effects.core.redaction_scan import scan
from effects.core.redaction_secrets import (
    EVERY_SECRET,
    Secret,
    is_stand_in,
    may_hold_a_secret,
    stand_in,
)
from effects.core.redaction_words import KNOWN_CHARACTERS_MIN, Edit, Looking

__all__ = [
    "EVERY_SECRET",
    "FOUND_MAX",
    "NO_REDACTION",
    "Found",
    "Mode",
    "Redacted",
    "Redaction",
    "Rule",
    "Secret",
    "Where",
    "is_stand_in",
    "redact",
    "restored",
    "stand_in",
]

FOUND_MAX: Final = 1000
"""Most values of one text that are hidden by themselves; beyond, the whole text is one value."""


class Where(StrEnum):
    """Which texts a rule is about."""

    ARGUMENTS = "arguments"
    RESULTS = "results"
    BODIES = "bodies"  # what providers answered or sent
    EVENTS = "events"  # what ledgers kept elsewhere sent


class Mode(StrEnum):
    """`hide`: kept sealed, and revealed to whoever may see it. `drop`: never kept."""

    HIDE = "hide"
    DROP = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    path: Path
    mode: Mode = Mode.HIDE


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Everything that is hidden in one text: rules, secrets that need no rule, and values that were
    hidden before (`known`). `keeps` are beginnings of places that are never touched."""

    rules: tuple[Rule, ...] = ()
    secrets: frozenset[Secret] = EVERY_SECRET
    known: tuple[str, ...] = ()
    keeps: tuple[tuple[str | int, ...], ...] = ()


NO_REDACTION: Final = Redaction(secrets=frozenset())


@dataclass(frozen=True, slots=True)
class Found:
    """One value that is hidden. `at` is where its stand-in begins in the redacted text, in
    characters, and `length` how long that is; `raw` is what stood there, as it was written, and
    `value` the value itself. Of a dropped one both are empty."""

    path: str
    at: int
    length: int
    raw: str
    value: str
    mode: Mode


@dataclass(frozen=True, slots=True)
class Redacted:
    text: str
    found: tuple[Found, ...] = ()


def redact(text: str, redaction: Redaction) -> Redacted:
    """The text with everything hidden that `redaction` says, and what that was. Total: any text."""
    if not redaction.rules:
        known = any(value in text for value in redaction.known)
        if not known and not (redaction.secrets and may_hold_a_secret(text)):
            return Redacted(text)
    looking = Looking(
        paths=tuple(rule.path for rule in redaction.rules),
        secrets=redaction.secrets,
        known=tuple(one for one in redaction.known if len(one) >= KNOWN_CHARACTERS_MIN),
        keeps=redaction.keeps,
    )
    edits = scan(text, looking)
    if len(edits) > FOUND_MAX:
        edits = [Edit(0, len(text), '"...."', "$", text, edits[0].cause)]
    return _applied(text, edits, redaction) if edits else Redacted(text)


def _applied(text: str, edits: Sequence[Edit], redaction: Redaction) -> Redacted:
    parts: list[str] = []
    found: list[Found] = []
    at = length = 0
    for edit in edits:
        parts += (text[at : edit.start], edit.by)
        length += edit.start - at
        mode = redaction.rules[edit.cause].mode if isinstance(edit.cause, int) else Mode.HIDE
        raw, value = text[edit.start : edit.end], edit.value
        if mode is Mode.DROP:
            raw = value = ""
        found.append(Found(edit.path, length, len(edit.by), raw, value, mode))
        length += len(edit.by)
        at = edit.end
    parts.append(text[at:])
    return Redacted("".join(parts), tuple(found))


def restored(text: str, found: Sequence[Found]) -> str:
    """The text as it was before `redact`; what was dropped stays as it is shown."""
    parts: list[str] = []
    at = 0
    for one in found:
        if one.mode is Mode.DROP:
            continue
        parts += (text[at : one.at], one.raw)
        at = one.at + one.length
    parts.append(text[at:])
    return "".join(parts)
