"""Reading JSON exactly: what is refused, with which code, and where."""

import copy
import pickle
import sys
import time

import pytest

from effects.core.exact_json import (
    ARGUMENTS_BYTES_MAX,
    DEPTH_MAX,
    DIGITS_MAX,
    Number,
    Refused,
    parse_json,
)

NUMBERS = [
    pytest.param("0", "0", id="zero"),
    pytest.param("-0", "0", id="minus zero is zero"),
    pytest.param("0.00", "0", id="zero with decimals"),
    pytest.param("0e999999999", "0", id="zero with a power"),
    pytest.param("1", "1e0", id="one"),
    pytest.param("1.0", "1e0", id="one with a decimal"),
    pytest.param("10e-1", "1e0", id="one with a power"),
    pytest.param("-1", "-1e0", id="minus one"),
    pytest.param("4200", "42e2", id="outer zeros go into the power"),
    pytest.param("-4200", "-42e2", id="outer zeros of a negative number"),
    pytest.param("1002000", "1002e3", id="inner zeros stay"),
    pytest.param("0.00001", "1e-5", id="a small fraction"),
    pytest.param("1E-07", "1e-7", id="a capital E and a zero before the power"),
    pytest.param("12.500", "125e-1", id="zeros after the fraction"),
    pytest.param("1e+2", "1e2", id="a plus sign"),
    pytest.param("1e" + "0" * 5000 + "2", "1e2", id="any number of zeros before the power"),
    pytest.param("9007199254740993", "9007199254740993e0", id="2^53 + 1 is not 2^53"),
    pytest.param("0.10000000000000001", "10000000000000001e-17", id="more digits than a float"),
    pytest.param("1e-400", "1e-400", id="smaller than any float"),
    pytest.param("1e999999999", "1e999999999", id="the largest power is never expanded"),
    pytest.param("9" * DIGITS_MAX, "9" * DIGITS_MAX + "e0", id="as many digits as allowed"),
    pytest.param("-" + "9" * DIGITS_MAX, "-" + "9" * DIGITS_MAX + "e0", id="the sign is no digit"),
]


@pytest.mark.parametrize(("literal", "text"), NUMBERS)
def test_a_number_is_read_as_its_exact_value(literal: str, text: str) -> None:
    assert parse_json(literal) == Number(text)


REFUSALS = [
    pytest.param("", "not_json", 0, id="nothing"),
    pytest.param("{'a':1}", "not_json", 1, id="single quotes"),
    pytest.param('{"a":1', "not_json", 6, id="a cut text"),
    pytest.param('{"a":1} x', "not_json", 8, id="text after the end"),
    pytest.param('\ufeff{"a":1}', "not_json", 0, id="a byte order mark"),
    pytest.param('{"a":01}', "not_json", 6, id="a leading zero"),
    pytest.param('{"a":١}', "not_json", 5, id="digits of another script"),  # noqa: RUF001
    pytest.param('{"a":"x\ty"}', "not_json", 7, id="a raw control character"),
    pytest.param('{"a":-NaN}', "not_json", 5, id="a signed NaN is not even a constant"),
    pytest.param('{"a":1,"a":1000}', "duplicate_member", 7, id="a name twice"),
    pytest.param('{"a":1, "\\u0061" : 2}', "duplicate_member", 8, id="a name twice, once escaped"),
    pytest.param('[{"a":1},{"a":{"b":1,"b":2}}]', "duplicate_member", 21, id="a name twice, deep"),
    pytest.param('{"s":NaN}', "nan_or_infinity", 5, id="NaN"),
    pytest.param('{"s":Infinity}', "nan_or_infinity", 5, id="infinity"),
    pytest.param('{"s":[0,-Infinity]}', "nan_or_infinity", 8, id="minus infinity"),
    pytest.param('{"t":"cut \\ud83d"}', "lone_surrogate", 5, id="half a pair, escaped"),
    pytest.param('{"t":"cut \ud83d"}', "lone_surrogate", 5, id="half a pair, as it is"),
    pytest.param('{"t":"\\uDE00\\uD83D"}', "lone_surrogate", 5, id="a pair in the wrong order"),
    pytest.param('{"\\ud83d":1}', "lone_surrogate", 1, id="half a pair in a name"),
    pytest.param('["\\u0000"]', "nul", 1, id="U+0000"),
    pytest.param('{"\\u0000":1}', "nul", 1, id="U+0000 in a name"),
    pytest.param(f"[{'9' * 1001}]", "too_many_digits", 1, id="one digit too many"),
    pytest.param(f"[-{'9' * 1001}]", "too_many_digits", 1, id="one digit too many, negative"),
    pytest.param(f"[0.{'0' * 1000}]", "too_many_digits", 1, id="zeros are digits as well"),
    pytest.param("[1e1000000000]", "exponent_too_large", 1, id="a power of ten digits"),
    pytest.param("[1e-1000000000]", "exponent_too_large", 1, id="a negative power of ten digits"),
    pytest.param("[0.1e1000000000]", "exponent_too_large", 1, id="ten digits that would shrink"),
    pytest.param("[0e1000000000]", "exponent_too_large", 1, id="ten digits on a zero"),
    pytest.param("[10e999999999]", "exponent_too_large", 1, id="a power that grows to ten digits"),
    pytest.param("[0.1e-999999999]", "exponent_too_large", 1, id="a power that shrinks to ten"),
    pytest.param('{"a":NaN,"b":1,"b":2}', "nan_or_infinity", 5, id="the first of two faults"),
    pytest.param('{"b":1,"b":NaN}', "duplicate_member", 7, id="the first, though noticed later"),
]


