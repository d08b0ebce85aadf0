"""The canonical form: which arguments are the same, and what a tool's rules change."""

import pytest

from effects.core.canonical import (
    ARGUMENTS_BYTES_MAX,
    ArgumentRules,
    Refused,
    canonical_text,
    parse_arguments,
    parse_json,
)


def canonical(text: str, rules: ArgumentRules | None = None) -> str:
    return canonical_text(parse_arguments(text, rules or ArgumentRules()))


TEXTS = [
    pytest.param("{}", "{}", id="nothing"),
    pytest.param(
        ' { "b" : [ 1 , null ] ,\n"a":true, "c":{} } ',
        '{"a":true,"b":[1e0,null],"c":{}}',
        id="sorted, without spaces",
    ),
    pytest.param('{"s":"\\u00e9\\/"}', '{"s":"é/"}', id="needless escapes are undone"),
    pytest.param(
        '{"s":"\\"\\\\\\n\\t\\b\\f\\r\\u001F"}',
        r'{"s":"\"\\\u000a\u0009\u0008\u000c\u000d\u001f"}',
        id="one way to escape",
    ),
    pytest.param(
        '{"s":"\x7f\x80\u2028\u202e"}',
        '{"s":"\x7f\x80\u2028\u202e"}',
        id="nothing else is escaped",
    ),
    pytest.param(
        '{"\U0001f600":1,"\ufb33":2}',
        '{"\ufb33":2e0,"\U0001f600":1e0}',
        id="names by code point, not by UTF-16 unit",
    ),
    pytest.param('{"é":1,"z":2,"Z":3}', '{"Z":3e0,"z":2e0,"é":1e0}', id="names by no language"),
    pytest.param('{"t":true,"f":false,"n":null}', '{"f":false,"n":null,"t":true}', id="the words"),
]


@pytest.mark.parametrize(("text", "form"), TEXTS)
def test_arguments_have_one_canonical_text(text: str, form: str) -> None:
    assert canonical(text) == form


def test_a_string_is_never_normalised() -> None:
    composed, decomposed, angstrom = '{"n":"\u00c5"}', '{"n":"A\u030a"}', '{"n":"\u212b"}'
    assert len({canonical(text) for text in (composed, decomposed, angstrom)}) == 3


def test_a_number_from_another_reader_has_no_canonical_form() -> None:
    for value in (1, 1.0):
        with pytest.raises(TypeError, match="read the text with parse_json"):
            canonical_text(value)  # type: ignore[arg-type]  # the mistake that this is about


SAME = [
    pytest.param('{"i":"x"}', id="an object"),
    pytest.param('"{\\"i\\": \\"x\\"}"', id="a string that holds the object"),
    pytest.param(' "\\n{\\"i\\":\\"x\\"} " ', id="a string with white space around it"),
]


@pytest.mark.parametrize("text", SAME)
def test_an_object_may_come_as_a_json_string(text: str) -> None:
    assert parse_arguments(text) == {"i": "x"}


@pytest.mark.parametrize("text", ["", " \n\t", '""', '" "', "{}", '"{}"'])
def test_an_empty_text_is_an_empty_object(text: str) -> None:
    assert parse_arguments(text) == {}


NOT_ARGUMENTS = [
    pytest.param(None, "arguments_missing", id="none"),
    pytest.param("null", "arguments_missing", id="null"),
    pytest.param('"null"', "arguments_missing", id="null in a string"),
    pytest.param("[1]", "arguments_not_an_object", id="an array"),
    pytest.param('"[1]"', "arguments_not_an_object", id="an array in a string"),
    pytest.param("7", "arguments_not_an_object", id="a number"),
    pytest.param("true", "arguments_not_an_object", id="a truth value"),
    pytest.param('"\\"{}\\""', "arguments_decode_to_a_string", id="encoded twice"),
    pytest.param('"\\"\\""', "arguments_decode_to_a_string", id="an empty string, twice"),
    pytest.param('"x"', "not_json", id="a string that holds no JSON"),
    pytest.param("\u00a0", "not_json", id="a space that JSON does not know"),
    pytest.param(" " * (ARGUMENTS_BYTES_MAX + 1), "too_long", id="too much white space"),
]


@pytest.mark.parametrize(("text", "code"), NOT_ARGUMENTS)
def test_what_is_not_an_object_is_refused(text: str | None, code: str) -> None:
    with pytest.raises(Refused) as refused:
        parse_arguments(text)
    assert refused.value.code == code


def test_a_fault_inside_a_string_is_placed_inside_it() -> None:
    with pytest.raises(Refused, match="text inside the JSON string") as refused:
        parse_arguments('"{\\"a\\":NaN}"')
    assert (refused.value.code, refused.value.at) == ("nan_or_infinity", 5)


