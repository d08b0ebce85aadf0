"""Canonical cases: which argument texts are the same call, and which only look alike."""

from __future__ import annotations

import json
from typing import Any, Final

from effects.core.canonical import (
    NO_RULES,
    ArgumentRules,
    Refused,
    canonical_text,
    parse_arguments,
)
from effects.core.identity import CallFacts, identities
from effects.core.similar import similar
from tests.cases.bank import to_text
from tests.cases.fields import Fault, Fields, Findings
from tests.support.stack import ROOT

VECTORS: Final = ROOT / "docs" / "canonical-form-vectors.json"

Pair = tuple[str, str]


def judge_pairs(given: Fields, expected: Fields, found: Findings) -> None:
    pairs = [
        _pair(given.at(f"args_pairs[{number}]"), pair, found)
        for number, pair in enumerate(given.take("args_pairs", list))
    ]
    alike = given.take("similar", list, [])
    for number, said in enumerate(alike):
        where = given.at(f"similar[{number}]")
        _judge_similar(where, said, pairs, found)
    if given.has("tool_config_variant"):
        config = Fields(given.at("tool_config_variant"), given.take("tool_config_variant", dict))
        _judge_rules(config, pairs, {place for place, is_alike in alike if is_alike}, found)
    if given.has("vectors"):
        given.take("vectors", str)
        _judge_vectors(found)


def _pair(where: str, said: Any, found: Findings) -> Pair:
    pair = Fields(where, said)
    one, other = pair.take("a", str), pair.take("b", str)
    same = pair.take("same_key", bool)
    pair.finish()
    try:
        texts = [canonical_text(parse_arguments(text)) for text in (one, other)]
        keys = [_key(text) for text in (one, other)]
    except Refused as refused:
        found.check(where, f"same_key {same}", f"{refused.code}: {refused}", holds=False)
        return one, other
    found.equal(f"{where} canonical text", same, texts[0] == texts[1])
    found.equal(f"{where} key", same, keys[0] == keys[1])
    return one, other


def _key(arguments: str, rules: ArgumentRules = NO_RULES) -> bytes | None:
    facts = CallFacts(
        workspace=1, tool="t", arguments=arguments, conversation="c", turn_index=1, rules=rules
    )
    return identities(facts).turn


def _judge_similar(where: str, said: Any, pairs: list[Pair], found: Findings) -> None:
    match said:
        case [int(place), bool(is_alike)] if 0 <= place < len(pairs):
            one, other = (parse_arguments(text) for text in pairs[place])
            why = similar(one, other)
            found.check(where, f"similar: {is_alike}", sorted(why), holds=bool(why) is is_alike)
        case _:
            raise Fault(where, "is no [place of a pair, whether they look alike]")


def _judge_rules(config: Fields, pairs: list[Pair], alike: set[int], found: Findings) -> None:
    """Under the tool's own rules exactly the pairs that look alike are one call."""
    rules = ArgumentRules(
        volatile=tuple(config.take("volatile", list, [])),
        drop_null=tuple(config.take("drop_null", list, [])),
        defaults={n: to_text(value) for n, value in config.take("defaults", dict, {}).items()},
        instants=tuple(config.take("datetime", list, [])),
    )
    config.finish()
    for place, (one, other) in enumerate(pairs):
        same = _key(one, rules) == _key(other, rules)
        found.equal(f"{config.where} pair {place} same_key", place in alike, same)


def _judge_vectors(found: Findings) -> None:
    """The published vectors are what the code gives."""
    published = json.loads(VECTORS.read_text(encoding="utf-8"))
    for vector in published["vectors"]:
        text = vector["arguments"]
        facts = CallFacts(
            workspace=1, tool=published["tool"], arguments=text, conversation="c", turn_index=1
        )
        got = {
            "arguments": text,
            "canonical": canonical_text(parse_arguments(text)),
            "args.v1": identities(facts).arguments.hex(),
        }
        found.equal(f"the published vector of {text[:40]!a}", vector, got)
