"""What a judgement says to people: its meaning and its rule as words."""

from __future__ import annotations

from typing import Final

from reconcile.judge_facts import Meaning, Rule

MEANING_WORDS: Final = {
    Meaning.HAPPENED: "it happened",
    Meaning.DID_NOT_HAPPEN: "it did not happen",
    Meaning.DUPLICATED: "it happened more than once",
    Meaning.DIFFERS: "it is not what was asked for",
    Meaning.PARTLY: "it happened in part",
    Meaning.NOT_YET: "not yet decided",
    Meaning.UNCLEAR: "unclear",
    Meaning.MISCONFIGURED: "unclear, because the look-up is set up wrongly",
    Meaning.UNMAPPED: "unclear, because the provider's word is not known",
}
RULE_WORDS: Final = {
    Rule.TWO_EFFECTS: "different objects are two effects, whenever they were found",
    Rule.TWO_EFFECTS_DOUBTED: "different objects were shown, not yet all of them for certain",
    Rule.NO_LONGER_SO: "the newest reading of the effect shows it otherwise",
    Rule.FOUND: "an object that matches and carries our reference is an effect",
    Rule.FOUND_DOUBTED: "an effect was shown, and waits for a read that confirms it",
    Rule.RECORDED: "the record itself says so: a report or a decision",
    Rule.STATUS_UNMAPPED: "an object is there whose status nobody mapped",
    Rule.PARTLY_DONE: "what was asked for has begun and is not whole",
    Rule.NOT_FINISHED: "an object is there and not finished",
    Rule.FOUND_DIFFERENT: "an object is there and is not what was asked for",
    Rule.STRONG_ABSENCE: "a whole, immediate reading at the right place shows nothing",
    Rule.ABSENCE_WHILE_KEY_HOLDS: "nothing is there, and a late request would meet the same key",
    Rule.ABSENCE_TOO_EARLY: "nothing is there yet, and the provider may still be at work",
    Rule.WEAK_ABSENCE: "not seeing it there does not mean that it is not there",
    Rule.LOOKUP_MISCONFIGURED: "the look-up is set up wrongly, so nothing was learnt",
    Rule.ANSWER_UNMAPPED: "the answer could not be understood, so nothing was learnt",
    Rule.NO_ANSWER: "nobody answered, so nothing was learnt",
    Rule.NOBODY_ASKED: "nobody has asked yet",
}
NUMBERS_SHOWN_MAX: Final = 5


def judgement_words(meaning: str, rule: str, numbers: tuple[int, ...]) -> str:
    """One sentence, or nothing for a sighting that was recorded before rules had names."""
    if meaning not in list(Meaning) or rule not in list(Rule):
        return ""
    shown = [str(number) for number in numbers[:NUMBERS_SHOWN_MAX]]
    if len(numbers) > len(shown):
        shown.append("others")
    listed = " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
    rests = f" Rests on evidence {listed}." if listed else ""
    known = MEANING_WORDS[Meaning(meaning)]
    return f"Then known: {known}, because {RULE_WORDS[Rule(rule)]}.{rests}"
