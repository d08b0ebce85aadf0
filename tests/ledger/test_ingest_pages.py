"""What people see of events and turns."""

import pytest

from effects.core.vocabulary import Role
from ledger.ingest import ingest
from ledger.ingest_reading import EVENTS
from ledger.models import IngestItem
from tests.ledger.mirror import claim_made, started, tell
from tests.support import desk


@pytest.mark.parametrize("role", list(Role))
def test_the_lists_and_an_item_open_for_everybody(client, shop, refund, role):
    tell(shop.pk, started(attempt="<b>a</b>"), claim_made("k2"), claim_made("k2", position=7))
    ingest(shop.pk, None, EVENTS, [b'{"id": \xff<script>'])
    client.force_login(desk.a_person(shop, role))
    for tab in ("parked", "conflicts", "unreadable", "failed", "recent"):
        assert client.get(f"/events/?show={tab}").status_code == 200
    for item in IngestItem.objects.all():
        page = client.get(f"/events/{item.pk}/").content.decode()
        assert "<script>" not in page.split("</head>")[1].replace("<script src", "")
    parked = IngestItem.objects.get(state="parked")
    again = client.post(f"/events/{parked.pk}/again")
    assert again.status_code == (302 if role in {Role.ENGINEER, Role.ADMIN} else 403)


def test_another_workspace_has_no_such_item(client, shop, neighbour, refund):
    tell(shop.pk, claim_made())
    client.force_login(desk.a_person(neighbour, Role.ADMIN))
    item = IngestItem.objects.get()
    for address in (f"/events/{item.pk}/", f"/events/{item.pk}/raw"):
        assert client.get(address).status_code == 404


@pytest.mark.parametrize("name", ["c-1", "a/b c", "..", "line\nend", "<i>&?#"])
def test_a_turn_opens_from_its_call_whatever_the_conversation_is_called(client, shop, refund, name):
    (told,) = tell(shop.pk, claim_made(conversation=name))
    client.force_login(desk.a_person(shop, Role.ENGINEER))
    call = client.get(f"/calls/{told.claim_id}").content.decode()
    link = call.split('Seen in <a href="')[1].split('"')[0].replace("&amp;", "&")
    page = client.get(link)
    assert page.status_code == 200
    assert "claimed elsewhere" in page.content.decode()
    index = client.get("/turns/", {"conversation": name}).content.decode()
    assert "Turn 3" in index


def test_an_empty_turn_says_that_it_proves_nothing(client, shop):
    client.force_login(desk.a_person(shop, Role.VIEWER))
    assert "proves nothing" in client.get("/turns/nobody/7").content.decode()