RULED = [
    pytest.param(ArgumentRules(volatile=("at",)), '{"a":1,"at":99}', '{"a":1}', id="volatile"),
    pytest.param(ArgumentRules(drop_null=("n",)), '{"a":1,"n":null}', '{"a":1}', id="null"),
    pytest.param(
        ArgumentRules(defaults={"cur": '"usd"'}), '{"a":1,"cur":"usd"}', '{"a":1}', id="default"
    ),
    pytest.param(
        ArgumentRules(defaults={"n": "1.0"}), '{"a":1,"n":10e-1}', '{"a":1}', id="default by value"
    ),
    pytest.param(
        ArgumentRules(defaults={"o": '{"x":1,"y":2}'}),
        '{"o":{"y":2,"x":1}}',
        "{}",
        id="an object as default",
    ),
    pytest.param(
        ArgumentRules(drop_null=("cur",), defaults={"cur": '"usd"'}),
        '{"cur":null}',
        '{"cur":"usd"}',
        id="null and default both mean absent",
    ),
    pytest.param(
        ArgumentRules(instants=("at",)),
        '{"at":"2026-03-02T10:00:00.000Z"}',
        '{"at":"2026-03-02T12:30:00+02:30"}',
        id="one moment",
    ),
    pytest.param(
        ArgumentRules(instants=("at",), defaults={"at": '"2026-03-02T11:00:00+01:00"'}),
        '{"at":"2026-03-02T10:00:00Z"}',
        "{}",
        id="a moment as default",
    ),
]


@pytest.mark.parametrize(("rules", "one", "other"), RULED)
def test_a_declared_rule_makes_two_spellings_one(
    rules: ArgumentRules, one: str, other: str
) -> None:
    assert canonical(one, rules) == canonical(other, rules)
    assert canonical(one) != canonical(other), "without the rule nothing is guessed"


STILL_DIFFERENT = [
    pytest.param(ArgumentRules(drop_null=("n",)), '{"n":0}', "{}", id="zero is not null"),
    pytest.param(ArgumentRules(volatile=("n",)), '{"o":{"n":1}}', '{"o":{"n":2}}', id="top only"),
    pytest.param(
        ArgumentRules(defaults={"n": "1"}), '{"n":"1"}', "{}", id="a string is not a number"
    ),
    pytest.param(ArgumentRules(defaults={"n": "1"}), '{"n":null}', "{}", id="null is no default"),
]


@pytest.mark.parametrize(("rules", "one", "other"), STILL_DIFFERENT)
def test_a_rule_does_no_more_than_it_says(rules: ArgumentRules, one: str, other: str) -> None:
    assert canonical(one, rules) != canonical(other, rules)


MOMENTS = [
    pytest.param("2026-03-02T10:00:00Z", "2026-03-02T10:00:00Z", id="already in UTC"),
    pytest.param("2026-03-02t10:00:00z", "2026-03-02T10:00:00Z", id="small letters"),
    pytest.param("2026-03-02 10:00:00-00:00", "2026-03-02T10:00:00Z", id="a space"),
    pytest.param("2026-03-01T23:30:00-01:00", "2026-03-02T00:30:00Z", id="over midnight"),
    pytest.param("2026-03-02T10:00:00.10Z", "2026-03-02T10:00:00.1Z", id="zeros after a fraction"),
    pytest.param(
        "2026-03-02T10:00:00.123456789Z", "2026-03-02T10:00:00.123456789Z", id="nanoseconds"
    ),
    pytest.param("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z", id="the first moment"),
    pytest.param("0001-01-01T00:00:00+01:00", "0001-01-01T00:00:00+01:00", id="before the first"),
    pytest.param("9999-12-31T23:30:00-01:00", "9999-12-31T23:30:00-01:00", id="after the last"),
    pytest.param("2026-03-02T10:00:00", "2026-03-02T10:00:00", id="no offset, no moment"),
    pytest.param("2026-06-31T10:00:00Z", "2026-06-31T10:00:00Z", id="no such day"),
    pytest.param("2026-03-02T24:00:00Z", "2026-03-02T24:00:00Z", id="no such hour"),
    pytest.param("2026-12-31T23:59:60Z", "2026-12-31T23:59:60Z", id="a leap second"),
    pytest.param("20260302T100000Z", "20260302T100000Z", id="a form that only some Pythons read"),
    pytest.param("tomorrow", "tomorrow", id="a word"),
]


@pytest.mark.parametrize(("written", "compared"), MOMENTS)
def test_an_instant_is_compared_in_utc_and_anything_else_as_it_is(
    written: str, compared: str
) -> None:
    rules = ArgumentRules(instants=("at",))
    assert parse_arguments(f'{{"at":"{written}"}}', rules) == {"at": compared}
    assert parse_arguments(f'{{"at":"{compared}"}}', rules) == {"at": compared}


def test_an_instant_that_is_a_number_stays_a_number() -> None:
    rules = ArgumentRules(instants=("at",))
    assert parse_arguments('{"at":1772445600}', rules) == {"at": parse_json("1772445600")}


BAD_RULES = [
    pytest.param({"defaults": {"cur": "usd"}}, "default of cur", id="a default that is not JSON"),
    pytest.param(
        {"volatile": ("id",), "business": ("id",)}, "volatile", id="business that is volatile"
    ),
]


@pytest.mark.parametrize(("rules", "said"), BAD_RULES)
def test_a_rule_that_cannot_be_applied_is_refused_when_it_is_made(
    rules: dict[str, object], said: str
) -> None:
    with pytest.raises(Refused, match=said) as refused:
        ArgumentRules(**rules)  # type: ignore[arg-type]  # a table of keyword arguments
    assert refused.value.code == "rules_invalid"
