"""What the Salesforce adapter sees at a sandbox that keeps Salesforce's contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import requests

from effects.core.identity import marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters import rest
from reconcile.adapters.base import Delay, Look, MatchedBy, Probe
from reconcile.lookups import LOOKUPS
from reconcile.sandbox.provider.server import Provider
from tests.reconcile.adapters.loopback import loopback, whole
from tests.reconcile.adapters.probes import CLAIM, MARKER, a_life, a_place, a_probe
from tests.reconcile.sandbox.shoppers import ORGANISATION, Shopper

ENTRY = {"object": "Refund__c", "external_id": "Counterfoil__c", "amount": "Amount__c"}
SURE = {"delay_class": "none", "sees_all_records": True}


@pytest.fixture
def shopper(provider: Provider) -> Iterator[Shopper]:
    rest.forget()
    one = Shopper(provider.url)
    yield one
    one.close()


def asked(shopper: Shopper, **config: Any) -> Probe:
    place = a_place(
        f"{shopper.url}/salesforce", account=ORGANISATION, secret=f"{ORGANISATION}:client_secret"
    )
    return a_probe(shopper.url, place=place, config={**ENTRY, **config})


def at(probe: Probe, **place: Any) -> Probe:
    return replace(probe, place=replace(probe.place, **place))


def look(probe: Probe) -> Look:
    return LOOKUPS["salesforce.records"].look(probe)


def put(provider: Provider, record_id: str, **changes: Any) -> None:
    table = f"salesforce/{ORGANISATION}/test/Refund__c"
    with provider.world.store.batch() as batch:
        row = provider.world.store.table(table)[record_id]
        batch.put(table, record_id, {**row, **changes})


def test_a_record_whose_answer_was_lost_is_read_where_it_was_upserted(shopper: Shopper) -> None:
    with pytest.raises(requests.ConnectionError):
        shopper.upsert(MARKER, fault="drop_after_commit")
    (effect,) = shopper.truth()

    found = look(asked(shopper))

    assert (found.word, found.objects) == (SightingWord.FOUND, (effect["object_id"],))
    assert found.requested == found.found == {"amount": "42.00"}
    assert (found.matched_by, found.right_place) == (MatchedBy.REFERENCE, True)
    assert found.reads == 2, "one for the organisation, one for the record"
    assert look(asked(shopper)).reads == 1, "whose the secret is, is remembered"


def test_several_records_with_one_external_id_are_all_named(shopper: Shopper) -> None:
    ids = {shopper.insert(MARKER).json()["id"] for _ in range(3)}

    found = look(asked(shopper))

    assert (found.word, set(found.objects)) == (SightingWord.FOUND_MANY, ids)


def test_a_record_in_the_recycle_bin_is_not_nothing(shopper: Shopper, provider: Provider) -> None:
    record_id = shopper.upsert(MARKER).json()["id"]
    put(provider, record_id, IsDeleted=True)

    found = look(asked(shopper, **SURE))

    assert (found.word, found.status) == (SightingWord.FOUND_DIFFERENT, "deleted")
    assert found.objects == (record_id,)


@pytest.mark.parametrize(
    ("config", "delay"),
    [
        ({}, Delay.UNKNOWN),
        ({"delay_class": "none"}, Delay.UNKNOWN),
        ({"sees_all_records": True}, Delay.UNKNOWN),
        (SURE, Delay.NONE),
    ],
    ids=["nothing said", "not said who sees", "not said how late", "both"],
)
def test_a_404_is_proof_only_where_the_entry_says_both_things(
    shopper: Shopper, config: dict[str, Any], delay: Delay
) -> None:
    found = look(asked(shopper, **config))

    assert (found.word, found.delay_class, found.right_place) == (SightingWord.ABSENT, delay, True)


def test_a_record_that_this_user_may_not_see_looks_like_none(shopper: Shopper) -> None:
    shopper.upsert(MARKER)

    found = look(at(asked(shopper, delay_class="none"), secret=f"{ORGANISATION}X:client_secret"))

    assert (found.word, found.delay_class) == (SightingWord.ABSENT, Delay.UNKNOWN)


@pytest.mark.parametrize(
    ("config", "says"),
    [({"object": "Refnd__c"}, "INVALID_TYPE"), ({"external_id": "Counterfol__c"}, "INVALID_FIELD")],
    ids=["no such object", "no such field"],
)
def test_a_name_that_does_not_exist_is_answered_with_404_and_is_no_absence(
    shopper: Shopper, config: dict[str, str], says: str
) -> None:
    shopper.upsert(MARKER)

    found = look(asked(shopper, **SURE, **config))

    assert found.word is SightingWord.MISCONFIGURED
    assert says in found.why


@pytest.mark.parametrize(
    ("place", "says"),
    [
        ({"account": "00DTOTHER000001"}, "not of 00DTOTHER000001"),
        ({"secret": "00DTOTHER000001:s"}, "of the account '00DTOTHER000001EAA'"),
        ({"secret": "00DLHALDEN00001:s", "account": "00DLHALDEN00001"}, "a production organ"),
        ({"secret": "nobody:s"}, "does not let us sign in"),
        ({"secret": "no session"}, "does not let us ask"),
    ],
    ids=["registered otherwise", "another", "production", "unknown client", "no session"],
)
def test_a_wrong_place_is_misconfigured_and_never_an_absence(
    shopper: Shopper, place: dict[str, str], says: str
) -> None:
    found = look(at(asked(shopper, **SURE), **place))

    assert found.word is SightingWord.MISCONFIGURED
    assert says in found.why


def test_an_id_of_eighteen_characters_is_that_of_fifteen(shopper: Shopper) -> None:
    found = look(at(asked(shopper), account=f"{ORGANISATION}EAA"))

    assert (found.word, found.right_place) == (SightingWord.ABSENT, True)


def test_whoever_may_not_read_the_organisation_is_not_sure_of_the_place(shopper: Shopper) -> None:
    shopper.upsert(MARKER)
    rule = {"operation": "salesforce.query", "fault": "rate_limit_429", "sends_max": None}
    shopper.control("POST", "/faults", {"rules": [rule]})

    found = look(asked(shopper))

    assert (found.word, found.right_place) == (SightingWord.FOUND, False)


def test_an_organisation_whose_requests_are_used_up_is_rate_limited(shopper: Shopper) -> None:
    shopper.upsert(MARKER)
    shopper.fault_reads("salesforce.records.retrieve", "rate_limit_429")

    found = look(asked(shopper))

    assert (found.word, found.http_status) == (SightingWord.RATE_LIMITED, 403)


def test_a_field_of_the_record_may_say_what_became_of_it(shopper: Shopper) -> None:
    config = {"status": "Status__c", "map": {"Paid": "found", "Queued": "pending"}}
    said = {}
    for status in ("Paid", "Queued", "Strange", None):
        shopper.upsert(MARKER, Status__c=status)
        said[status] = look(asked(shopper, **config)).word

    assert said == {
        "Paid": SightingWord.FOUND,
        "Queued": SightingWord.PENDING,
        "Strange": SightingWord.UNMAPPED,
        None: SightingWord.UNMAPPED,
    }


def test_what_somebody_changed_since_differs(shopper: Shopper) -> None:
    shopper.upsert(MARKER, Order__c="O-7")
    shopper.upsert(MARKER, Amount__c="41.00", Order__c="O-8")
    probe = replace(asked(shopper, compare={"order": "Order__c"}), arguments={"order": "O-7"})

    found = look(probe)

    assert found.word is SightingWord.FOUND_DIFFERENT
    assert found.found == {"amount": "41.00", "order": "O-8"}


def test_each_generation_of_the_key_is_asked_about(shopper: Shopper) -> None:
    second = shopper.upsert(marker(CLAIM, 2)).json()["id"]
    probe = replace(asked(shopper), generations=(a_life(1, is_open=False), a_life(2)))

    found = look(probe)

    assert (found.word, found.objects) == (SightingWord.FOUND, (second,))


def test_a_reference_of_the_arguments_is_asked_as_text_and_nothing_more(shopper: Shopper) -> None:
    odd = "x' OR Name != '"
    probe = replace(asked(shopper, reference="arguments.order"), arguments={"order": odd})
    with loopback(whole('[{"errorCode": "NOT_FOUND"}]', status="404 Not Found")) as server:
        place = a_place(server.url, secret="a session")
        look(replace(probe, place=place))

    asked_about = [one.split(" ")[1] for one in server.requests]
    assert asked_about[1].endswith("/Counterfoil__c/x%27%20OR%20Name%20%21%3D%20%27")
    assert "%27x%5C%27+OR+Name+%21%3D+%5C%27%27" in asked_about[2]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"object": "Refund__c WHERE x"}, "object"),
        ({"external_id": "a'b"}, "external_id"),
        ({"reference": "yesterday"}, "reference"),
        ({"api_version": "latest"}, "api_version"),
        ({"map": {"Paid": "sold"}}, "map"),
    ],
)
def test_an_entry_that_cannot_be_used_says_which_member(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        LOOKUPS["salesforce.records"].read_config({**ENTRY, **config})
