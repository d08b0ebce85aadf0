"""Redaction of texts: what is hidden, and that nothing else changes."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.redaction import (
    FOUND_MAX,
    NO_REDACTION,
    Mode,
    Redaction,
    Rule,
    Secret,
    redact,
    restored,
)
from effects.core.redaction_paths import STEPS_MAX, BadPath, parse_path

BUILT_IN = Redaction()


def ruled(*paths: str, mode: Mode = Mode.HIDE) -> Redaction:
    rules = tuple(Rule(path=parse_path(path), mode=mode) for path in paths)
    return Redaction(rules=rules, secrets=frozenset())


# What is found without a rule


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ('{"password":"hunter2"}', '{"password":"...."}'),
        ('{"Client-Secret": "s3cr3t" }', '{"Client-Secret": "...." }'),
        (
            '{"x_api_key":"k1","idempotency_key":"keep"}',
            '{"x_api_key":"....","idempotency_key":"keep"}',
        ),
        ('{"page_token":"keep","max_tokens":100}', '{"page_token":"keep","max_tokens":100}'),
        ('{"pin_code":1234,"cvc":123}', '{"pin_code":1234,"cvc":"...."}'),
        (
            '{"password":null,"secret":true,"token":""}',
            '{"password":null,"secret":true,"token":""}',
        ),
        (
            '{"authorization":{"id":"auth_1","amount":5}}',
            '{"authorization":{"id":"auth_1","amount":5}}',
        ),
        ('{"client_secret":{"v":"abc","n":[7]}}', '{"client_secret":{"v":"....","n":["...."]}}'),
        ('{"Authorization":["Bearer a1b2c3d4"]}', '{"Authorization":["...."]}'),
        ('{"pass\\u0077ord":"hunter2"}', '{"pass\\u0077ord":"...."}'),
        (
            '[["Authorization","Basic abc"],["Accept","x"]]',
            '[["Authorization","...."],["Accept","x"]]',
        ),
        ('[{"name":"Cookie","value":"a=b"}]', '[{"name":"Cookie","value":"...."}]'),
        ('[{"value":"a=b","name":"Cookie"}]', '[{"value":"....","name":"Cookie"}]'),
        ('[{"name":"colour","value":"red"}]', '[{"name":"colour","value":"red"}]'),
        ('{"u":"https://bob:pw9@x.test/a"}', '{"u":"https://bob:....@x.test/a"}'),
        ('{"u":"https://ghp_abcdef@x.test"}', '{"u":"https://....@x.test"}'),
        ('{"u":"https://x.test/?api_key=abc&q=1"}', '{"u":"https://x.test/?api_key=....&q=1"}'),
        (
            '{"b":"{\\"password\\":\\"a\\\\\\"b\\",\\"n\\":1.10}"}',
            '{"b":"{\\"password\\":\\"....\\",\\"n\\":1.10}"}',
        ),
        ('{"f":"user=bob&password=abc&x=1"}', '{"f":"user=bob&password=....&x=1"}'),
        ('{"n":4242424242424242}', '{"n":"....4242"}'),
        ('{"t":"card 4242 4242 4242 4242 was"}', '{"t":"card ....4242 was"}'),
        (
            '{"n":4242424242424243,"at":1764514332123456}',
            '{"n":4242424242424243,"at":1764514332123456}',
        ),
        ("401 Authorization: Bearer a1b2c3d4e5", "401 Authorization: Bearer ...."),
        ("curl -H 'X-Api-Key: abc123' https://x", "curl -H 'X-Api-Key: ....' https://x"),
        ("wrong password: hunter", "wrong password: ...."),
        ("invalid token: expired", "invalid token: expired"),
        ("a basic plan for bearer bonds", "a basic plan for bearer bonds"),
        ('data: {"api_key":"a"}\n\ndata: [DONE]\n', 'data: {"api_key":"...."}\n\ndata: [DONE]\n'),
        ('{"a":1,"password":"cut of', '{"a":1,"password":"....'),
        (
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END",
            "-----BEGIN RSA PRIVATE KEY-----....-----END",
        ),
        ("", ""),
    ],
)
def test_a_secret_that_everybody_knows_is_hidden_and_nothing_else(text: str, hidden: str):
    redacted = redact(text, BUILT_IN)

    assert redacted.text == hidden
    assert restored(redacted.text, redacted.found) == text
    assert redact(redacted.text, BUILT_IN).found == ()


@pytest.mark.parametrize(
    ("without", "text"),
    [
        (Secret.NAME, '{"password":"hunter2"}'),
        (Secret.ADDRESS, '{"u":"https://bob:pw9@x.test/a"}'),
        (Secret.WORDS, '{"t":"Bearer a1b2c3d4e5"}'),
        (Secret.CARD, '{"n":4242424242424242}'),
    ],
)
def test_each_kind_of_secret_can_be_left_out(without: Secret, text: str):
    assert redact(text, BUILT_IN).found
    assert redact(text, Redaction(secrets=BUILT_IN.secrets - {without})).found == ()
    assert redact(text, NO_REDACTION).text == text


# Rules


@pytest.mark.parametrize(
    ("path", "hidden"),
    [
        ("$.a.b", '{"a":{"b":"....","c":[1,{"b":3}]},"d":"{\\"b\\": 4}"}'),
        ("$['a']['b']", '{"a":{"b":"....","c":[1,{"b":3}]},"d":"{\\"b\\": 4}"}'),
        ("$.a.c[0]", '{"a":{"b":2.50,"c":["....",{"b":3}]},"d":"{\\"b\\": 4}"}'),
        ("$.a.c[*]", '{"a":{"b":2.50,"c":["....","...."]},"d":"{\\"b\\": 4}"}'),
        ("$.a.*", '{"a":{"b":"....","c":"...."},"d":"{\\"b\\": 4}"}'),
        ("$..b", '{"a":{"b":"....","c":[1,{"b":"...."}]},"d":"{\\"b\\": \\"....\\"}"}'),
        ("$.d.b", '{"a":{"b":2.50,"c":[1,{"b":3}]},"d":"{\\"b\\": \\"....\\"}"}'),
        ("$.d", '{"a":{"b":2.50,"c":[1,{"b":3}]},"d":"...."}'),
        ("$", '"...."'),
        ("$.z", '{"a":{"b":2.50,"c":[1,{"b":3}]},"d":"{\\"b\\": 4}"}'),
    ],
)
def test_a_rule_hides_what_stands_at_its_path(path: str, hidden: str):
    text = '{"a":{"b":2.50,"c":[1,{"b":3}]},"d":"{\\"b\\": 4}"}'
    redacted = redact(text, ruled(path))

    assert redacted.text == hidden
    assert restored(redacted.text, redacted.found) == text


def test_a_dropped_value_is_handed_to_nobody():
    redacted = redact('{"iban":"DE02120300000000202051","n":1}', ruled("$.iban", mode=Mode.DROP))

    assert redacted.text == '{"iban":"....","n":1}'
    assert [(one.raw, one.value, one.mode) for one in redacted.found] == [("", "", Mode.DROP)]
    assert restored(redacted.text, redacted.found) == redacted.text


def test_places_that_are_kept_are_not_touched_by_any_rule():
    kept = Redaction(rules=(Rule(path=parse_path("$..id")),), keeps=(("data", "id"),))

    assert redact('{"data":{"id":"a","x":{"id":"b"}}}', kept).text == (
        '{"data":{"id":"a","x":{"id":"...."}}}'
    )


@pytest.mark.parametrize(
    ("path", "says", "at"),
    [
        ("a.b", "begins with $", 0),
        ("$a", "begins with . or [", 1),
        ("$.", "name is missing", 2),
        ("$.a[1:2]", "slices", 4),
        ("$.a[0,1]", "slices", 4),
        ("$.a[?(@.b)]", "Filters", 4),
        ("$.a[-1]", "from the end", 4),
        ("$.a[x]", "In brackets", 4),
        ("$.a['b'", "] is missing", 7),
        ("$['\x00']", "cannot be stored", 3),
        ("$" + ".a" * (STEPS_MAX + 1), "STEPS_MAX", 2 * STEPS_MAX + 3),
        ("$." + "a" * 400, "PATH_CHARACTERS_MAX", 300),
    ],
)
def test_a_path_of_another_kind_is_refused_with_its_place(path: str, says: str, at: int):
    with pytest.raises(BadPath, match=says.replace("$", r"\$").replace("[", r"\[")) as refused:
        parse_path(path)
    assert refused.value.at == at


# Laws

SECRET = st.text(st.characters(codec="utf-8"), min_size=5, max_size=30).map(lambda s: f"q{s}Zq")
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(PLAIN, SECRET, st.sampled_from(["password", "API-Key", "client_secret"]), st.integers(0, 3))
def test_a_secret_is_gone_whole_however_deep_it_is_written(
    beside: object, secret: str, name: str, levels: int
):
    value: object = {name: secret, "beside": beside}
    for _ in range(levels):
        value = {"body": json.dumps(value, indent=1), "n": [beside]}
    text = json.dumps(value, separators=(", ", ":"))
    redacted = redact(text, BUILT_IN)

    inner: object = json.loads(redacted.text)
    for _ in range(levels):
        assert isinstance(inner, dict)
        inner = json.loads(inner["body"])
    assert isinstance(inner, dict)
    assert inner[name] == "...."
    assert secret in [one.value for one in redacted.found]
    assert restored(redacted.text, redacted.found) == text


@given(
    st.text(max_size=80) | PLAIN.map(json.dumps), st.sampled_from([BUILT_IN, ruled("$..a", "$[*]")])
)
def test_of_any_text_nothing_changes_but_what_is_handed_back(text: str, redaction: Redaction):
    redacted = redact(text, redaction)

    assert restored(redacted.text, redacted.found) == text
    again = redact(redacted.text, redaction)
    assert again.text == redacted.text or len(again.text) < len(redacted.text)


@given(
    st.lists(
        st.sampled_from(
            [
                '{"',
                '"',
                "password",
                '":',
                "api_key=",
                "Bearer ",
                "a1b2c3d4",
                "://u:p@",
                "4242424242424242",
                "\\",
                "\\u0070",
                "\n",
                "data: ",
                "}",
                "[",
                "]",
                ",",
                "....",
                " ",
                "é",
                "secret: ",
            ]
        ),
        max_size=25,
    )
)
def test_pieces_in_any_order_are_read_to_their_end_and_can_be_put_back(pieces: list[str]):
    text = "".join(pieces)
    redacted = redact(text, BUILT_IN)

    assert restored(redacted.text, redacted.found) == text


def test_long_and_deep_texts_are_read_in_bounded_time():
    many = json.dumps({"a": [{"token": f"x{n}", "p": "y" * 60} for n in range(FOUND_MAX + 1)]})
    nested = json.dumps({"b": json.dumps({"password": "x" * 2_000_000, "z": "1\n" * 400_000})})
    texts = [many, nested, "[" * 200_000 + '"', "a password: " * 100_000, "://" * 500_000 + "@"]
    began = time.perf_counter()
    found = [redact(text, BUILT_IN) for text in texts]

    assert time.perf_counter() - began < 20
    assert found[0].text == '"...."'
    assert len(found[1].text) < len(nested) - 1_900_000
