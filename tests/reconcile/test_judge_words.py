"""What a judgement says to people, for every meaning and every rule."""

from __future__ import annotations

import re
from pathlib import Path

from ledger.models import Event
from reconcile.judge_facts import Meaning, Rule
from reconcile.judge_words import MEANING_WORDS, RULE_WORDS, judgement_words
from reconcile.templatetags.calls import judged_words
from tests.support.stack import ROOT


def test_every_meaning_and_every_rule_has_words() -> None:
    assert MEANING_WORDS.keys() == set(Meaning)
    assert RULE_WORDS.keys() == set(Rule)


def test_the_page_for_people_lists_every_rule() -> None:
    page = Path(ROOT / "docs" / "judging.md").read_text(encoding="utf-8")

    assert {str(rule) for rule in Rule} <= set(re.findall(r"`([a-z_]+)`", page))


def test_a_judgement_is_one_sentence_and_what_it_rests_on() -> None:
    said = judgement_words("happened", "found", (4, 7))

    assert said.startswith("Then known: it happened, because an object that matches")
    assert said.endswith("Rests on evidence 4 and 7.")
    assert "Rests" not in judgement_words("unclear", "nobody_asked", ())
    assert "3, 4, 5, 6, 7 and others" in judgement_words("happened", "found", (3, 4, 5, 6, 7, 8))


def test_a_sighting_counts_itself_among_what_it_rests_on() -> None:
    data = {"meaning": "happened", "rule": "found", "evidence": [2, 0]}

    assert judged_words(Event(seq=4, data=data)).endswith("Rests on evidence 2 and 4.")
    assert judged_words(Event(seq=4, data=None)) == ""


def test_a_sighting_from_before_rules_had_names_says_nothing() -> None:
    assert judgement_words("happened", "None", (4,)) == ""
    assert judgement_words("", "found", ()) == ""
