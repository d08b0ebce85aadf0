"""What the cases about JSON say to people (tests/cases, J*): reading and comparing arguments.

Their pairs, bodies and events are judged in `tests/cases`; here stands what no table can say.
"""

import json
import sys
from typing import Any

import pytest

from effects.core.canonical import (
    Number,
    Refused,
    canonical_text,
    parse_arguments,
    parse_json,
)
from effects.core.similar import similar
from tests.cases.at_hand import the_case


def bodies(case_id: str) -> list[str]:
    found: list[str] = the_case(case_id).input["raw_bodies"]
    return found


@pytest.mark.case("J01")
def test_numbers_and_words_are_never_mixed_up() -> None:
    """Python's True equals 1; a claim that merged the two would swallow a payment."""
    assert parse_arguments('{"h":true}') != parse_arguments('{"h":1}')
    assert parse_arguments('{"h":"1e0"}') != {"h": Number("1e0")}


@pytest.mark.case("J02")
def test_members_are_in_the_order_of_their_characters_and_lists_in_their_own() -> None:
    """UTF-16 sorts a character outside the basic plane before U+FB33; code points do not."""
    text = '{"\N{GRINNING FACE}":[2,1],"\N{HEBREW LETTER DALET WITH DAGESH}":[1,2]}'
    written = canonical_text(parse_arguments(text))
    assert written.index("\N{HEBREW LETTER DALET WITH DAGESH}") < written.index("\N{GRINNING FACE}")
    assert written.index("[2e0,1e0]") > written.index("[1e0,2e0]")


@pytest.mark.case("J04")
@pytest.mark.parametrize("written", ["0.00001", "1e-5", "1E-05", "10e-6"])
def test_no_languages_own_printing_of_floats_is_used(written: str) -> None:
    assert canonical_text(parse_arguments(f'{{"p":{written}}}')) == '{"p":1e-5}'


@pytest.mark.case("J04")
def test_an_exponent_is_never_written_out_in_digits() -> None:
    assert canonical_text(parse_arguments('{"p":1e999999999}')) == '{"p":1e999999999}'


BODIES: dict[str, list[str | None]] = {
    "J06": ["lone_surrogate", "lone_surrogate", None],
    "J07": ["nan_or_infinity", "nan_or_infinity", None, None, None],
    "J08": ["duplicate_member"],
}


