"""How a list of a provider's is read: the interval, the pages, and where reading ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from effects.core.vocabulary import SightingWord
from reconcile.adapters import answering
from reconcile.adapters.base import CLOCK_SKEW_SECONDS, MatchedBy
from reconcile.adapters.door import sign_in
from reconcile.adapters.http import look_by_url
from reconcile.adapters.http_config import read_config, read_list_config
from reconcile.adapters.http_list import look_in_list, look_in_list_for_many
from tests.reconcile.adapters.conformance import (
    Running,
    WebStage,
    life_of,
    ours,
    probe_on,
    theirs,
)
from tests.reconcile.adapters.conformance_http import DIALECTS, InList
from tests.reconcile.adapters.loopback import loopback, whole
from tests.reconcile.adapters.probes import CLAIM, MARKER, OTHER_CLAIM, a_place, a_probe

LIST: dict[str, Any] = {
    "url": "/payments?since={since}&until={until}",
    "items": "payments",
    "reference_field": "reference",
    "map": {"done": "found"},
    "delay_class": "none",
}
OURS = {"id": "p1", "reference": MARKER, "status": "done"}
BY_CURSOR = next(one for one in DIALECTS if isinstance(one, InList) and one.by == "cursor")


@pytest.fixture
def running() -> Iterator[Running]:
    with WebStage(BY_CURSOR).open() as playing:
        yield playing


def asked(request: str) -> dict[str, str]:
    target = request.split(" ", 2)[1]
    return {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}


# The interval


@pytest.mark.parametrize("written", ["iso", "unix"])
def test_the_interval_is_wider_than_clocks_differ_on_both_sides(written: str) -> None:
    with loopback(whole('{"payments": []}')) as server:
        probe = a_probe(server.url, config={**LIST, "instants": written})
        look_in_list(probe)

    said = asked(server.requests[0])
    read = (
        (lambda text: datetime.fromtimestamp(int(text), UTC))
        if written == "unix"
        else datetime.fromisoformat
    )
    skew = timedelta(seconds=CLOCK_SKEW_SECONDS)
    assert abs(read(said["since"]) - (probe.since - skew)) < timedelta(seconds=2)
    assert abs(read(said["until"]) - (probe.asked_at + skew)) < timedelta(seconds=2)


def test_a_provider_whose_clock_is_behind_is_asked_for_an_earlier_time() -> None:
    behind = timedelta(hours=1)
    dated = format_datetime(datetime.now(UTC) - behind, usegmt=True)
    with loopback(whole('{"payments": []}', headers=f"Date: {dated}\r\n")) as server:
        look = look_in_list(a_probe(server.url, config=LIST))

    first, second = (datetime.fromisoformat(asked(r)["since"]) for r in server.requests)
    assert abs((first - second) - behind) < timedelta(seconds=5)
    assert look.reads == 2
    assert look.interval_from is not None


def test_a_marker_is_found_only_where_the_request_carried_it() -> None:
    with loopback(whole('{"payments": []}')) as server:
        marked = look_in_list(a_probe(server.url, config=LIST))
        required = look_in_list(a_probe(server.url, config={**LIST, "reference": "key"}))

    assert marked.matched_by is MatchedBy.MARKER
    assert required.matched_by is MatchedBy.REFERENCE


# The pages


def test_a_list_with_further_pages_that_nobody_reads_says_nothing() -> None:
    config = {**LIST, "more": "more"}

    with loopback(whole('{"payments": [], "more": true}')) as server:
        look = look_in_list(a_probe(server.url, config=config))

    assert look.word is SightingWord.UNMAPPED


def test_too_many_pages_are_read_in_part_and_said_so(
    running: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answering, "PAGES_MAX", 3)
    stage = WebStage(BY_CURSOR)
    running.show(*(theirs(f"alien_{n}") for n in range(20)), ours())

    look = look_in_list(probe_on(stage, running))

    assert (look.word, look.pages_complete, look.reads) == (SightingWord.ABSENT, False, 3)


def test_a_page_with_too_many_objects_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "PAGE_ITEMS_MAX", 2)
    with loopback(whole(json.dumps({"payments": [OURS] * 3}))) as server:
        look = look_in_list(a_probe(server.url, config=LIST))

    assert look.word is SightingWord.UNMAPPED
    assert "at most 2" in look.why


@pytest.mark.parametrize(
    ("pages", "body", "word"),
    [
        pytest.param(
            {"by": "link", "at": "next"},
            {"next": "https://evil.example/x"},
            SightingWord.MISCONFIGURED,
            id="a link to another host",
        ),
        pytest.param(
            {"by": "link", "at": "next"}, {"next": {"a": 1}}, SightingWord.UNMAPPED, id="no link"
        ),
        pytest.param(
            {"by": "cursor", "at": "next", "parameter": "after"},
            {"next": True},
            SightingWord.UNMAPPED,
            id="no cursor",
        ),
        pytest.param(
            {"by": "cursor", "at": "next", "parameter": "after"},
            {"next": None, "more": True},
            SightingWord.UNMAPPED,
            id="more, and not where",
        ),
    ],
)
def test_what_leads_to_no_next_page_is_no_end_of_the_list(
    pages: dict[str, Any], body: dict[str, Any], word: SightingWord
) -> None:
    config = {**LIST, "pages": pages, **({"more": "more"} if "more" in body else {})}
    with loopback(whole(json.dumps({"payments": [], **body}))) as server:
        look = look_in_list(a_probe(server.url, config=config))

    assert look.word is word
    assert all("evil" not in request for request in server.requests)


def test_a_cursor_that_stays_the_same_ends_the_reading_and_leaves_no_proof() -> None:
    config = {**LIST, "pages": {"by": "cursor", "at": "next", "parameter": "after"}}
    with loopback(whole('{"payments": [], "next": "same"}')) as server:
        look = look_in_list(a_probe(server.url, config=config))

    assert (look.reads, look.pages_complete) == (2, False)
    assert asked(server.requests[1])["after"] == "same"


# Many calls


def test_one_reading_names_what_belongs_to_no_call(running: Running) -> None:
    stage = WebStage(BY_CURSOR)
    lost = ours("obj_lost", life=life_of(OTHER_CLAIM))
    running.show(ours(), theirs("alien_1"), lost)

    scan = look_in_list_for_many([probe_on(stage, running)])

    strangers = {stranger.id: stranger for stranger in scan.strangers}
    assert set(strangers) == {"alien_1", "obj_lost"}
    assert strangers["obj_lost"].marker == life_of(OTHER_CLAIM).marker
    assert strangers["alien_1"].marker == ""
    assert strangers["alien_1"].amount == "42.00 eur"


def test_a_call_without_the_argument_says_so_and_the_others_are_answered(
    running: Running,
) -> None:
    stage = WebStage(BY_CURSOR)
    config = {**stage.config, "reference": "arguments.order"}
    usual = {"place": running.place, "config": config}
    url = running.place.base_url
    with_it = a_probe(url, **usual, claim_id=OTHER_CLAIM, arguments={"order": "o-1"})
    without = a_probe(url, **usual, claim_id=CLAIM, arguments={})

    scan = look_in_list_for_many([with_it, without])

    assert scan.looks[with_it.claim_id].word is SightingWord.ABSENT
    assert scan.looks[without.claim_id].word is SightingWord.MISCONFIGURED


# The entry


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"url": "/all"}, "url", id="no time"),
        pytest.param({"url": "/all?until={until}"}, "url", id="an end without a beginning"),
        pytest.param({"url": "/all?since={since}&key={key}"}, "url", id="about one call"),
        pytest.param({"reference_field": ""}, "reference_field", id="objects without owners"),
        pytest.param({"items": ""}, "items", id="objects nowhere"),
        pytest.param({"pages": {"by": "cursor"}}, "pages", id="a cursor nowhere"),
        pytest.param({"pages": {"by": "number"}}, "pages", id="a number without a name"),
        pytest.param({"pages": {"by": "luck"}}, "pages", id="no such way"),
        pytest.param(
            {"pages": {"by": "number", "parameter": "a&b=c"}}, "pages", id="two parameters in one"
        ),
        pytest.param({"instants": "words"}, "instants", id="no such spelling"),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_list_config({**LIST, **changes})


def test_a_field_of_the_arguments_is_compared_with_what_is_there() -> None:
    config = {
        "url": "/x/{key}",
        "map": {"done": "found"},
        "compare": {"order.id": "order", "count": "n", "note": "note"},
    }
    assert read_config(config).compare
    with loopback(whole('{"id": "p", "status": "done", "order": "o-2", "n": 7.0}')) as server:
        look = look_by_url(
            a_probe(
                server.url,
                config=config,
                amount=None,
                arguments={"order": {"id": "o-1"}, "count": "7"},
            )
        )

    assert look.word is SightingWord.FOUND_DIFFERENT
    assert look.requested == {"order.id": "o-1", "count": "7"}
    assert look.found == {"order.id": "o-2", "count": "7"}


# Signing in


def test_signing_in_sends_one_fixed_body_and_the_pair_in_a_header() -> None:
    with loopback(whole('{"access_token": "t"}')) as server:
        place = a_place(server.url)
        answered = sign_in(
            f"{server.url}/v1/oauth2/token", way=place.way, client_id="me", client_secret="pw"
        )

    head, body = server.requests[0].split("\r\n\r\n", 1)
    assert answered.status == 200
    assert body == "grant_type=client_credentials"
    assert "Authorization: Basic bWU6cHc=" in head
