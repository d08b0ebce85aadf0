"""The keys of the desk: what each does, and which keys a person has instead of the usual ones.

Whoever signs in has their own keys in their session; where those are kept is not known here.
None of them commits a decision: what decides is confirmed in a dialog.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from django.http import HttpRequest

KEYS_IN_SESSION: Final = "keys"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyAction:
    """Something that a key does. `usual` is its key where a person has no other, and the name by
    which pages know it (`data-key`)."""

    words: str
    usual: str


ROWS: Final = (
    KeyAction(words="Next row", usual="j"),
    KeyAction(words="Previous row", usual="k"),
    KeyAction(words="Select, with Shift a range", usual="x"),
)
ANYWHERE: Final = (
    KeyAction(words="Search", usual="/"),
    KeyAction(words="Pause or resume live updates", usual="r"),
    KeyAction(words="This sheet", usual="?"),
    KeyAction(words="Go to a page, with its key after it", usual="g"),
)
ON_A_CALL: Final = (
    KeyAction(words="Take", usual="t"),
    KeyAction(words="Ask the provider", usual="a"),
    KeyAction(words="Snooze", usual="s"),
    KeyAction(words="Write a note", usual="n"),
    *(KeyAction(words=f"Pick decision {number}", usual=str(number)) for number in range(1, 10)),
)
GROUPS: Final = {"Rows": ROWS, "On a call": ON_A_CALL, "Anywhere": ANYWHERE}
ACTIONS: Final = tuple(action for actions in GROUPS.values() for action in actions)
BY_USUAL: Final = {action.usual: action for action in ACTIONS}


class Refused(Exception):
    """Keys that cannot be: `errors` has a sentence for each usual key at fault."""

    def __init__(self, errors: dict[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = errors


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnKeys:
    """A person's keys. `changed` has, for the usual key of an action, the one that they took
    instead; an empty one: none at all. `on` false: no key does anything."""

    on: bool = True
    changed: Mapping[str, str] = field(default_factory=dict)

    def of(self, usual: str) -> str:
        """The key of the action whose usual key this is."""
        return self.changed.get(usual, usual)

    @property
    def by_key(self) -> dict[str, str]:
        """For each key that does something, the usual key of what it does."""
        return {key: usual for usual in BY_USUAL if (key := self.of(usual))}

    def to_keep(self) -> dict[str, Any]:
        return {"on": self.on, "keys": dict(self.changed)}


def own_keys(request: HttpRequest | None) -> OwnKeys:
    """The keys of the person who asks: the usual ones where they have no others."""
    kept = getattr(request, "session", {}).get(KEYS_IN_SESSION)
    return read_kept(kept) if isinstance(kept, dict) else OwnKeys()


def read_kept(kept: Mapping[str, Any]) -> OwnKeys:
    """Keys as they were kept; an action that is none any more is left out."""
    changed = {usual: key for usual, key in kept.get("keys", {}).items() if usual in BY_USUAL}
    return OwnKeys(on=kept.get("on", True) is not False, changed=changed)


def choose(typed: Mapping[str, str]) -> dict[str, str]:
    """The keys that differ from the usual ones, of what was typed for each usual key.

    Raises `Refused` where something is no single key, or two actions would have the same one.
    """
    keys = {usual: typed.get(usual, usual).strip() for usual in BY_USUAL}
    errors = {
        usual: f"{BY_USUAL[usual].words}: one character, such as {usual}, or nothing for no key."
        for usual, key in keys.items()
        if len(key) > 1 or not key.isprintable()
    }
    # Shift with the key that selects is a key of its own.
    keys_taken = keys | {"Shift+x": keys["x"].upper() if keys["x"].upper() != keys["x"] else ""}
    for usual, others in _doubles(keys_taken).items():
        if usual in BY_USUAL and usual not in errors:
            errors[usual] = (
                f"{BY_USUAL[usual].words}: the key {keys[usual]} is that of "
                f"{' and '.join(others)}, too. Each needs its own."
            )
    if errors:
        raise Refused(errors)
    return {usual: key for usual, key in keys.items() if key != usual}


def _doubles(keys: Mapping[str, str]) -> dict[str, list[str]]:
    """For each action whose key another has as well, what those do."""
    found: dict[str, list[str]] = {}
    for usual, key in keys.items():
        others = [
            _words(other) for other, its in keys.items() if key and its == key and other != usual
        ]
        if others:
            found[usual] = others
    return found


def _words(usual: str) -> str:
    return f"“{BY_USUAL[usual].words}”" if usual in BY_USUAL else "selecting a range"


def shown(keys: OwnKeys, actions: Iterable[KeyAction]) -> list[tuple[str, str]]:
    """What each action is, and its key as this person has it; without a key it is left out."""
    return [(action.words, keys.of(action.usual)) for action in actions if keys.of(action.usual)]