@pytest.mark.case("J06", "J07", "J08")
@pytest.mark.parametrize(
    ("body", "code"),
    [
        pytest.param(body, code, id=f"{case_id}-{index}")
        for case_id, codes in BODIES.items()
        for index, (body, code) in enumerate(zip(bodies(case_id), codes, strict=True))
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


@pytest.mark.case("J06")
def test_a_pair_of_surrogates_in_capitals_is_its_character() -> None:
    assert "\N{GRINNING FACE}" in canonical_text(parse_json(bodies("J06")[2]))


@pytest.mark.case("J07")
def test_a_number_beyond_any_float_keeps_its_value() -> None:
    written = [canonical_text(parse_json(body)) for body in bodies("J07")[2:]]
    for text, number in zip(written, ("1e999", "1e200000", "1e5000"), strict=True):
        assert f'"score":{number}' in text


@pytest.mark.case("J08")
@pytest.mark.parametrize(
    "arguments",
    ['{"a":1,"a":2}', '{"a":1,"a":1}', '{"x":[{"y":{"a":1,"a":2}}]}', '{"a":1,"\\u0061":2}'],
)
def test_a_member_that_stands_twice_is_found_at_any_depth_and_after_escapes(arguments: str) -> None:
    with pytest.raises(Refused, match=r'"(a|\\u0061)"') as refused:
        parse_arguments(arguments)
    assert refused.value.code == "duplicate_member"


@pytest.mark.case("J09")
def test_a_number_without_end_is_refused_with_the_limit() -> None:
    recipe = the_case("J09").input["raw_body_recipe"]
    body = recipe["prefix"] + recipe["repeat"] * recipe["times"] + recipe["suffix"]
    limit = sys.get_int_max_str_digits()
    with pytest.raises(Refused, match="DIGITS_MAX, 1000") as refused:
        parse_json(body)
    assert (refused.value.code, refused.value.at) == ("too_many_digits", len(recipe["prefix"]))
    assert sys.get_int_max_str_digits() == limit


def outcome(arguments: str) -> str:
    try:
        parse_arguments(arguments)
    except Refused as refused:
        return str(refused.code)
    return "accepted"


@pytest.mark.case("J10")
@pytest.mark.parametrize("interpreters", [200, 1000, 20_000])
def test_the_depth_of_arguments_is_ours_and_not_the_interpreters(interpreters: int) -> None:
    recipes: list[dict[str, Any]] = the_case("J10").input["raw_body_recipes"]
    nested = [
        recipe["repeat"] * recipe["times"] + "0" + recipe["repeat_close"] * recipe["times"]
        for recipe in recipes
    ]
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(interpreters, 150 + deep()))
    try:
        outcomes = [outcome(f'{{"result":{text}}}') for text in nested]
    finally:
        sys.setrecursionlimit(before)
    assert outcomes == ["accepted", "too_deep", "too_deep", "too_deep"]


def deep() -> int:
    """How many frames stand above this one: the tests' own."""
    frame, count = sys._getframe(), 0  # noqa: SLF001 - nothing else counts frames.
    while frame := frame.f_back:  # type: ignore[assignment] # the last one has none before it.
        count += 1
    return count


@pytest.mark.case("J11", "J12")
@pytest.mark.parametrize(
    ("case_id", "said"),
    [
        ("J11", [["unicode_form"], ["unicode_form"], ["outer_space"]]),
        ("J12", [["null_or_absent"], ["only_in_one"], ["same_moment"], ["same_moment"], []]),
    ],
)
def test_what_looks_alike_says_in_which_way(case_id: str, said: list[list[str]]) -> None:
    pairs = the_case(case_id).input["args_pairs"]
    found = [similar(parse_arguments(pair["a"]), parse_arguments(pair["b"])) for pair in pairs]
    assert [sorted(map(str, ways)) for ways in found] == said


@pytest.mark.case("J11")
def test_identity_composes_nothing() -> None:
    composed = canonical_text(parse_arguments('{"n":"caf\u00e9"}'))
    decomposed = canonical_text(parse_arguments('{"n":"cafe\u0301"}'))
    assert composed != decomposed
    assert "e\u0301" in decomposed


@pytest.mark.case("J12")
def test_a_text_that_looks_like_a_date_is_a_text_without_a_rule() -> None:
    text = '{"at":"2026-03-02T10:00:00.000Z"}'
    assert json.loads(canonical_text(parse_arguments(text))) == json.loads(text)


@pytest.mark.parametrize(
    ("one", "other", "ways"),
    [
        pytest.param('{"a":1}', '{"a":1.0}', ["equal"], id="equal"),
        pytest.param('{"a":1}', '{"a":2}', [], id="another number"),
        pytest.param('{"a":"x"}', '{"a":"X"}', [], id="another case"),
        pytest.param('{"a":"1"}', '{"a":1}', [], id="a text and a number"),
        pytest.param('{"a":true}', '{"a":1}', [], id="true and one"),
        pytest.param('{"a":1,"b":2}', '{"a":1,"c":2}', [], id="each says what the other lacks"),
        pytest.param('{"a":1}', "{}", [], id="nothing in common"),
        pytest.param('{"a":[1]}', '{"a":[1,2]}', [], id="a longer list"),
        pytest.param('{"a":[" x"]}', '{"a":["x"]}', ["outer_space"], id="inside a list"),
        pytest.param('{"a":{"b":null}}', '{"a":{}}', ["null_or_absent"], id="inside an object"),
        pytest.param(
            '{"a":" e\u0301","b":null}',
            '{"a":"\u00e9"}',
            ["null_or_absent", "outer_space", "unicode_form"],
            id="in three ways",
        ),
    ],
)
def test_two_argument_lists_look_alike_or_they_do_not(
    one: str, other: str, ways: list[str]
) -> None:
    first, second = parse_arguments(one), parse_arguments(other)
    assert sorted(map(str, similar(first, second))) == ways
    assert similar(second, first) == similar(first, second)
