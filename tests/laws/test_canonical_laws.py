"""Laws of the canonical form, tried on random arguments: what must hold for every text."""

import re
from fractions import Fraction
from typing import NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from effects.core.canonical import canonical_text, parse_arguments, parse_json
from effects.core.exact_json import Refused
from effects.core.identity import digest

unhurried = settings(deadline=None, max_examples=150)


# A value as it is meant, apart from any text: the judge of what is equal.


class Decimal(NamedTuple):
    """coefficient x 10^power"""

    coefficient: int
    power: int


Meant = bool | str | Decimal | list["Meant"] | dict[str, "Meant"] | None


def essence(meant: Meant) -> object:
    """Something hashable that is equal exactly when two values mean the same."""
    match meant:
        case Decimal(coefficient, power):
            return "number", Fraction(coefficient) * Fraction(10) ** power
        case dict():
            return "object", frozenset((name, essence(item)) for name, item in meant.items())
        case list():
            return "array", tuple(essence(item) for item in meant)
        case bool() | str() | None:
            return type(meant).__name__, meant


# The same value, written in one of the many ways that JSON allows.

SPACES = st.sampled_from(["", " ", "\t\r\n "])
ESCAPES = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n"}
ESCAPES |= {"\r": "\\r", "\t": "\\t"}


@st.composite
def number_spellings(draw: st.DrawFn, number: Decimal) -> str:
    zeros = draw(st.integers(0, 4)) if number.coefficient else 0
    digits = f"{abs(number.coefficient)}{'0' * zeros}"
    places = draw(st.integers(0, len(digits) + 2))
    digits = digits.rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :]
    power = number.power - zeros + places
    sign = "-" if number.coefficient < 0 else ""
    return f"{sign}{whole}{f'.{fraction}' if fraction else ''}{draw(power_spellings(power))}"


def power_spellings(power: int) -> st.SearchStrategy[str]:
    signs = ["-"] if power < 0 else ["", "+"]
    ways = [f"{e}{sign}{zero}{abs(power)}" for e in "eE" for sign in signs for zero in ("", "0")]
    return st.sampled_from(ways if power else ["", *ways])


def string_spellings(text: str) -> st.SearchStrategy[str]:
    characters = [character_spellings(character) for character in text]
    return st.tuples(*characters).map(lambda written: f'"{"".join(written)}"')


def character_spellings(character: str) -> st.SearchStrategy[str]:
    units = character.encode("utf-16-be").hex()
    ways = [re.sub("(....)", r"\\u\1", way) for way in (units, units.upper())]
    if character in ESCAPES:
        ways.append(ESCAPES[character])
    if character not in '"\\' and character >= " ":
        ways.append(character)
    return st.sampled_from(ways)


@st.composite
def spellings(draw: st.DrawFn, meant: Meant) -> str:
    return f"{draw(SPACES)}{draw(bare_spellings(meant))}{draw(SPACES)}"


def bare_spellings(meant: Meant) -> st.SearchStrategy[str]:
    match meant:
        case Decimal():
            return number_spellings(meant)
        case dict():
            return object_spellings(meant)
        case list():
            return array_spellings(meant)
        case str():
            return string_spellings(meant)
        case None:
            return st.just("null")
        case bool():
            return st.just("true" if meant else "false")


@st.composite
def object_spellings(draw: st.DrawFn, members: dict[str, Meant]) -> str:
    written = [
        f"{draw(SPACES)}{draw(string_spellings(name))}{draw(SPACES)}:"
        f"{draw(spellings(members[name]))}"
        for name in draw(st.permutations(list(members)))
    ]
    return "{" + (",".join(written) or draw(SPACES)) + "}"


@st.composite
def array_spellings(draw: st.DrawFn, items: list[Meant]) -> str:
    written = [draw(spellings(item)) for item in items]
    return "[" + (",".join(written) or draw(SPACES)) + "]"


