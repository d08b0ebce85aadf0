"""The audit log: every act once, from whichever history it stands in, and nothing twice."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import DatabaseError, transaction
from django.test import Client

from effects import audit
from effects.core.vocabulary import Role, TokenScope
from effects.models import AuditEntry, Tool, Workspace
from ledger import queries
from reconcile.audit import chain, log
from reconcile.audit.log import Asked
from reconcile.audit.log_sources import SOURCES, Family
from reconcile.models import ChainCheck
from reconcile.models_people import SecondPersonRule
from tests.support import desk

pytestmark = pytest.mark.django_db

MOMENT = datetime(2027, 1, 15, 23, 30, tzinfo=UTC)


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return desk.a_keyed_tool(shop)


@pytest.fixture
def ada(shop: Workspace) -> User:
    return desk.a_person(shop, Role.ADMIN, "ada")


def desk_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def acts(workspace: Workspace, **asked: Any) -> list[str]:
    return [entry.act for entry in log.every_entry(workspace.pk, Asked(**asked))]


def decide_to_close(user: User, tool: Tool) -> str:
    claim_id = desk.a_lost_call(tool)
    client = desk_of(user)
    token = client.get(f"/calls/{claim_id}?dialog=close").context["review"]["token"]
    form = {"token": token, "action": "close", "reason": "Enough of this."}
    assert client.post(f"/calls/{claim_id}/decide", form).status_code == 302
    return str(claim_id)


def test_what_people_did_in_different_places_stands_in_one_list_newest_first(
    shop: Workspace, charge: Tool, ada: User
) -> None:
    client = desk_of(ada)
    closed = decide_to_close(ada, charge)
    client.post(f"/calls/{desk.a_lost_call(charge)}/take")
    client.post("/tokens/", {"name": "Bot", "scopes": [str(TokenScope.CLAIM)]})
    client.post("/chain/verify/")
    page = client.get("/audit-log/")

    entries = [row["entry"] for row in page.context["rows"]]
    assert [entry.act for entry in entries] == [
        *("chain.verified", "token.issued", "call.taken", "decision.close")
    ]
    assert {entry.who for entry in entries} == {"ada"}
    assert (entries[-1].target, entries[-1].reason) == (closed, "Enough of this.")
    assert page.context["rows"][-1]["address"] == f"/calls/{closed}"
    assert b"stopped it, no retry" in page.content


def test_the_plain_text_of_a_token_is_in_no_entry(shop: Workspace, ada: User) -> None:
    issued = desk_of(ada).post("/tokens/", {"name": "Bot", "scopes": ["claim"]})
    plain = issued.context["plain"]
    kept = AuditEntry.objects.get(workspace=shop)
    assert plain not in json.dumps([kept.target, kept.before, kept.after, kept.reason])


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.word)
def test_every_history_can_be_asked_with_every_filter_at_once(
    source: Any, shop: Workspace, ada: User
) -> None:
    everything = Asked(
        family=source.family,
        who=str(ada.pk),
        text="100%_\\",
        since=MOMENT,
        until=MOMENT + timedelta(days=1),
        after=log.Place(at=MOMENT, source=source.word, number=7),
    )
    assert log.log_page(shop.pk, everything).entries == ()


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_acts_of_one_instant_are_each_seen_once_whatever_the_page_holds(
    shop: Workspace, ada: User, rows: int
) -> None:
    for _ in range(3):
        ChainCheck.objects.create(workspace=shop, at=MOMENT, decisions=0, asked_by=ada)
        AuditEntry.objects.create(workspace=shop, at=MOMENT, user=ada, act="a.done", target="x")
        SecondPersonRule.objects.create(
            workspace=shop,
            approver_role=Role.LEAD,
            made_at=MOMENT,
            made_by=ada,
            reason="Because.",
            retired_at=MOMENT,
            retired_by=ada,
        )
    seen, after = [], None
    while True:
        page = log.log_page(shop.pk, Asked(after=after), rows=rows)
        seen += [(one.place.source, one.place.number) for one in page.entries]
        if (after := page.next_place) is None:
            break
        assert log.place_of(log.cursor_of(after)) == after
    assert len(seen) == len(set(seen)) == 12


def test_days_are_those_of_the_zone_that_the_person_reads(shop: Workspace, ada: User) -> None:
    AuditEntry.objects.create(workspace=shop, at=MOMENT, user=ada, act="a.done", target="x")
    client = desk_of(ada)

    def found(day: str) -> int:
        return len(client.get("/audit-log/", {"from": day, "to": day}).context["rows"])

    assert (found("2027-01-15"), found("2027-01-16")) == (1, 0)
    client.post("/settings/", {"theme": "system", "times": "local", "zone": "Europe/Berlin"})
    assert (found("2027-01-15"), found("2027-01-16")) == (0, 1)
    assert found("not a day") == 1  # what cannot be read filters nothing


def test_who_did_it_may_be_a_person_a_rule_or_the_machine(shop: Workspace, ada: User) -> None:
    ben = desk.a_person(shop, Role.LEAD, "ben")
    for user in (ada, ben, None):
        user_id = user.pk if user else None
        audit.keep(shop.pk, "a.done", user_id=user_id, target=user.username if user else "shell")

    def by(who: str) -> list[str]:
        return [entry.target for entry in log.every_entry(shop.pk, Asked(who=who))]

    assert (by(str(ben.pk)), by(log.MACHINE), by(log.RULES)) == (["ben"], ["shell"], [])
    assert {pk for pk, _ in log.actors(shop.pk)} >= {str(ada.pk), str(ben.pk), "rules", "machine"}


def test_another_workspace_s_acts_are_not_there(shop: Workspace, charge: Tool, ada: User) -> None:
    other = desk.a_workspace("other")
    decide_to_close(ada, charge)
    chain.verify(shop.pk, asked_by=ada.pk)
    assert acts(other) == []
    assert acts(shop, family=Family.DECISIONS) == ["decision.close"]


def test_an_export_is_itself_an_act_and_holds_what_was_asked_for(
    shop: Workspace, ada: User
) -> None:
    audit.keep(shop.pk, "a.done", user_id=ada.pk, target="=1+1", after={"n": 1.5}, reason="-2")
    client = desk_of(ada)
    sent = b"".join(client.get("/audit-log/export.csv?text=done"))
    rows = list(csv.DictReader(io.StringIO(sent.decode("utf-8-sig"))))
    assert [(row["To what"], row["Reason"], row["Change"]) for row in rows] == [
        ("'=1+1", "'-2", "n: 1.5")
    ]
    lines = b"".join(client.get("/audit-log/export.jsonl?text=done"))
    assert json.loads(lines)["target"] == "=1+1"
    assert acts(shop)[:2] == ["audit_log.exported", "audit_log.exported"]


def test_the_database_refuses_to_change_or_remove_an_entry(shop: Workspace) -> None:
    kept = audit.keep(shop.pk, "a.done", user_id=None, target="x")
    for change in (
        lambda: AuditEntry.objects.filter(pk=kept.pk).update(target="y"),
        lambda: AuditEntry.objects.filter(pk=kept.pk).delete(),
    ):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            change()
    assert queries.clock() >= kept.at
