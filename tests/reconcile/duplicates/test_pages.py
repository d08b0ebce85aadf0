"""The pages about duplicates: what is listed, what may be said, what is exported, and by whom."""

from __future__ import annotations

import csv
import io
from typing import Any
from uuid import uuid4

import pytest
from django.db import ProgrammingError, connection, transaction
from django.test import Client
from django.urls import reverse

from effects.core.vocabulary import Role
from effects.models import AuditEntry, Tool, Workspace
from ledger import queries
from reconcile.duplicates import acting, finding
from reconcile.duplicates.acting import CannotSay, Seen
from reconcile.duplicates.importers.keeping import Line, keep
from reconcile.models import DuplicateAct, DuplicateGroup, ImportedEvidence, RetryConstants
from tests.support import desk

pytestmark = pytest.mark.django_db

CALL: dict[str, Any] = {"conversation": "talk", "call_id": "call_" + "a" * 20}
ARGUMENTS = {"amount": 200, "customer": "=cmd()", "order": "1"}


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def card(shop: Workspace) -> Tool:
    return desk.an_unkeyed_tool(shop)


@pytest.fixture
def group(shop: Workspace, card: Tool) -> DuplicateGroup:
    """The same thing twice in two turns: one payment of 200 is at stake."""
    for turn in (1, 4):
        said = {"turn_index": turn, "response_id": f"r{turn}", "nonce": uuid4().hex}
        call_id = f"call_{turn}" + "a" * 16
        desk.complete(
            card, desk.ask(card, arguments=ARGUMENTS, **(CALL | said | {"call_id": call_id}))
        )
    finding.search(shop.pk)
    return DuplicateGroup.objects.get(rule="same_thing")


def signed_in(workspace: Workspace, role: Role = Role.SUPPORT) -> Client:
    client = Client()
    client.force_login(desk.a_person(workspace, role))
    return client


def say(client: Client, group: DuplicateGroup, act: str, **more: Any) -> DuplicateGroup:
    seen = Seen.of(group)
    said = {"act": act, "reason": "looked at both", "version": seen.version, "shown": seen.shown}
    client.post(reverse("duplicate-say", args=[group.pk]), said | more)
    return DuplicateGroup.objects.get(pk=group.pk)


def test_the_empty_list_says_when_something_would_be_on_it(shop: Workspace) -> None:
    page = signed_in(shop).get(reverse("duplicates")).content.decode()
    assert "No duplicates here" in page
    assert "searched twice a minute" in page


def test_the_list_shows_what_is_at_stake_and_leads_to_the_group(
    shop: Workspace, group: DuplicateGroup
) -> None:
    page = signed_in(shop).get(reverse("duplicates")).content.decode()
    for words in ("Same business id, new key", "200.00", "Undetermined", "Open", "nobody"):
        assert words in page
    assert reverse("duplicate", args=[group.pk]) in page


@pytest.mark.parametrize(
    ("query", "listed"),
    [
        ("", True),
        ("?show=stopped", False),
        ("?show=all", True),
        ("?rule=same_thing", True),
        ("?rule=same_amount", False),
        ("?layer=undetermined", True),
        ("?layer=sdk_retry", False),
        ("?tool=issue_gift_card", True),
        ("?tool=other", False),
        ("?before=1", False),
        ("?rule=nonsense&layer=%00&before=x&show=y", True),
    ],
)
def test_the_address_chooses_what_is_listed(
    *, shop: Workspace, group: DuplicateGroup, query: str, listed: bool
) -> None:
    if query == "?before=1":
        query = f"?before={group.pk}"
    page = signed_in(shop).get(reverse("duplicates") + query).content.decode()
    assert (reverse("duplicate", args=[group.pk]) in page) == listed


def test_the_group_stands_side_by_side_with_what_is_missing(
    shop: Workspace, group: DuplicateGroup
) -> None:
    page = signed_in(shop).get(reverse("duplicate", args=[group.pk])).content.decode()
    for words in ("In numbers", "What decided", "It can be", "whether the user spoke", "differs"):
        assert words in page
    assert "none imported" in page


def test_nobody_of_another_workspace_finds_it(group: DuplicateGroup) -> None:
    other = signed_in(desk.a_workspace("other"))
    assert other.get(reverse("duplicate", args=[group.pk])).status_code == 404
    said = {"act": "confirm", "reason": "x", "version": group.version}
    assert other.post(reverse("duplicate-say", args=[group.pk]), said).status_code == 404


def test_acts_are_kept_with_who_and_why_and_move_the_group(
    shop: Workspace, group: DuplicateGroup
) -> None:
    client = signed_in(shop)
    assert say(client, group, "own", reason="").owner is not None
    group.refresh_from_db()
    assert say(client, group, "confirm").state == "confirmed"
    group.refresh_from_db()
    moved = say(client, group, "refund_requested", link="https://pay.example/refunds/7")
    assert moved.state == "refund_requested"
    acts = DuplicateAct.objects.order_by("pk")
    assert [one.act for one in acts] == ["own", "confirm", "refund_requested"]
    assert acts[2].link == "https://pay.example/refunds/7"
    assert acts[1].shown == acting.shown_digest(group)
    page = client.get(reverse("duplicate", args=[group.pk])).content.decode()
    assert "looked at both" in page
    assert "https://pay.example/refunds/7" in page


REFUSED = [
    ("confirm", {"reason": " "}, "give a reason"),
    ("confirm", {"reason": "x" * 501}, "at most 500"),
    ("reopen", {}, "already"),
    ("pay_back", {}, "choose what it is"),
    ("refund_requested", {"link": ""}, "https://"),
    ("refund_requested", {"link": "javascript:alert(1)"}, "https://"),
    ("refund_requested", {"link": "https://x y"}, "https://"),
]