# Few and small, so that two values drawn apart are often nearly the same.
DECIMALS = st.builds(
    Decimal,
    st.one_of(
        st.sampled_from([0, 1, -1, 10, 100, 12, 120, 2**53, 2**53 + 1]), st.integers(-9999, 9999)
    ),
    st.integers(-20, 20),
)
STORABLE = st.characters(codec="utf-8", exclude_characters="\x00")
STRINGS = st.one_of(
    st.sampled_from(
        ["", "a", "1", "é", "e\u0301", "\U0001f600", "\ufb33", '"', "\\", "\n", "\x1f"]
    ),
    st.text(STORABLE, max_size=3),
)
VALUES: st.SearchStrategy[Meant] = st.recursive(
    st.one_of(st.none(), st.booleans(), DECIMALS, STRINGS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(STRINGS, inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(STRINGS, VALUES, max_size=3)


def form(text: str) -> str:
    return canonical_text(parse_json(text))


@unhurried
@given(VALUES.flatmap(lambda meant: st.tuples(spellings(meant), spellings(meant))))
def test_order_spaces_escapes_and_spellings_of_numbers_never_matter(texts: tuple[str, str]) -> None:
    assert form(texts[0]) == form(texts[1])


@unhurried
@given(st.data(), VALUES, VALUES)
def test_two_texts_are_equal_exactly_when_their_values_are(
    data: st.DataObject, one: Meant, other: Meant
) -> None:
    first, second = data.draw(spellings(one)), data.draw(spellings(other))
    assert (form(first) == form(second)) is (essence(one) == essence(other))


@settings(deadline=None, max_examples=300)
@given(st.data(), DECIMALS, DECIMALS)
def test_two_numbers_are_equal_exactly_when_their_exact_values_are(
    data: st.DataObject, one: Decimal, other: Decimal
) -> None:
    first, second = data.draw(number_spellings(one)), data.draw(number_spellings(other))
    assert (form(first) == form(second)) is (essence(one) == essence(other))


@unhurried
@given(st.integers(-(10**1000) + 1, 10**1000 - 1))
def test_an_integer_keeps_every_digit(integer: int) -> None:
    coefficient, _, power = form(str(integer)).partition("e")
    assert int(coefficient) * 10 ** int(power or 0) == integer


@unhurried
@given(VALUES.flatmap(spellings))
def test_the_canonical_text_is_its_own_canonical_text(text: str) -> None:
    canonical = form(text)
    assert form(canonical) == canonical
    assert parse_json(canonical) == parse_json(text)


@unhurried
@given(VALUES.flatmap(spellings))
def test_equal_values_are_equal_in_python_too(text: str) -> None:
    """Whoever compares parsed values and whoever compares texts must agree."""
    value = parse_json(text)
    assert parse_json(form(text)) == value
    assert parse_json(f"[{text}]") != value


@unhurried
@given(st.text(st.characters(), max_size=20))
def test_a_string_is_written_as_the_definition_says(text: str) -> None:
    """Compared with the plainest writer there is, which knows no short cut."""
    plain = "".join(
        f"\\{c}" if c in '"\\' else f"\\u{ord(c):04x}" if ord(c) < 0x20 else c for c in text
    )
    assert canonical_text(text) == f'"{plain}"'


@unhurried
@given(st.sets(st.text(STORABLE, max_size=3)))
def test_names_are_sorted_as_their_bytes_are(names: set[str]) -> None:
    text = "{" + ",".join(f"{canonical_text(name)}:[]" for name in names) + "}"
    written = [canonical_text(name) for name in sorted(names, key=str.encode)]
    assert form(text) == "{" + ",".join(f"{name}:[]" for name in written) + "}"


# Refusals

PIECES = st.sampled_from(
    [
        *'{}[]:,"\\ \n\x00\ufeff\ud800',
        *('"a":', '"a"', "1", "-0", "1e5", "true", "null", "NaN", "-Infinity"),
        *("\\ud83d", "\\u0000", "\\u00", "9" * 1001, "1e-9999999999", "[" * 70),
    ]
)
ANY_TEXT = st.one_of(
    st.text(st.characters(exclude_categories=[])),
    st.lists(PIECES, max_size=30).map("".join),
    st.lists(PIECES, max_size=8).map(lambda pieces: '{"a":' + "".join(pieces) + "}"),
    st.lists(PIECES, max_size=8).map(lambda pieces: '["' + "".join(pieces) + '"]'),
)
CODES = {
    *("not_json", "duplicate_member", "nan_or_infinity", "lone_surrogate", "nul", "too_deep"),
    *("too_many_digits", "exponent_too_large", "too_long", "arguments_missing"),
    *("arguments_not_an_object", "arguments_decode_to_a_string"),
}


@settings(deadline=None, max_examples=500)
@given(ANY_TEXT)
def test_any_text_is_read_or_refused_and_nothing_else(text: str) -> None:
    refused = refusal_of(text)
    if refused is not None:
        assert refused.code in CODES
        assert refused.at is None or 0 <= refused.at <= len(text)
        assert str(refused).isascii()


def refusal_of(text: str) -> Refused | None:
    try:
        canonical_text(parse_arguments(text)).encode()  # What is accepted can be stored.
    except Refused as refused:
        return refused
    return None


FAULTS = [
    ("NaN", "nan_or_infinity"),
    ("-Infinity", "nan_or_infinity"),
    ("1e1234567890", "exponent_too_large"),
    ("8" * 1001, "too_many_digits"),
    ('"\\ud83d"', "lone_surrogate"),
    ('"x\\u0000"', "nul"),
]


@unhurried
@given(OBJECTS.flatmap(spellings), st.sampled_from(FAULTS), OBJECTS.flatmap(spellings))
def test_a_fault_is_found_wherever_it_stands(
    before: str, planted: tuple[str, str], after: str
) -> None:
    fault, code = planted
    prefix = f'{{"before":{before},"here":'
    with pytest.raises(Refused) as refused:
        parse_json(f'{prefix}{fault},"after":{after}}}')
    assert (refused.value.code, refused.value.at) == (code, len(prefix))


@unhurried
@given(st.data(), OBJECTS.filter(bool))
def test_a_name_that_comes_twice_is_found_however_it_is_escaped(
    data: st.DataObject, meant: dict[str, Meant]
) -> None:
    name = data.draw(st.sampled_from(sorted(meant)))
    text = data.draw(spellings(meant)).rstrip(" \t\n\r").removesuffix("}")
    again = data.draw(string_spellings(name))
    with pytest.raises(Refused) as refused:
        parse_json(f"{text},{again}:0}}")
    assert (refused.value.code, refused.value.at) == ("duplicate_member", len(text) + 1)


# Digests

PARTS = st.one_of(st.none(), st.integers(-20, 20), st.text("ab-01\x00", max_size=3))
PART_LISTS = st.lists(PARTS, max_size=4)


@settings(deadline=None, max_examples=500)
@given(PART_LISTS, PART_LISTS)
def test_different_parts_never_make_the_same_digest(
    one: list[str | int | None], other: list[str | int | None]
) -> None:
    assert (digest("turn", *one) == digest("turn", *other)) is (one == other)


@unhurried
@given(st.lists(st.text("ab", max_size=4), min_size=2, max_size=4), st.data())
def test_text_that_moves_over_the_border_of_two_parts_changes_the_digest(
    parts: list[str], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len("".join(parts[:2]))))
    joined = "".join(parts[:2])
    moved = [joined[:cut], joined[cut:], *parts[2:]]
    assume(moved != parts)
    assert digest("turn", *moved) != digest("turn", *parts)


@unhurried
@given(PART_LISTS)
def test_a_recipes_name_is_part_of_its_digest(parts: list[str | int | None]) -> None:
    assert digest("turn", *parts) != digest("slot", *parts)
