"""The pages of redaction and retention, and Reveal, as a browser without script sends them."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from effects.core.redaction import Mode, Where
from effects.core.vocabulary import Role, SightingWord
from effects.models import (
    AuditEntry,
    LookupTrial,
    RedactionRule,
    SecretSwitchedOff,
    Tool,
    Workspace,
)
from effects.redaction import changing, rules
from ledger import queries, redacting
from ledger.models import Claim, Due, IngestItem, Payload, SealedText
from ledger.retention import emptying
from ledger.retention.kinds import KINDS
from ledger.retention.models import RetentionFigure, RetentionPass, RetentionRule
from reconcile.connecting import trial
from reconcile.models import Card, WebhookDelivery
from reconcile.retention import EVERY_KIND, WEBHOOKS
from reconcile.webhooks import Facts, store
from tests.support import desk

pytestmark = pytest.mark.django_db

IBAN = "DE02120300000000202051"


@pytest.fixture(autouse=True)
def _rules_forgotten() -> Any:
    rules.forget_all()
    yield
    rules.forget_all()


@pytest.fixture
def halden() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(halden: Workspace) -> Tool:
    return desk.a_keyed_tool(halden)


def come_in(workspace: Workspace, role: Role) -> Client:
    client = Client()
    client.force_login(desk.a_person(workspace, role, f"{role}-person"))
    return client


@pytest.fixture
def hidden_claim(charge: Tool) -> Claim:
    """A lost call with a hidden bank account and a dropped name."""
    for path, mode in (("$.iban", Mode.HIDE), ("$.name", Mode.DROP)):
        changing.add(
            charge.workspace,
            path,
            where=str(Where.ARGUMENTS),
            mode=mode,
            tool=None,
            user=None,
            reason="Not for everybody.",
        )
    arguments = {"amount": 14900, "currency": "eur", "iban": IBAN, "name": "Ilse Mark"}
    return Claim.objects.get(pk=desk.a_lost_call(charge, arguments=arguments))


def reveal_address(client: Client, claim: Claim) -> str:
    page = client.get(f"/calls/{claim.pk}").content.decode()
    found = re.search(rf'href="(/calls/{claim.pk}/hidden/[0-9]+/[0-9]+)"', page)
    assert found is not None
    return found[1]


# Reveal


def test_a_hidden_value_is_shown_once_to_a_lead_who_says_why(
    halden: Workspace, hidden_claim: Claim
) -> None:
    lead = come_in(halden, Role.LEAD)
    address = reveal_address(lead, hidden_claim)
    without = lead.post(address, {"reason": "  "})
    shown = lead.post(address, {"reason": "The customer called."})

    assert IBAN not in lead.get(address).content.decode() + without.content.decode()
    assert (without.status_code, shown.status_code) == (422, 200)
    assert IBAN in shown.content.decode()
    assert "no-store" in shown["Cache-Control"]
    entry = AuditEntry.objects.get(act="value.revealed")
    assert entry.reason == "The customer called."
    kept = json.dumps([entry.target, entry.before, entry.after, entry.reason])
    assert "$.iban" in kept
    assert IBAN not in kept
    assert IBAN not in lead.get(f"/calls/{hidden_claim.pk}").content.decode()


def test_support_reads_where_something_is_hidden_and_cannot_look(
    halden: Workspace, hidden_claim: Claim
) -> None:
    support = come_in(halden, Role.SUPPORT)
    page = support.get(f"/calls/{hidden_claim.pk}").content.decode()
    (sealed,) = SealedText.objects.all()

    assert "$.iban" in page
    assert "Needs the role Payments lead or Admin." in page
    assert "dropped before it was stored" in page
    for number in (0, 1):
        answer = support.post(
            f"/calls/{hidden_claim.pk}/hidden/{sealed.pk}/{number}", {"reason": "x"}
        )
        assert answer.status_code == 403
    assert not AuditEntry.objects.filter(act="value.revealed").exists()


def test_a_dropped_value_and_one_of_another_call_are_revealed_to_nobody(
    halden: Workspace, charge: Tool, hidden_claim: Claim
) -> None:
    lead = come_in(halden, Role.LEAD)
    (sealed,) = SealedText.objects.all()
    other = desk.a_lost_call(charge)
    dropped = lead.post(f"/calls/{hidden_claim.pk}/hidden/{sealed.pk}/1", {"reason": "x"})

    assert dropped.status_code == 422
    assert "Ilse" not in dropped.content.decode()
    for address in (
        f"/calls/{other}/hidden/{sealed.pk}/0",
        f"/calls/{hidden_claim.pk}/hidden/{sealed.pk}/9",
    ):
        assert lead.post(address, {"reason": "x"}).status_code == 404


# What else follows from hiding


def test_a_hidden_customer_groups_nothing(charge: Tool) -> None:
    changing.add(
        charge.workspace,
        "$.customer",
        where="all",
        mode=Mode.HIDE,
        tool=charge,
        user=None,
        reason="x",
    )
    come_in(charge.workspace, Role.VIEWER).get(f"/calls/{desk.a_lost_call(charge)}")

    (card,) = Card.objects.all()
    assert card.customer == ""
    assert "...." in card.summary


def test_a_look_up_gets_the_exact_arguments_and_its_answer_shows_none(
    hidden_claim: Claim, monkeypatch: pytest.MonkeyPatch
) -> None:
    from reconcile.investigate import read_claim  # noqa: PLC0415 - imports every adapter

    read = read_claim(hidden_claim.workspace_id, hidden_claim.pk)
    assert json.loads(read.arguments_text or "")["iban"] == IBAN
    assert json.loads(read.arguments_text or "")["name"] == "...."

    order = LookupTrial.objects.create(
        workspace_id=hidden_claim.workspace_id,
        tool=hidden_claim.tool,
        user=desk.a_person(hidden_claim.tool.workspace, Role.ADMIN, "ada"),
        claim_id=hidden_claim.pk,
        entry='{"kind": "", "connection": 0, "lookup": {}}',
        asked_at=queries.clock(),
    )
    monkeypatch.setattr(trial, "_try", lambda *_: {"raw": f'{{"account":"{IBAN}"}}', "query": IBAN})
    trial.perform(order.pk)
    order.refresh_from_db()
    assert json.loads(order.answer) == {"raw": '{"account":"...."}', "query": "...."}


def test_a_webhook_is_hidden_in_and_still_known_by_what_came(charge: Tool) -> None:
    account = charge.connection
    assert account is not None
    body = b'{"id":"evt_1","client_secret":"pi_secret_1"}'
    facts = Facts(event_id="evt_1", type="x")
    first = store(account, body, facts, now=queries.clock())
    again = store(account, body, facts, now=queries.clock())

    (kept,) = WebhookDelivery.objects.all()
    assert bytes(kept.body) == b'{"id":"evt_1","client_secret":"...."}'
    assert (first, kept.times_received) == (again, 2)


# The page of the rules


def test_an_admin_tries_a_rule_makes_it_and_takes_it_away(halden: Workspace, charge: Tool) -> None:
    admin = come_in(halden, Role.ADMIN)
    desk.a_lost_call(charge, arguments={"iban": IBAN, "n": 1})
    tried = admin.get(f"/redaction/?tool={charge.pk}&path=$..iban").content.decode()
    assert "1 value in 1 of the newest 1 call" in tried
    assert IBAN in tried

    form = {"path": "$..iban", "where": "all", "mode": "hide", "tool": "", "reason": "Banks."}
    wrong = admin.post("/redaction/", form | {"path": "$.a[?(@.b)]", "reason": ""})
    assert wrong.status_code == 422
    assert "Filters, slices" in wrong.content.decode()
    assert "$.a[?(@.b)]" in wrong.content.decode()
    assert admin.post("/redaction/", form).status_code == 302
    (rule,) = RedactionRule.objects.all()
    assert admin.post("/redaction/", form | {"path": "$"}).status_code == 422

    admin.post(f"/redaction/{rule.pk}/retire/", {"reason": ""})
    assert RedactionRule.objects.filter(retired_at=None).exists()
    admin.post(f"/redaction/{rule.pk}/retire/", {"reason": "Too much."})
    assert not RedactionRule.objects.filter(retired_at=None).exists()
    page = admin.get("/redaction/").content.decode()
    assert "Too much." in page
    assert set(AuditEntry.objects.values_list("act", flat=True)) == {
        "redaction.added",
        "redaction.retired",
    }


def test_what_needs_no_rule_is_switched_off_only_with_a_reason(halden: Workspace) -> None:
    admin = come_in(halden, Role.ADMIN)
    admin.post("/redaction/secrets/", {"secret": "card", "on": "0", "reason": ""})
    assert not SecretSwitchedOff.objects.exists()
    admin.post("/redaction/secrets/", {"secret": "card", "on": "0", "reason": "Test cards."})
    assert "Test cards." in admin.get("/redaction/").content.decode()
    admin.post("/redaction/secrets/", {"secret": "card", "on": "1"})
    assert not SecretSwitchedOff.objects.exists()


# Retention


def settled_and_undecided(charge: Tool) -> tuple[Claim, Claim]:
    answer = desk.a_call(charge, arguments={"amount": 1, "password": "hunter22"})
    done = desk.complete(charge, answer)
    lost = desk.a_lost_call(charge)
    desk.see(charge, lost, SightingWord.ABSENT, raw=b'{"raw": 1}')
    return Claim.objects.get(pk=done), Claim.objects.get(pk=lost)


def a_year_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the emptying alone: the functions of the database stay those that are verified."""
    later = queries.clock() + timedelta(days=365)
    monkeypatch.setattr(emptying, "clock", lambda: later)