@pytest.mark.parametrize(("act", "more", "says"), REFUSED)
def test_what_cannot_be_said_is_refused_with_a_sentence(
    shop: Workspace, group: DuplicateGroup, act: str, more: dict[str, str], says: str
) -> None:
    said: dict[str, Any] = {"reason": "why", "seen": Seen.of(group)} | more
    person = desk.a_person(shop)
    with pytest.raises(CannotSay, match=says):
        acting.say(group, act, user_id=person.pk, **said)
    assert not DuplicateAct.objects.exists()


def test_a_page_that_is_no_longer_true_decides_nothing(
    shop: Workspace, group: DuplicateGroup
) -> None:
    client = signed_in(shop)
    say(client, group, "own")
    assert say(client, group, "confirm").state == "new"


def test_evidence_that_changed_since_the_page_was_shown_decides_nothing(
    shop: Workspace, group: DuplicateGroup
) -> None:
    DuplicateGroup.objects.update(layers=["sdk_retry"])
    assert say(signed_in(shop), group, "confirm").state == "new"
    group.refresh_from_db()
    assert say(signed_in(shop), group, "confirm").state == "confirmed"


def test_a_viewer_reads_and_says_nothing(shop: Workspace, group: DuplicateGroup) -> None:
    viewer = signed_in(shop, Role.VIEWER)
    assert "Needs the role" in viewer.get(reverse("duplicate", args=[group.pk])).content.decode()
    said = {"act": "confirm", "reason": "x", "version": group.version}
    assert viewer.post(reverse("duplicate-say", args=[group.pk]), said).status_code == 403


@pytest.mark.parametrize("statement", ["UPDATE reconcile_duplicateact SET reason = 'x'",
                                       "DELETE FROM reconcile_duplicateact"])  # fmt: skip
def test_an_act_is_never_changed(shop: Workspace, group: DuplicateGroup, statement: str) -> None:
    say(signed_in(shop), group, "confirm")
    with (
        pytest.raises(ProgrammingError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


@pytest.mark.case("U11")
def test_the_file_holds_texts_as_texts_and_amounts_as_numbers(
    shop: Workspace, group: DuplicateGroup
) -> None:
    answer = signed_in(shop).get(reverse("duplicates-csv"))
    text = answer.getvalue().decode()
    assert text.startswith("\N{BOM}group,")
    (row,) = csv.DictReader(io.StringIO(text.removeprefix("\N{BOM}"), newline=""))
    assert (row["customer"], row["amount_at_stake"], row["currency"]) == ("'=cmd()", "200", "EUR")
    assert row["tool"] == "issue_gift_card"
    assert "\r\n" in text
    (entry,) = AuditEntry.objects.all()
    assert (entry.act, entry.after) == ("duplicates.exported", {"groups": 1})


# The tenant's figures

FIGURES = {
    "sdk_backoff_min": "0.5",
    "sdk_backoff_max": "8",
    "client_timeout": "30",
    "gateway_timeout": "60",
    "step_backoff_min": "0.5",
    "redelivery": "300 1800",
    "reason": "our queue",
    "version": "0",
}


def test_an_admin_changes_the_figures_and_everybody_reads_where_they_come_from(
    shop: Workspace,
) -> None:
    address = reverse("duplicate-constants")
    admin = signed_in(shop, Role.ADMIN)
    assert admin.post(address, FIGURES).status_code == 302
    kept = RetryConstants.objects.get()
    assert (kept.version, kept.figures["redelivery"]) == (1, [300.0, 1800.0])
    page = signed_in(shop, Role.VIEWER).get(address).content.decode()
    for words in ("Version 1", "our queue", "300 1800", "Needs the role Admin", "nginx"):
        assert words in page


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"client_timeout": "soon"}, "Write seconds as a number"),
        ({"client_timeout": ""}, "one number"),
        ({"client_timeout": "-1"}, "greater than 0"),
        ({"client_timeout": "nan"}, "finite"),
        ({"redelivery": "1 " * 30}, "at most 20"),
        ({"reason": ""}, "Give a reason"),
        ({"version": "7"}, "meanwhile"),
    ],
)
def test_figures_that_cannot_be_used_are_refused_beside_their_field(
    shop: Workspace, change: dict[str, str], says: str
) -> None:
    answer = signed_in(shop, Role.ADMIN).post(reverse("duplicate-constants"), FIGURES | change)
    assert answer.status_code == 422
    assert says in answer.content.decode()
    assert not RetryConstants.objects.exists()


def test_only_an_admin_changes_them(shop: Workspace) -> None:
    answer = signed_in(shop, Role.LEAD).post(reverse("duplicate-constants"), FIGURES)
    assert answer.status_code == 403


# The key on the wire


def test_a_tool_says_whether_its_key_arrived_and_a_missing_one_is_told_on_both_pages(
    shop: Workspace,
) -> None:
    tool, lead = desk.a_keyed_tool(shop), signed_in(shop, Role.LEAD)
    address = reverse("tool", args=[tool.pk])
    assert "Nobody has shown a request yet" in lead.get(address).content.decode()
    answer = desk.a_call(tool)
    facts: dict[str, Any] = {"request_id": "r", "key_seen": True}
    line = Line(source=ImportedEvidence.Source.PROVIDER, name="r", at=queries.clock(), facts=facts)
    keep(shop.pk, [line], claim_id=answer.claim_id)
    page = lead.get(address).content.decode()
    assert "Requests arrived without a key" in page
    assert reverse("call", args=[answer.claim_id]) in page
    assert "No key on the wire" in lead.get(reverse("duplicates")).content.decode()
