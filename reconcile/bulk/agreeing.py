"""Which evidence is strong and agrees, so that many calls can be resolved on it in one go. Pure."""

from __future__ import annotations

from typing import Final

from effects.core.vocabulary import SightingWord
from reconcile.action_names import ActionName
from reconcile.situation import Evidence, Situation, Strength

_SAYS: Final = {
    ActionName.HAPPENED: SightingWord.FOUND,
    ActionName.NOT_HAPPENED: SightingWord.ABSENT,
}
_SILENT: Final = frozenset(
    {
        SightingWord.LOOKUP_FAILED,
        SightingWord.MISCONFIGURED,
        SightingWord.RATE_LIMITED,
        SightingWord.UNMAPPED,
    }
)
"""Answers that say nothing in either direction."""


class Disagrees(Exception):
    """The evidence of a call does not carry the verdict by itself; the text says why."""


def evidence_for(name: ActionName, situation: Situation) -> tuple[Evidence, ...]:
    """The answers that the verdict rests on: each strong, all saying the same. Raises `Disagrees`.

    One weaker answer, or one that says anything else, leaves the call to a person who reads it.
    """
    telling = [item for item in situation.standing if item.word not in _SILENT]
    if not telling:
        raise Disagrees("No answer of the provider tells anything about it.")
    if any(item.word is not _SAYS[name] for item in telling):
        raise Disagrees("Its answers do not all say the same.")
    if any(item.strength is not Strength.STRONG for item in telling):
        raise Disagrees("Not every answer about it is strong.")
    if name is ActionName.NOT_HAPPENED:
        if not situation.strong_absence:
            raise Disagrees("No strong absence covers its newest attempt.")
        return situation.strong_absence
    if len({item.objects for item in telling}) != 1 or len(telling[0].objects) != 1:
        raise Disagrees("Its answers do not name one and the same object.")
    return situation.found
