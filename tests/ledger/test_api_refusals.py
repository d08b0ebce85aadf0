"""What the API refuses: each with its status, its code, and a sentence that helps."""

import json
from typing import Any

import pytest
from django.test import Client

from effects.core.canonical import ARGUMENTS_BYTES_MAX
from effects.core.vocabulary import TokenScope
from ledger.models import Claim
from ledger.reading import CLAIM_BODY_BYTES_MAX, REPORT_BODY_BYTES_MAX
from tests.support.agents import Agent, Answer, asked, in_process

pytestmark = pytest.mark.django_db


def problem(answer: Answer, status: int, code: str) -> Any:
    assert (answer.status, answer.code) == (status, code), answer.body
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json["status"] == status
    assert answer.json["type"] == f"/api/docs#{code}"
    assert answer.json["title"]
    assert answer.json["detail"].endswith((".", ".)"))
    return answer.json


# Who asks


def test_a_request_without_a_token_is_told_how_to_bring_one(agent, client):
    nobody = Agent(token="", send=in_process(client))

    for headers in ({"Authorization": ""}, {"Authorization": "Basic YTpi"}):
        answer = nobody.post("claims", asked(), **headers)
        problem(answer, 401, "token_missing")
        assert answer.headers["WWW-Authenticate"] == 'Bearer realm="counterfoil"'


def test_a_token_that_opens_nothing_is_refused(agent, client):
    for token in ("x", "cf_00000000_" + "0" * 64, agent.token + "0"):
        wrong = Agent(token=token, send=in_process(client))
        answer = wrong.claim()
        problem(answer, 401, "token_refused")
        assert token not in answer.body.decode()


@pytest.mark.parametrize(
    ("scope", "ask", "allowed"),
    [
        pytest.param(TokenScope.READ, "claim", False, id="a reader may not claim"),
        pytest.param(TokenScope.READ, "complete", False, id="a reader may not report"),
        pytest.param(TokenScope.READ, "status", True, id="a reader may ask"),
        pytest.param(TokenScope.CLAIM, "status", True, id="who claims may ask"),
        pytest.param(TokenScope.INGEST, "status", False, id="an ingester may not ask"),
        pytest.param(TokenScope.INGEST, "claim", False, id="an ingester may not claim"),
    ],
)
def test_a_token_may_do_what_it_was_issued_for(agent, hire, shop, scope, ask, allowed):
    claim_id = agent.claim().claim["claim_id"]
    limited = hire(shop, scope)

    answer = {
        "claim": lambda: limited.claim(turn_index=8),
        "complete": lambda: limited.post(f"claims/{claim_id}/complete", {"fence": 1}),
        "status": lambda: limited.get(f"claims/{claim_id}"),
    }[ask]()

    if allowed:
        assert answer.status == 200
    else:
        told = problem(answer, 403, "scope_missing")
        assert str(scope) not in told["scopes"]


# What is asked


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        pytest.param({"ordinal": False}, "ordinal", id="false is not 0"),
        pytest.param({"position": "3"}, "position", id="text is no number"),
        pytest.param({"turn_index": 1.5}, "turn_index", id="no half turn"),
        pytest.param({"turn_index": -1}, "turn_index", id="no negative turn"),
        pytest.param({"turn_index": 2**31}, "turn_index", id="more than a database integer holds"),
        pytest.param({"turn_index": 10**400}, "turn_index", id="more than anything holds"),
        pytest.param({"arguments": {"a": 1}}, "arguments", id="arguments are text"),
        pytest.param({"tool": ""}, "tool", id="empty tool"),
        pytest.param({"tool": "x" * 256}, "tool", id="long tool"),
        pytest.param({"effect_class": "write"}, "effect_class", id="a word of no list"),
        pytest.param({"nonce": "0" * 31}, "nonce", id="half a byte"),
        pytest.param({"repeat_of": "no"}, "repeat_of", id="no identifier"),
        pytest.param({"worker": "w\x00"}, "worker", id="U+0000"),
        pytest.param({"tool": "t\x00"}, "tool", id="U+0000 in a name"),
        pytest.param({"argument": "{}"}, "argument", id="a member that nobody knows"),
    ],
)
def test_a_claim_is_read_strictly_and_the_place_is_named(agent, changes, place):
    answer = agent.claim(**changes)

    told = problem(answer, 422, "input_invalid")
    assert [error["at"] for error in told["errors"]] == [place]
    assert place in told["detail"]


@pytest.mark.parametrize(
    "body",
    [b" ", b"{", b"[]", b"null", b'"x"', b"\xff\xfe", b'{"tool": "a\xff"}', b"[" * 10_000],
    ids=["empty", "cut", "list", "null", "text", "UTF-16", "not UTF-8", "deep"],
)
def test_a_body_that_is_no_claim_is_a_422(agent, body):
    problem(agent.post("claims", body), 422, "input_invalid")


def test_no_value_of_the_request_comes_back_in_a_problem(agent):
    answer = agent.claim(ordinal="sk_live_secret", turn_index="4111111111111111")

    assert b"sk_live" not in answer.body
    assert b"4111" not in answer.body


