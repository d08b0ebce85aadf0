"""What the generic adapter sees: the sandbox's plain provider, and servers that answer oddly."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from effects.core.canonical import parse_arguments
from effects.core.vocabulary import SightingWord
from effects.money import from_minor
from reconcile.adapters.base import Delay, Look, MatchedBy
from reconcile.adapters.door import Limits
from reconcile.adapters.http import look_by_url
from reconcile.adapters.http_config import read_config
from tests.reconcile.adapters.loopback import Talk, dripping, loopback, raw, whole
from tests.reconcile.adapters.probes import CLAIM, KEY, MARKER, a_life, a_place, a_probe, key_of
from tests.reconcile.sandbox.customer import PLAIN_TOKEN, Customer

TRANSFERS: dict[str, Any] = {
    "url": "/plain/transfers?reference={reference}",
    "items": "transfers",
    "reference_field": "reference",
    "amount": "amount",
    "currency": "currency",
    "map": {"settled": "found"},
    "absent_when": {"empty": True},
    "delay_class": "none",
}
ONE: dict[str, Any] = {
    "url": "/payments/{key}",
    "map": {"done": "found", "running": "pending", "rejected": "absent", "void": "found_different"},
    "absent_when": {"http_status": 404},
    "delay_class": "none",
}


def look_at(url: str, config: dict[str, Any], **changes: Any) -> Look:
    place = a_place(url, secret=PLAIN_TOKEN)
    return look_by_url(a_probe(url, **{"place": place, "config": config, **changes}))


def answered(talk: Talk, config: dict[str, Any] | None = None, **changes: Any) -> Look:
    with loopback(talk) as server:
        return look_at(server.url, ONE if config is None else config, **changes)


# At the sandbox's plain provider


def test_a_transfer_whose_answer_was_lost_is_found_by_its_reference(customer: Customer) -> None:
    with pytest.raises(OSError, match="aborted"):
        customer.transfer(MARKER, fault="drop_after_commit")
    (effect,) = customer.truth()

    look = look_at(customer.url, TRANSFERS, amount=from_minor(900, "eur"))

    assert (look.word, look.objects) == (SightingWord.FOUND, (effect["object_id"],))
    assert (look.status, look.delay_class) == ("settled", Delay.NONE)
    assert look.matched_by is MatchedBy.REFERENCE
    assert look.pages_complete
    assert look.request_id.startswith("preq_")


def test_a_transfer_that_was_never_made_is_absent(customer: Customer) -> None:
    customer.transfer("other")

    look = look_at(customer.url, TRANSFERS)

    assert (look.word, look.objects) == (SightingWord.ABSENT, ())
    assert look.pages_complete


@pytest.mark.parametrize("account", ["", "acct_7"])
def test_an_account_that_no_answer_was_said_to_name_leaves_the_place_unsure(
    customer: Customer, account: str
) -> None:
    place = a_place(customer.url, secret=PLAIN_TOKEN, account=account)

    look = look_at(customer.url, TRANSFERS, place=place)

    assert look.word is SightingWord.ABSENT
    assert look.right_place is (account == "")


def test_two_transfers_with_one_reference_are_both_named(customer: Customer) -> None:
    customer.transfer(MARKER, fault="gateway_duplicate")

    look = look_at(customer.url, TRANSFERS, amount=from_minor(900, "eur"))

    assert look.word is SightingWord.FOUND_MANY
    assert len(look.objects) == 2


def test_each_generation_has_its_own_reference(customer: Customer) -> None:
    lives = (a_life(1), a_life(2))
    customer.transfer(lives[1].marker)
    amount = from_minor(900, "eur")

    both = look_at(customer.url, TRANSFERS, generations=lives, amount=amount)
    first = look_at(customer.url, TRANSFERS, generations=lives[:1], amount=amount)

    assert both.word is SightingWord.FOUND
    assert first.word is SightingWord.ABSENT
    assert all(life.marker in both.query for life in lives)


def test_another_amount_differs(customer: Customer) -> None:
    customer.transfer(MARKER)

    look = look_at(customer.url, TRANSFERS, amount=from_minor(901, "eur"))

    assert look.word is SightingWord.FOUND_DIFFERENT
    assert look.requested == {"amount": "9.01", "currency": "EUR"}
    assert look.found == {"amount": "9.00", "currency": "EUR"}


def test_a_token_that_is_refused_is_no_absence(customer: Customer) -> None:
    place = a_place(customer.url, secret="nonsense")

    assert look_at(customer.url, TRANSFERS, place=place).word is SightingWord.MISCONFIGURED


# What an answer says


@pytest.mark.parametrize(
    ("body", "word"),
    [
        ('{"id": "p1", "status": "done"}', SightingWord.FOUND),
        ('{"id": "p1", "status": "running"}', SightingWord.PENDING),
        ('{"id": "p1", "status": "void"}', SightingWord.FOUND_DIFFERENT),
        ('{"id": "p1", "status": "rejected"}', SightingWord.ABSENT),
        ('{"id": "p1", "status": "unconfirmed"}', SightingWord.UNMAPPED),
        ('{"id": "p1", "status": true}', SightingWord.UNMAPPED),
        ('{"id": "p1"}', SightingWord.UNMAPPED),
        ("{}", SightingWord.UNMAPPED),
        ("[]", SightingWord.UNMAPPED),
        ("null", SightingWord.UNMAPPED),
        ("", SightingWord.UNMAPPED),
        ('{"id": "p1", "status": "done"', SightingWord.UNMAPPED),
        ("<html>maintenance</html>", SightingWord.UNMAPPED),
        ("[" * 5000, SightingWord.UNMAPPED),
        ('{"status": 3e333333333333333333333}', SightingWord.UNMAPPED),
    ],
)
def test_a_status_means_what_the_map_says_and_nothing_else(body: str, word: SightingWord) -> None:
    look = answered(whole(body))

    assert look.word is word
    assert look.raw == body.encode() or not body


def test_a_status_that_nobody_mapped_is_quoted() -> None:
    assert "'unconfirmed'" in answered(whole('{"id": "p1", "status": "unconfirmed"}')).why


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("204 No Content", SightingWord.UNMAPPED),
        ("301 Moved", SightingWord.MISCONFIGURED),
        ("307 Temporary Redirect", SightingWord.MISCONFIGURED),
        ("400 Bad Request", SightingWord.UNMAPPED),
        ("401 Unauthorized", SightingWord.MISCONFIGURED),
        ("403 Forbidden", SightingWord.MISCONFIGURED),
        ("404 Not Found", SightingWord.ABSENT),
        ("408 Request Timeout", SightingWord.LOOKUP_FAILED),
        ("410 Gone", SightingWord.UNMAPPED),
        ("429 Too Many Requests", SightingWord.RATE_LIMITED),
        ("500 Internal Server Error", SightingWord.LOOKUP_FAILED),
        ("503 Service Unavailable", SightingWord.LOOKUP_FAILED),
    ],
)
def test_each_http_status_has_one_meaning(status: str, word: SightingWord) -> None:
    look = answered(whole("", status=status, headers="Retry-After: 7\r\n"))

    assert look.word is word
    assert look.http_status == int(status[:3])
    assert look.retry_after_seconds == 7


@pytest.mark.parametrize(
    ("contract", "body", "word"),
    [
        pytest.param({}, '{"code": "none"}', SightingWord.UNMAPPED, id="no contract, no absence"),
        pytest.param({"http_status": 404}, '{"a": 1}', SightingWord.ABSENT, id="by status"),
        pytest.param(
            {"http_status": 404}, "<html>", SightingWord.UNMAPPED, id="a gateway's page is no word"
        ),
        pytest.param(
            {"http_status": 404, "body": "code == 'none'"},
            '{"code": "none"}',
            SightingWord.ABSENT,
            id="by status and body",
        ),
        pytest.param(
            {"http_status": 404, "body": "code == 'none'"},
            '{"code": "no such route"}',
            SightingWord.UNMAPPED,
            id="another 404",
        ),
        pytest.param(
            {"http_status": 404, "body": "code == 'none'"},
            "",
            SightingWord.UNMAPPED,
            id="a 404 that says nothing",
        ),
    ],
)
def test_not_found_is_absent_only_where_the_contract_says_so(
    contract: dict[str, Any], body: str, word: SightingWord
) -> None:
    config = {**ONE, "absent_when": contract}

    assert answered(whole(body, status="404 Not Found"), config).word is word


@pytest.mark.parametrize(
    ("body", "word"),
    [
        pytest.param({"transfers": []}, SightingWord.ABSENT, id="an empty list"),
        pytest.param({"transfers": None}, SightingWord.UNMAPPED, id="no list"),
        pytest.param({}, SightingWord.UNMAPPED, id="the list is missing"),
        pytest.param({"transfers": [7]}, SightingWord.UNMAPPED, id="not objects"),
        pytest.param(
            {"transfers": [{"id": "t", "reference": "other", "status": "settled"}]},
            SightingWord.UNMAPPED,
            id="the provider did not filter",
        ),
    ],
)
def test_a_list_must_be_there_to_be_empty(body: Any, word: SightingWord) -> None:
    assert answered(whole(json.dumps(body)), TRANSFERS).word is word


def test_an_empty_list_without_a_contract_says_nothing() -> None:
    config = {**TRANSFERS, "absent_when": {}}

    assert answered(whole('{"transfers": []}'), config).word is SightingWord.UNMAPPED


def test_a_list_with_further_pages_is_not_read_as_whole() -> None:
    config = {**TRANSFERS, "more": "next"}

    assert answered(whole('{"transfers": [], "next": "p2"}'), config).word is SightingWord.UNMAPPED
    assert answered(whole('{"transfers": [], "next": null}'), config).word is SightingWord.ABSENT


def test_an_amount_is_compared_without_a_float() -> None:
    config = {**ONE, "amount": "total", "amount_is_minor": False}
    body = '{"id": "p1", "status": "done", "total": 0.30000000000000004}'

    look = answered(whole(body), config, amount=from_minor(30, "eur"))

    assert look.word is SightingWord.FOUND_DIFFERENT
    assert look.found["amount"] != "0.30"


@pytest.mark.parametrize("total", ["null", "true", '"much"', "{}", "1e999999999"])
def test_an_amount_that_is_none_differs(total: str) -> None:
    config = {**ONE, "amount": "total"}
    body = f'{{"id": "p1", "status": "done", "total": {total}}}'

    assert answered(whole(body), config).word is SightingWord.FOUND_DIFFERENT


@pytest.mark.parametrize("name", ["null", '""', "true", "1.5", "{}", '"' + "x" * 256 + '"'])
def test_an_object_without_a_name_cannot_be_told_from_another(name: str) -> None:
    assert answered(whole(f'{{"id": {name}, "status": "done"}}')).word is SightingWord.UNMAPPED


def test_an_object_may_be_named_by_a_number() -> None:
    assert answered(whole('{"id": 77, "status": "done"}')).objects == ("77",)


def test_one_object_that_answers_two_questions_is_one() -> None:
    look = answered(whole('{"id": "p1", "status": "done"}'), generations=(a_life(1), a_life(2)))

    assert (look.word, look.objects) == (SightingWord.FOUND, ("p1",))


def test_the_evidence_keeps_our_objects_and_nobody_elses() -> None:
    ours = {"id": "t1", "reference": MARKER, "status": "settled", "amount": 4200}
    theirs = {**ours, "id": "t2", "reference": "other"}
    config = {**TRANSFERS, "currency": ""}

    both = answered(whole(json.dumps({"transfers": [theirs, ours]})), config)
    none = answered(whole(json.dumps({"transfers": [theirs]})), config)

    assert (both.word, both.objects) == (SightingWord.FOUND, ("t1",))
    assert both.raw is not None
    assert b"t1" in both.raw
    assert b"t2" not in both.raw
    assert none.raw is None


# No answer


@pytest.mark.parametrize(
    "talk",
    [
        pytest.param(raw(b""), id="closed at once"),
        pytest.param(
            raw(b"HTTP/1.1 404 Not Found\r\nContent-Length: 9\r\n\r\n{"), id="cut in the body"
        ),
        pytest.param(whole(b" " * (2 * 1024 * 1024 + 1)), id="too long"),
    ],
)
def test_what_is_not_whole_says_nothing(talk: Talk) -> None:
    assert answered(talk).word is SightingWord.LOOKUP_FAILED


def test_a_provider_that_takes_its_time_is_cut_off() -> None:
    with loopback(dripping(b"HTTP/1.1 404 Not Found\r\n" * 100, pause_seconds=0.05)) as server:
        place = a_place(server.url)
        hurried = replace(place, way=replace(place.way, limits=Limits(seconds=0.5)))
        look = look_at(server.url, ONE, place=hurried)

    assert look.word is SightingWord.LOOKUP_FAILED
    assert "within 0.5 s" in look.why


# The question


def test_the_question_names_the_key_and_carries_the_secret() -> None:
    with loopback(whole("{}")) as server:
        look_at(server.url, ONE)

    (request,) = server.requests
    assert request.startswith(f"GET /payments/{key_of(1)} HTTP/1.1\r\n")
    assert f"Authorization: Bearer {PLAIN_TOKEN}\r\n" in request


def test_another_header_may_carry_the_secret() -> None:
    with loopback(whole("{}")) as server:
        look_at(server.url, {**ONE, "auth_header": "X-Api-Key", "auth_prefix": ""})

    assert f"X-Api-Key: {PLAIN_TOKEN}\r\n" in server.requests[0]


@pytest.mark.parametrize(
    ("reference", "asked"),
    [
        ("marker", MARKER),
        ("key", key_of(1)),
        ("claim", str(CLAIM)),
        ("arguments.order.id", "7%2F..%3Fa%3Db%26c"),
    ],
)
def test_a_reference_is_quoted_into_the_path(reference: str, asked: str) -> None:
    arguments = parse_arguments('{"order": {"id": "7/..?a=b&c"}}')
    with loopback(whole("{}")) as server:
        config = {**ONE, "url": "/x/{reference}", "reference": reference}
        look_at(server.url, config, arguments=arguments)

    assert server.requests[0].startswith(f"GET /x/{asked} HTTP/1.1\r\n")


def test_a_reference_that_all_generations_share_is_asked_about_once() -> None:
    with loopback(whole('{"id": "p1", "status": "done"}')) as server:
        config = {**ONE, "url": "/x/{claim}", "reference": "claim"}
        look = look_at(server.url, config, generations=(a_life(1), a_life(2)))

    assert len(server.requests) == 1
    assert look.word is SightingWord.FOUND


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"reference": "arguments.order"}, "no text", id="a number, 7 or 7.0"),
        pytest.param({"reference": "arguments.id"}, "no text", id="not in the arguments"),
        pytest.param({"reference": "whatever"}, "whatever", id="no such reference"),
        pytest.param({"map": {"done": "yes"}}, "map", id="a word that does not exist"),
        pytest.param({"map": {"done": "misconfigured"}}, "map", id="a word that is no meaning"),
        pytest.param({"map": {}}, "map", id="an empty map"),
        pytest.param({"status": "a["}, "status", id="not JMESPath"),
        pytest.param({"url": "https://evil.example/{key}"}, "url", id="another host"),
        pytest.param({"url": "//evil.example/{key}"}, "url", id="another host without a scheme"),
        pytest.param({"url": "/all"}, "url", id="does not name the call"),
        pytest.param({"url": "/{key.__class__}"}, "url", id="reaches into the program"),
        pytest.param({"url": "/{0}"}, "url", id="a hole by number"),
        pytest.param({"url": "/{key"}, "url", id="an open brace"),
        pytest.param({"colour": "red"}, "colour", id="an entry that nobody knows"),
        pytest.param({"absent_when": {"http_status": 500}}, "absent_when", id="500 as absence"),
        pytest.param({"delay_class": "soon"}, "delay_class", id="a delay that does not exist"),
        pytest.param({"auth_header": "X: y\r\nZ"}, "auth_header", id="two headers in one"),
    ],
)
def test_an_entry_that_cannot_be_used_asks_nobody(changes: dict[str, Any], said: str) -> None:
    with loopback(whole("{}")) as server:
        look = look_at(
            server.url,
            {**ONE, "url": "/x/{reference}", **changes},
            arguments=parse_arguments('{"order": 7}'),
        )

    assert look.word is SightingWord.MISCONFIGURED
    assert said in look.why
    assert server.requests == []


def test_without_a_secret_nobody_is_asked() -> None:
    with loopback(whole("{}")) as server:
        look = look_at(server.url, ONE, place=a_place(server.url, secret=""))

    assert look.word is SightingWord.MISCONFIGURED
    assert server.requests == []


def test_more_generations_than_questions_is_no_absence() -> None:
    with loopback(whole('{"a": 1}', status="404 Not Found")) as server:
        lives = tuple(a_life(generation) for generation in range(1, 8))
        look = look_at(server.url, ONE, generations=lives)

    assert look.word is SightingWord.MISCONFIGURED
    assert "7 questions" in look.why


def test_the_smallest_entry_is_complete() -> None:
    config = read_config({"url": "/x/{key}", "map": {"done": "found"}})

    assert config.delay_class == "unknown", "nobody may trust an absence that was not promised"
    assert config.absent_when.http_status is None
    assert not config.absent_when.empty
    assert KEY
