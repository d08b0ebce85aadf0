"""Cases from other people's bug reports (tests/cases, J*) about reading and comparing arguments."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from effects.core.canonical import (
    ArgumentRules,
    Number,
    Refused,
    canonical_text,
    parse_arguments,
    parse_json,
)
from effects.core.identity import RECIPES, CallFacts, identities

CASES = Path(__file__).parents[2] / "cases"


def case(number: str) -> dict[str, Any]:
    (path,) = CASES.glob(f"{number}_*.json")
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def pairs() -> list[Any]:
    return [
        pytest.param(pair["a"], pair["b"], pair["same_key"], id=f"{number}-{index}")
        for number in ("J01", "J02", "J04", "J11", "J12")
        for index, pair in enumerate(case(number)["input"]["args_pairs"])
    ]


@pytest.mark.parametrize(("one", "other", "same"), pairs())
def test_two_texts_give_one_key_exactly_if_the_case_says_so(
    one: str,
    other: str,
    same: bool,  # noqa: FBT001, a column of the table
) -> None:
    first, second = canonical_text(parse_arguments(one)), canonical_text(parse_arguments(other))
    assert (first == second) is same


def test_j12_a_tools_own_rules_make_the_first_four_pairs_equal() -> None:
    config = case("J12")["input"]["tool_config_variant"]
    rules = ArgumentRules(
        drop_null=tuple(config["drop_null"]),
        defaults={name: json.dumps(value) for name, value in config["defaults"].items()},
        instants=tuple(config["datetime"]),
    )
    alike = [
        parse_arguments(pair["a"], rules) == parse_arguments(pair["b"], rules)
        for pair in case("J12")["input"]["args_pairs"]
    ]
    assert alike == [True, True, True, True, False]


BODIES: dict[str, list[str | None]] = {
    "J06": ["lone_surrogate", "lone_surrogate", None],
    "J07": ["nan_or_infinity", "nan_or_infinity", None, None, None],
    "J08": ["duplicate_member"],
}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(body, code, id=f"{number}-{index}")
        for number, codes in BODIES.items()
        for index, (body, code) in enumerate(
            zip(case(number)["input"]["raw_bodies"], codes, strict=True)
        )
    ],
)
def test_a_body_is_read_or_refused_with_its_code_and_place(body: str, code: str | None) -> None:
    if code is None:
        canonical_text(parse_json(body)).encode()
        return
    with pytest.raises(Refused) as refused:
        parse_json(body)
    assert refused.value.code == code
    assert refused.value.at is not None
    assert 0 < refused.value.at < len(body)


def test_j06_a_pair_of_surrogates_in_capitals_is_its_character() -> None:
    assert "\U0001f600" in canonical_text(parse_json(case("J06")["input"]["raw_bodies"][2]))


def test_j07_a_number_beyond_any_float_keeps_its_value() -> None:
    bodies = case("J07")["input"]["raw_bodies"][2:]
    written = [canonical_text(parse_json(body)) for body in bodies]
    for text, number in zip(written, ("1e999", "1e200000", "1e5000"), strict=True):
        assert f'"score":{number}' in text


def test_j08_the_refusal_names_the_member() -> None:
    with pytest.raises(Refused, match='"amount"'):
        parse_json(case("J08")["input"]["raw_bodies"][0])


def test_j09_a_number_without_end_is_refused_with_the_limit() -> None:
    recipe = case("J09")["input"]["raw_body_recipe"]
    body = recipe["prefix"] + recipe["repeat"] * recipe["times"] + recipe["suffix"]
    with pytest.raises(Refused, match="DIGITS_MAX, 1000") as refused:
        parse_json(body)
    assert (refused.value.code, refused.value.at) == ("too_many_digits", len(recipe["prefix"]))


def test_j10_the_depth_of_arguments_is_ours_and_fixed() -> None:
    outcomes = []
    for recipe in case("J10")["input"]["raw_body_recipes"]:
        nested = recipe["repeat"] * recipe["times"] + recipe["middle"]
        nested += recipe["repeat_close"] * recipe["times"]
        try:
            parse_arguments(f'{{"result":{nested}}}')
        except Refused as refused:
            outcomes.append(refused.code)
        else:
            outcomes.append("accepted")
    assert outcomes == ["accepted", "too_deep", "too_deep", "too_deep"]


def asked(event: dict[str, Any]) -> CallFacts:
    return CallFacts(
        workspace=1,
        tool=event["tool"],
        arguments=json.dumps(event["args"]),
        conversation=event["conversation_id"],
        turn_index=event["turn_index"],
        ordinal=event["ordinal"],
        call_id=event["tool_call_id"],
    )


def test_j13_arguments_are_decoded_once_and_never_twice() -> None:
    given = case("J13")
    first_with: dict[bytes | None, str] = {}
    duplicates, rejected = {}, {}
    for event in given["input"]["events"]:
        try:
            turn = identities(asked(event)).turn
        except Refused as refused:
            rejected[event["event_id"]] = refused.code
            continue
        first = first_with.setdefault(turn, event["event_id"])
        if first != event["event_id"]:
            duplicates[event["event_id"]] = first
    assert list(first_with.values()) == given["expected"]["granted"]
    assert duplicates == given["expected"]["duplicates_of"]
    assert rejected == {
        "e3": "arguments_decode_to_a_string",
        "e6": "arguments_not_an_object",
        "e7": "arguments_missing",
    }


def test_j14_a_key_says_by_which_recipe_it_was_made() -> None:
    first, again = (
        identities(replace(asked(event), arguments=text))
        for event, text in zip(
            [event for event in case("J14")["input"]["events"] if event["type"] == "claim"],
            ('{"h":8.0}', '{"h":8}'),
            strict=True,
        )
    )
    assert first.turn == again.turn
    assert RECIPES["turn"] == "turn.v1"


def test_numbers_and_words_are_never_mixed_up() -> None:
    """Python's True equals 1; a claim that merged the two would swallow a payment."""
    assert parse_arguments('{"h":true}') != parse_arguments('{"h":1}')
    assert parse_arguments('{"h":"1e0"}') != {"h": Number("1e0")}
