"""What the cases about posted bodies say to people: kept, shown, and never a fault of ours."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import Workspace
from ledger.models import IngestItem
from tests.cases.at_hand import the_case
from tests.cases.fields import Fields
from tests.cases.ingest import Doors, bodies_of
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def doors() -> Doors:
    return Doors.open()


@pytest.fixture
def person(client: Client, doors: Doors) -> Client:
    """Somebody who reads everything of the case's workspace."""
    client.force_login(desk.a_person(Workspace.objects.get(slug="case"), Role.ENGINEER))
    return client


def bodies(case_id: str) -> list[bytes]:
    given = the_case(case_id).input
    names = ("raw_bodies", "raw_body_recipe", "raw_body_recipes")
    return bodies_of(Fields("input", {name: given[name] for name in names if name in given}))


@pytest.mark.case("J06", "J07", "J09", "J10")
@pytest.mark.parametrize("case_id", ["J06", "J07", "J09", "J10"])
def test_whatever_was_posted_every_page_of_it_opens(
    case_id: str, doors: Doors, person: Client
) -> None:
    came = [doors.post(body) for body in bodies(case_id)]
    assert not [one for one in came if one.word.startswith("5")]
    for item in IngestItem.objects.all():
        addresses = [f"/events/{item.pk}/", f"/events/{item.pk}/raw"]
        if item.claim_id is not None:
            addresses.append(f"/calls/{item.claim_id}")
        for address in addresses:
            page = person.get(address)
            assert page.status_code == 200, address


def refuse(word: str) -> Any:
    raise AssertionError(f"{word} was sent out")


@pytest.mark.case("J07")
def test_no_json_that_is_sent_out_holds_a_word_that_is_no_number(doors: Doors) -> None:
    for body in bodies("J07"):
        doors.post(body)
    for item in IngestItem.objects.filter(claim_id__isnull=False):
        status = doors.agent.get(f"claims/{item.claim_id}")
        said = json.loads(status.body, parse_constant=refuse)
        if said.get("result"):
            json.loads(said["result"], parse_constant=refuse, parse_float=str, parse_int=str)


@pytest.mark.case("J06")
def test_a_whole_character_is_not_damaged_and_half_a_one_is_marked_and_kept(doors: Doors) -> None:
    cut, swapped, whole = bodies("J06")
    assert doors.post(cut).mended == ("lone_surrogate",)
    assert doors.post(swapped).mended == ("lone_surrogate",)
    assert doors.post(whole).mended == ()
    kept = {bytes(item.raw or b"") for item in IngestItem.objects.filter(event_id="s1")}
    assert any(b"\\ud83d" in raw for raw in kept)
    item = IngestItem.objects.get(event_id="s3")
    status = doors.agent.get(f"claims/{item.claim_id}")
    assert json.loads(status.json["result"]) == {"t": "\N{GRINNING FACE}"}


@pytest.mark.case("J08")
def test_the_claim_is_refused_before_anything_runs_and_leaves_nothing(doors: Doors) -> None:
    came = doors.post(bodies("J08")[0])
    assert (came.word, came.code, came.at is not None) == ("422", "duplicate_member", True)
    assert '"amount"' in came.says


@pytest.mark.case("J09")
def test_the_time_grows_with_the_length_and_not_with_its_square(doors: Doors) -> None:
    """Read by Python's own reader, the longer number would take a hundred times as long."""

    def seconds(digits: int) -> float:
        head = (
            b'{"events":[{"event_id":"g%d","type":"complete","ref":"r","attempt_id":"a",' % digits
        )
        began = time.perf_counter()
        doors.post(head + b'"result":{"price":' + b"9" * digits + b"}}]}")
        return time.perf_counter() - began

    seconds(1_000)
    short = min(seconds(100_000 + n) for n in range(2))
    long = min(seconds(1_000_000 + n) for n in range(2))
    assert long < 40 * short + 0.5


@pytest.mark.case("J10")
def test_the_depth_that_is_refused_is_named(doors: Doors) -> None:
    came = [doors.post(body) for body in bodies("J10")]
    assert [one.word for one in came] == ["accepted", "422", "422", "422"]
    assert all("ITEM_DEPTH_MAX" in one.says for one in came[1:])
