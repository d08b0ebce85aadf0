"""What the GraphQL adapter lets through, and what answers with HTTP 200 do not say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from graphql import parse

from effects.core.canonical import parse_arguments
from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import Look
from reconcile.adapters.door import NotAllowed, Way, origin_of, query
from reconcile.adapters.graphql import look_by_query, look_in_list
from reconcile.adapters.graphql_config import read_config, read_list_config
from tests.reconcile.adapters.loopback import Talk, loopback, whole
from tests.reconcile.adapters.probes import CLAIM, MARKER, a_life, a_probe, key_of

ONE: dict[str, Any] = {
    "document": "query ($ref: String!) { payment(reference: $ref) { id status } }",
    "variables": {"ref": "reference"},
    "items": "payment",
    "map": {"done": "found"},
    "absent_when": {"null": True},
    "delay_class": "none",
}
LIST: dict[str, Any] = {
    **ONE,
    "document": "query ($from: String!, $at: String) { payments(since: $from, after: $at) "
    "{ nodes { id status ref } pageInfo { hasNextPage endCursor } } }",
    "variables": {"from": "since", "at": "cursor"},
    "items": "payments.nodes",
    "page_info": "payments.pageInfo",
    "reference_field": "ref",
}
del LIST["absent_when"]


def answered(talk: Talk, config: dict[str, Any] | None = None, **changes: Any) -> Look:
    with loopback(talk) as server:
        probe = a_probe(server.url, config=ONE if config is None else config, amount=None)
        return look_by_query(replace(probe, **changes))


# What an answer says


@pytest.mark.parametrize(
    ("body", "word"),
    [
        pytest.param(
            {"data": {"payment": {"id": "p", "status": "done"}}}, SightingWord.FOUND, id="there"
        ),
        pytest.param({"data": {"payment": None}}, SightingWord.ABSENT, id="null is nothing"),
        pytest.param(
            {"data": {"payment": None}, "errors": [{"message": "timeout", "path": ["payment"]}]},
            SightingWord.LOOKUP_FAILED,
            id="null beside an error was not looked up",
        ),
        pytest.param(
            {"data": {"payment": {"id": "p", "status": "done"}}, "errors": [{"message": "x"}]},
            SightingWord.LOOKUP_FAILED,
            id="data beside an error is not whole",
        ),
        pytest.param({"data": None}, SightingWord.UNMAPPED, id="no data"),
        pytest.param({"data": {}}, SightingWord.UNMAPPED, id="empty data"),
        pytest.param({}, SightingWord.UNMAPPED, id="neither"),
        pytest.param([], SightingWord.UNMAPPED, id="a list"),
        pytest.param({"errors": "no"}, SightingWord.LOOKUP_FAILED, id="errors as text"),
        pytest.param(
            {"errors": [{"message": "x", "extensions": {"code": "UNAUTHENTICATED"}}]},
            SightingWord.MISCONFIGURED,
            id="who are you",
        ),
        pytest.param(
            {"errors": [{"message": "x", "extensions": {"code": "THROTTLED"}}]},
            SightingWord.RATE_LIMITED,
            id="too often",
        ),
        pytest.param({"data": {"payment": 7}}, SightingWord.UNMAPPED, id="no object"),
    ],
)
def test_an_answer_with_http_200_says_what_it_says_and_no_more(
    body: Any, word: SightingWord
) -> None:
    assert answered(whole(json.dumps(body))).word is word


def test_a_server_that_answers_400_still_says_in_errors_what_is_wrong() -> None:
    body = json.dumps({"errors": [{"message": "Cannot query field 'x'"}]})

    look = answered(whole(body, status="400 Bad Request"))

    assert look.word is SightingWord.LOOKUP_FAILED
    assert "Cannot query field" in look.why


def test_null_says_nothing_where_the_entry_does_not_say_so() -> None:
    look = answered(whole('{"data": {"payment": null}}'), {**ONE, "absent_when": {}})

    assert look.word is SightingWord.UNMAPPED


@pytest.mark.parametrize(
    "info",
    [{}, None, {"hasNextPage": None}, {"hasNextPage": True}, {"hasNextPage": True, "endCursor": 7}],
)
def test_a_page_that_does_not_say_whether_it_is_the_last_is_not_read_as_whole(info: Any) -> None:
    body = json.dumps({"data": {"payments": {"nodes": [], "pageInfo": info}}})
    with loopback(whole(body)) as server:
        look = look_in_list(a_probe(server.url, config=LIST))

    assert look.word is SightingWord.UNMAPPED


def test_a_page_that_leads_to_itself_is_read_once_more_at_most() -> None:
    info = {"hasNextPage": True, "endCursor": "same"}
    body = json.dumps({"data": {"payments": {"nodes": [], "pageInfo": info}}})
    with loopback(whole(body)) as server:
        look = look_in_list(a_probe(server.url, config=LIST))

    assert look.reads == 2
    assert (look.word, look.pages_complete) == (SightingWord.ABSENT, False)


# What is asked


def test_variables_are_sent_apart_from_the_query() -> None:
    config = {
        **ONE,
        "document": "query ($a: String!, $b: ID, $c: String, $d: Int, $e: String) "
        "{ payment(a: $a, b: $b, c: $c, d: $d, e: $e) { id status } }",
        "variables": {
            "a": "reference",
            "b": "key",
            "c": "claim",
            "d": "=100",
            "e": "arguments.order",
        },
    }
    arguments = parse_arguments('{"order": "1\\") { delete }"}')
    with loopback(whole('{"data": {"payment": null}}')) as server:
        look = look_by_query(a_probe(server.url, config=config, arguments=arguments))

    sent = json.loads(server.requests[0].split("\r\n\r\n", 1)[1])
    assert look.word is SightingWord.ABSENT
    assert sent["variables"] == {
        "a": MARKER,
        "b": key_of(1),
        "c": str(CLAIM),
        "d": 100,
        "e": '1") { delete }',
    }
    assert "delete" not in sent["query"]
    assert server.requests[0].startswith("POST /graphql HTTP/1.1\r\n")


def test_each_generation_is_asked_about_and_a_shared_reference_once() -> None:
    lives = tuple(a_life(n) for n in (1, 2))
    by_claim = {**ONE, "reference": "claim"}
    with loopback(whole('{"data": {"payment": null}}')) as server:
        url = server.url
        look_by_query(a_probe(url, config=ONE, generations=lives))
        apart = len(server.requests)
        look_by_query(a_probe(url, config=by_claim, generations=lives))
        together = len(server.requests) - apart

    assert (apart, together) == (2, 1)


def test_without_the_argument_nobody_is_asked() -> None:
    with loopback(whole("{}")) as server:
        config = {**ONE, "reference": "arguments.order"}
        look = look_by_query(a_probe(server.url, config=config, arguments={}))

    assert look.word is SightingWord.MISCONFIGURED
    assert server.requests == []


def test_more_generations_than_questions_is_no_absence() -> None:
    lives = tuple(a_life(n) for n in range(1, 8))

    look = look_by_query(a_probe("http://127.0.0.1:1", config=ONE, generations=lives))

    assert look.word is SightingWord.MISCONFIGURED
    assert "7 questions" in look.why


# What can never be asked

WRITES = [
    "mutation { pay(amount: 1) { id } }",
    "subscription { paid { id } }",
    "query ($ref: String) { a(r: $ref) { id } } mutation { pay { id } }",
    "query A($ref: String) { a(r: $ref) { id } } query B { b { id } }",
    "type Query { a: Int }",
    "fragment F on Payment { id }",
    "extend type Query { a: Int }",
]


@pytest.mark.parametrize("document", WRITES)
def test_nothing_but_one_query_is_registered(document: str) -> None:
    with pytest.raises(ValueError, match="document"):
        read_config({**ONE, "document": document})


@pytest.mark.parametrize("document", WRITES)
def test_nothing_but_one_query_passes_the_door(document: str) -> None:
    with loopback(whole("{}")) as server:
        way = Way(origin=origin_of(server.url), private=True)
        with pytest.raises(NotAllowed, match="one query"):
            query(f"{server.url}/graphql", parse(document), {}, way=way, headers={})

    assert server.requests == []


def test_what_is_sent_is_what_was_read_and_not_what_was_typed() -> None:
    typed = "query Q { a } # mutation { pay }"
    with loopback(whole("{}")) as server:
        way = Way(origin=origin_of(server.url), private=True)
        query(f"{server.url}/graphql", parse(typed), {}, way=way, headers={})

    assert "mutation" not in server.requests[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"document": "query {"}, "no GraphQL document", id="half a document"),
        pytest.param({"document": "{ a }" * 900}, "document", id="too many tokens"),
        pytest.param({"document": "{" * 1500}, "document", id="nested too deeply"),
        pytest.param({"variables": {}}, "needs .ref", id="a variable without a value"),
        pytest.param(
            {"variables": {"ref": "reference", "x": "key"}}, "no .x", id="an undeclared one"
        ),
        pytest.param({"variables": {"ref": "=100"}}, "names the call", id="about nobody"),
        pytest.param({"variables": {"ref": "=x"}}, "JSON", id="a constant that is none"),
        pytest.param({"variables": {"ref": "secret"}}, "secret", id="no such source"),
        pytest.param({"variables": {"ref": "cursor"}}, "page_info", id="a cursor without pages"),
        pytest.param({"page_info": "a.pageInfo"}, "cursor", id="pages without a cursor"),
        pytest.param({"items": ""}, "items", id="objects nowhere"),
        pytest.param({"path": "//evil.example"}, "path", id="another host"),
        pytest.param({"path": "graphql"}, "path", id="no path"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_config({**ONE, **changes})


def test_a_list_is_asked_for_a_time_and_for_nobody() -> None:
    assert read_list_config(LIST).reference_field == "ref"
    for changes in (
        {"variables": {"from": "reference", "at": "cursor"}},
        {"variables": {"from": "=1", "at": "cursor"}},
        {"reference_field": ""},
    ):
        with pytest.raises(ValueError, match=r"variables|reference_field"):
            read_list_config({**LIST, **changes})