def keep_everything_for(workspace: Workspace, days: int) -> None:
    for kind in EVERY_KIND:
        RetentionRule.objects.create(
            workspace=workspace, kind=kind.name, days=days, changed_at=queries.clock(), reason="x"
        )


def test_bodies_of_decided_calls_are_emptied_and_the_record_stays_whole(
    halden: Workspace, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, lost = settled_and_undecided(charge)
    keep_everything_for(halden, 30)
    emptying.count(EVERY_KIND, halden.pk)
    assert RetentionFigure.objects.get(kind="arguments").due == 0, "it is too young"
    a_year_passes(monkeypatch)
    emptying.count(EVERY_KIND, halden.pk)
    assert RetentionFigure.objects.get(kind="arguments").due == 1
    emptying.run(EVERY_KIND, seconds_max=30)

    done.refresh_from_db()
    lost.refresh_from_db()
    assert (done.arguments, done.result) == (None, None)
    assert queries.arguments_text(done) is None
    assert lost.arguments is not None
    assert Payload.objects.get(claim=lost, name="raw").body is not None, "it is undecided"
    marks = Payload.objects.filter(claim=done).values_list("name", "emptied_reason")
    assert {name for name, _ in marks} == {"arguments", "result"}
    assert all(str(reason).startswith("Kept for 30 days") for _, reason in marks)
    assert SealedText.objects.get(claim_id=done.pk).body is None
    (one,) = redacting.hidden_values(halden.pk, done.pk)
    assert "emptied" in one.reason
    call_command("verify_ledger")
    call_command("verify_ledger", "--all")


def test_a_call_with_an_open_window_and_one_that_is_undecided_keep_their_bodies(
    halden: Workspace, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    done, lost = settled_and_undecided(charge)
    Due.objects.filter(claim=lost).delete()  # On no list any more, and undecided all the same.
    keep_everything_for(halden, 1)
    Claim.objects.filter(pk=done.pk).update(window_until=queries.clock() + timedelta(days=999))
    a_year_passes(monkeypatch)
    emptying.run(EVERY_KIND, seconds_max=30)

    done.refresh_from_db()
    lost.refresh_from_db()
    assert done.arguments is not None
    assert lost.arguments is not None


def test_items_and_webhooks_are_emptied_once_they_are_done_with(
    halden: Workspace, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert charge.connection is not None
    store(
        charge.connection, b'{"id":"evt_1"}', Facts(event_id="evt_1", type="x"), now=queries.clock()
    )
    store(
        charge.connection, b'{"id":"evt_2"}', Facts(event_id="evt_2", type="x"), now=queries.clock()
    )
    WebhookDelivery.objects.filter(event_id="evt_1").update(due_at=None, state="applied")
    keep_everything_for(halden, 30)
    from ledger.ingest import ingest  # noqa: PLC0415 - beside its only use
    from ledger.ingest_reading import EVENTS  # noqa: PLC0415 - as above

    ingest(
        halden.pk,
        None,
        EVENTS,
        [
            b"no json",
            b'{"id":"a","source":"s","type":"attempt.sent","data":{"claim":"c","attempt":"a"}}',
        ],
    )
    a_year_passes(monkeypatch)
    emptying.run(EVERY_KIND, seconds_max=30)

    assert {item.state: item.raw is None for item in IngestItem.objects.all()} == {
        "unreadable": True,
        "parked": False,
    }
    assert {one.event_id: bytes(one.body) == b"" for one in WebhookDelivery.objects.all()} == {
        "evt_1": True,
        "evt_2": False,
    }


def test_a_pass_ends_and_begins_again_a_day_later(
    halden: Workspace, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep_everything_for(halden, 30)
    settled_and_undecided(charge)
    kind = KINDS[0]
    first = emptying.one_batch(kind)
    assert first is not None
    assert (first.looked_at, first.ended) == (2, True)
    assert emptying.one_batch(kind) is None
    a_year_passes(monkeypatch)
    again = emptying.one_batch(kind)
    assert again is not None
    assert again.emptied == 1
    assert RetentionPass.objects.get(kind=kind.name).ended_at is not None


def test_an_admin_says_for_how_long_and_reads_what_the_next_run_empties(
    halden: Workspace, charge: Tool
) -> None:
    admin = come_in(halden, Role.ADMIN)
    settled_and_undecided(charge)
    form = {"kind": "arguments", "days": "30", "reason": "Our policy."}
    assert admin.post("/retention/", form | {"days": "0"}).status_code == 422
    assert admin.post("/retention/", form | {"kind": "events-and-decisions"}).status_code == 422
    assert admin.post("/retention/", form).status_code == 302
    emptying.count(EVERY_KIND, halden.pk)
    page = admin.get("/retention/").content.decode()

    assert "Our policy." in page
    assert "Decisions and events are kept for ever" in page
    assert RetentionRule.objects.get().days == 30
    assert admin.post("/retention/", form | {"days": ""}).status_code == 302
    assert not RetentionRule.objects.exists()
    assert list(AuditEntry.objects.order_by("pk").values_list("after", flat=True)) == [
        {"days": 30},
        {"days": None},
    ]
    assert WEBHOOKS.word in page