@pytest.mark.parametrize(
    ("arguments", "refusal", "at"),
    [
        pytest.param('{"a": 1, "a": 2}', "duplicate_member", 9, id="duplicate member"),
        pytest.param('{"a": NaN}', "nan_or_infinity", 6, id="NaN"),
        pytest.param('{"a": "\\ud800"}', "lone_surrogate", 6, id="half a pair"),
        pytest.param('{"a": "\\u0000"}', "nul", 6, id="U+0000"),
        pytest.param('{"a": 1', "not_json", 7, id="cut"),
        pytest.param('{"a": ' + "[" * 70 + "]" * 70 + "}", "too_deep", 70, id="too deep"),
        pytest.param('{"a": ' + "1" * 1001 + "}", "too_many_digits", 6, id="digits"),
        pytest.param('{"a": 1e9999999999}', "exponent_too_large", 6, id="exponent"),
        pytest.param("[]", "arguments_not_an_object", None, id="list"),
        pytest.param("null", "arguments_missing", None, id="null"),
    ],
)
def test_arguments_that_cannot_be_compared_are_refused_with_the_place(
    agent, arguments, refusal, at
):
    told = problem(agent.claim(arguments=arguments), 422, "arguments_refused")

    assert told["refusal"] == refusal
    assert told.get("at") == at
    assert Claim.objects.count() == 0


@pytest.mark.parametrize(
    ("changes", "status", "code", "refusal"),
    [
        pytest.param({"conversation": None}, 400, "no_identity", None, id="no conversation"),
        pytest.param({"turn_index": None}, 400, "no_identity", None, id="no turn"),
        pytest.param({"caller_key": ""}, 400, "bad_request", "key_empty", id="empty key"),
        pytest.param(
            {"caller_key": " same "}, 400, "bad_request", "key_has_outer_space", id="outer space"
        ),
        pytest.param({"caller_key": "K" * 290}, 400, "bad_request", "key_too_long", id="long key"),
        pytest.param(
            {"caller_key": "a\nb"},
            400,
            "bad_request",
            "key_has_control_characters",
            id="a line end in a key",
        ),
        pytest.param(
            {"conversation": "a\x00"},
            422,
            "arguments_refused",
            "conversation_unstorable",
            id="U+0000",
        ),
        pytest.param(
            {"response_id": "\N{EURO SIGN}" * 90},
            422,
            "arguments_refused",
            "response_id_too_long",
            id="short in characters, long in bytes",
        ),
    ],
)
def test_identities_that_recognise_nothing_are_refused(agent, changes, status, code, refusal):
    told = problem(agent.claim(**changes), status, code)

    assert told.get("refusal") == refusal
    assert Claim.objects.count() == 0


# How much


def test_every_limit_is_named(agent):
    claim_id = agent.claim().claim["claim_id"]
    long_text = '{"a": "%s"}' % ("x" * ARGUMENTS_BYTES_MAX)

    for answer, limit, value in (
        (agent.claim(arguments=long_text), "ARGUMENTS_BYTES_MAX", ARGUMENTS_BYTES_MAX),
        (
            agent.post("claims", b" " * (CLAIM_BODY_BYTES_MAX + 1)),
            "CLAIM_BODY_BYTES_MAX",
            CLAIM_BODY_BYTES_MAX,
        ),
        (
            agent.post(f"claims/{claim_id}/complete", b" " * (REPORT_BODY_BYTES_MAX + 1)),
            "REPORT_BODY_BYTES_MAX",
            REPORT_BODY_BYTES_MAX,
        ),
    ):
        told = problem(answer, 413, "limit_exceeded")
        assert (told["limit"], told["value"]) == (limit, value)
        assert limit in told["detail"]


def test_the_longest_arguments_fit_in_however_they_are_escaped(agent):
    text = '{"a":"%s"}' % ("\N{EURO SIGN}" * ((ARGUMENTS_BYTES_MAX - 8) // 3))
    escaped = json.dumps(asked(arguments=text), ensure_ascii=True).encode()

    assert agent.post("claims", escaped).status == 201


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
def test_a_body_must_be_declared_as_json(agent, kind):
    problem(agent.post("claims", asked(), **{"Content-Type": kind}), 415, "media_type_unsupported")


def test_json_may_say_its_character_set(agent):
    kind = {"Content-Type": "application/json; charset=utf-8"}

    assert agent.post("claims", asked(), **kind).status == 201


def test_a_body_must_say_its_length(agent):
    client = Client()
    response = client.generic(
        "POST",
        "/api/v1/claims",
        CONTENT_TYPE="application/json",
        headers={"Authorization": f"Bearer {agent.token}"},
    )
    assert response.status_code == 411
    assert response.json()["code"] == "length_required"


# Where


@pytest.mark.parametrize("path", ["", "claim", "claims/x/y/", "turns/1", "claims/x%0A"])
def test_an_address_of_nobody_is_no_word_about_any_claim(agent, path):
    answer = agent.post(path, {})

    if path == "claims/x/y/":
        problem(answer, 405, "method_not_allowed")
    else:
        problem(answer, 404, "no_such_endpoint")


def test_a_method_of_nobody_says_which_there_are(agent):
    for method, path, allowed in (
        (agent.post, "claims/0/wait", "GET"),
        (agent.get, "claims/0/complete", "POST"),
    ):
        answer = method(path)
        assert problem(answer, 405, "method_not_allowed")["allowed"] == [allowed]
        assert answer.headers["Allow"] == allowed


@pytest.mark.parametrize(
    "query", ["seconds=-1", "seconds=x", "seconds=", "version=-1", "seconds=1e3"]
)
def test_parameters_are_read_strictly(agent, query):
    claim_id = agent.claim().claim["claim_id"]

    told = problem(agent.get(f"claims/{claim_id}/wait?{query}"), 422, "input_invalid")

    assert told["errors"][0]["at"] in query


def test_the_key_is_needed_where_it_is_asked_for(agent):
    told = problem(agent.get("claims"), 422, "input_invalid")

    assert told["errors"][0]["at"] == "key"