@pytest.mark.parametrize(("text", "code", "at"), REFUSALS)
def test_a_text_is_refused_with_a_code_and_the_place_of_its_first_fault(
    text: str, code: str, at: int
) -> None:
    with pytest.raises(Refused) as refused:
        parse_json(text)
    assert (refused.value.code, refused.value.at) == (code, at)
    assert f"ffset {at}" in str(refused.value)
    assert str(refused.value).isascii(), "a message must survive any log and any header"


def nested(depth: int) -> str:
    """An object with as many arrays in each other as `depth` says, and a number inside."""
    return '{"a":' + "[" * depth + "0" + "]" * depth + "}"


def test_the_outermost_object_is_depth_zero_and_what_the_deepest_array_holds_does_not_count() -> (
    None
):
    parse_json(nested(DEPTH_MAX))


@pytest.mark.parametrize("depth", [DEPTH_MAX + 1, 900, 2000, 100_000])
def test_nesting_is_refused_at_our_depth_and_not_at_the_interpreters(depth: int) -> None:
    with pytest.raises(Refused, match="DEPTH_MAX, 64") as refused:
        parse_json(nested(depth))
    assert refused.value.code == "too_deep"
    assert refused.value.at == len('{"a":') + DEPTH_MAX


def test_many_shallow_arrays_are_not_deep() -> None:
    assert len(str(parse_json("[" + "[],{}," * 5000 + "[]]"))) > 5000


def test_a_full_stack_is_not_blamed_on_the_text() -> None:
    def parse_on_a_full_stack(frames: int) -> None:
        if frames:
            parse_on_a_full_stack(frames - 1)
        else:
            parse_json(nested(DEPTH_MAX))

    frame, used = sys._getframe(), 0  # noqa: SLF001, there is no other way to count frames
    while frame.f_back is not None:
        frame, used = frame.f_back, used + 1
    with pytest.raises(RecursionError):
        parse_on_a_full_stack(sys.getrecursionlimit() - used - 6)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param('"' + "x" * (ARGUMENTS_BYTES_MAX - 1) + '"', 262_145, id="one byte too long"),
        pytest.param('"' + "é" * 131_072 + '"', 262_146, id="bytes count, not characters"),
        pytest.param(" " * 300_000, 300_000, id="white space counts"),
        pytest.param('"' + "\ud800" * 100_000 + '"', 300_002, id="half pairs count three bytes"),
    ],
)
def test_a_text_that_is_too_long_is_refused_with_its_size_and_the_limit(
    text: str, size: int
) -> None:
    with pytest.raises(Refused, match=f"{size} bytes.*ARGUMENTS_BYTES_MAX is 262144") as refused:
        parse_json(text)
    assert refused.value.code == "too_long"


def test_a_text_of_exactly_the_limit_is_read() -> None:
    assert parse_json('"' + "x" * (ARGUMENTS_BYTES_MAX - 2) + '"') == "x" * 262_142


HOSTILE = [
    pytest.param('{"a":' + "9" * 260_000 + "}", id="one number"),
    pytest.param('{"a":1e' + "9" * 260_000 + "}", id="one power"),
    pytest.param('{"a":"' + "\\u0000" * 43_000 + '"}', id="escapes"),
    pytest.param('{"a":"' + "\\\\" * 130_000 + '"', id="backslashes without an end"),
    pytest.param('"' * 262_000, id="quotes"),
    pytest.param("[" * 262_000, id="brackets"),
    pytest.param('{"a":' * 50_000, id="objects"),
    pytest.param("{" + ",".join(f'"{n}":0' for n in range(20_000)) + ',"7":0}', id="names"),
    pytest.param("[" + "1," * 131_000 + "NaN]", id="numbers"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_within_the_limit_takes_long(text: str) -> None:
    started = time.process_time()
    with pytest.raises(Refused):
        parse_json(text)
    # The worst takes 0.7 s here, nearly all of it in the pass that finds the place of the fault.
    assert time.process_time() - started < 3, "quadratic time would be minutes"


def test_a_pair_of_surrogates_is_an_ordinary_character() -> None:
    assert parse_json('"\\uD83D\\uDE00"') == "\U0001f600"


def test_a_refusal_survives_pickling_and_copying() -> None:
    refused = Refused("nul", "The string holds U+0000.", 5)
    for again in (pickle.loads(pickle.dumps(refused)), copy.copy(refused)):
        assert (again.code, again.at, str(again)) == ("nul", 5, "The string holds U+0000.")


def test_a_message_quotes_only_a_little_of_a_long_text() -> None:
    with pytest.raises(Refused) as refused:
        parse_json("[" + "9" * 100_000 + "]")
    assert len(str(refused.value)) < 300
