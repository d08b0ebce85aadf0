"""Who gets in where: every address of the desk, for every role and for nobody.

The addresses are read from the resolver; one that is not in the table fails. So nobody adds a page
without saying who may open it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver, reverse

from effects.core.redaction import Found, Mode, Redacted
from effects.core.vocabulary import Role, TokenScope
from effects.models import Connection, LookupTrial, Membership, Tool, Workspace
from ledger import auth, queries, redacting
from ledger.ingest import ingest
from ledger.ingest_reading import EVENTS
from ledger.models import Claim, IngestItem, SealedText
from reconcile import tasks
from reconcile.adapters.base import Stranger
from reconcile.ghosts.noting import note_strangers
from reconcile.late import alerts
from reconcile.models import (
    AgentAddress,
    Alert,
    Bulk,
    Contradiction,
    DuplicateGroup,
    Ghost,
    Notification,
    Run,
    WebhookDelivery,
)
from reconcile.notify import acks, telling
from reconcile.outbox import composing
from reconcile.runs.making import NewRun, Scope, start
from reconcile.views import saved
from reconcile.views.filters import Filters
from reconcile.views.models import SavedView
from tests.reconcile.notify.conftest import a_channel, a_rule
from tests.support import desk

pytestmark = pytest.mark.django_db

ALL: Final = frozenset(Role)
STAFF: Final = ALL - {Role.VIEWER}
DECIDERS: Final = STAFF - {Role.ENGINEER}
ENGINEERS: Final = frozenset({Role.ENGINEER, Role.ADMIN})
AUDITORS: Final = STAFF - {Role.SUPPORT}
LEADS: Final = frozenset({Role.LEAD, Role.ADMIN})
ADMIN: Final = frozenset({Role.ADMIN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What a method answers to the roles that get in. All others get 403, nobody signs in first."""

    status: int
    roles: frozenset[Role]
    elsewhere: int | None = None
    """What a member of another workspace gets there; None where the address names no row."""


def sees(roles: frozenset[Role] = ALL) -> Answers:
    return Answers(status=200, roles=roles)


def sees_own(roles: frozenset[Role] = ALL) -> Answers:
    return Answers(status=200, roles=roles, elsewhere=404)


def does(roles: frozenset[Role], status: int = 302) -> Answers:
    return Answers(status=status, roles=roles)


def does_own(roles: frozenset[Role], status: int = 302) -> Answers:
    return Answers(status=status, roles=roles, elsewhere=404)


NO: Final = None  # the method is not served: 405 to everybody, signed in or not

# name: (GET, POST with an empty form)
TABLE: Final[dict[str, tuple[Answers | None, Answers | None]]] = {
    "queue": (sees(), NO),
    # Of an empty form no call is selected; whoever may not export is told so before.
    "queue-export": (sees(STAFF), does(STAFF)),
    "views": (sees(), NO),
    "view-new": (NO, does(ALL, 422)),
    "view-act": (NO, does_own(ALL)),  # an empty form names no act
    "keys": (sees(), does(ALL)),
    "call": (sees_own(), NO),
    "call-answer": (Answers(status=204, roles=ALL, elsewhere=404), NO),
    "call-body": (sees_own(), NO),
    "call-print": (sees_own(), NO),
    "call-export": (sees_own(STAFF), NO),
    # A form that the page did not make is refused to everybody alike, before it is read; what a
    # role may decide is judged with the call in hand.
    "call-decide": (NO, does_own(ALL, 409)),
    "call-second-answer": (NO, does_own(ALL, 409)),
    "call-second-take-back": (NO, does_own(STAFF)),
    "call-undo": (NO, does_own(STAFF)),
    "call-hold": (NO, does_own(STAFF)),
    "call-take": (NO, does_own(STAFF)),
    "call-keep": (NO, does_own(STAFF, 200)),  # while it is theirs: between the two
    "call-give-back": (NO, does_own(STAFF)),
    "call-assign": (NO, does_own(STAFF)),
    "call-unassign": (NO, does_own(STAFF)),
    "call-snooze": (NO, does_own(STAFF)),
    "call-wake": (NO, does_own(STAFF)),
    "call-ask": (NO, does_own(STAFF)),
    "call-note": (NO, does_own(STAFF)),
    "call-case-close": (NO, does_own(DECIDERS)),
    "bulks": (sees(), NO),
    # Which act it is, and whether the role may do it to many, is judged with the form in hand.
    "bulk-new": (NO, does(STAFF)),
    "bulk": (sees_own(), NO),
    "bulk-start": (NO, does_own(STAFF)),
    "bulk-stop": (NO, does_own(STAFF)),
    "bulk-undo": (NO, does_own(STAFF)),
    "health": (sees(), NO),
    "audit-log": (sees(AUDITORS), NO),
    "audit-log-csv": (sees(AUDITORS), NO),
    "audit-log-json": (sees(AUDITORS), NO),
    "chain-verify": (NO, does(ADMIN)),
    "redaction": (sees(), does(ADMIN, 422)),
    "redaction-retire": (NO, does(ADMIN)),
    "redaction-secret": (NO, does(ADMIN)),
    "retention": (sees(), does(ADMIN, 422)),
    "retention-count": (NO, does(ADMIN)),
    "call-reveal": (sees_own(LEADS), does_own(LEADS, 422)),
    # An empty form names no text.
    "customer-texts": (sees(), does(ADMIN, 404)),
    # Everybody may read the rules that bind them; only an admin makes or ends one.
    "second-person": (sees(), does(ADMIN, 422)),
    "second-person-retire": (NO, does(ADMIN)),
    "tools": (sees(), NO),
    "tool-contracts": (sees(), NO),
    # A contract comes with the product and belongs to no workspace.
    "connections": (sees(ADMIN), NO),
    "connection-new": (sees(ADMIN), does(ADMIN, status=422)),  # an empty form
    "connection": (sees_own(ADMIN), does_own(ADMIN, status=422)),
    "tool-lookup": (sees_own(ADMIN), does_own(ADMIN, status=200)),
    "tool-lookup-answer": (Answers(status=404, roles=ADMIN, elsewhere=404), NO),  # another's
    "duplicates": (sees(), NO),
    "duplicates-csv": (sees(STAFF), NO),
    "exposure": (sees(), NO),
    "exposure-csv": (sees(STAFF), NO),
    "trends": (sees(), NO),
    "trends-csv": (sees(STAFF), NO),
    "weekly-report": (sees(), NO),
    "weekly-report-csv": (sees(STAFF), NO),
    "duplicate": (sees_own(), NO),
    "duplicate-say": (NO, does_own(DECIDERS)),
    "duplicate-constants": (sees(), does(ADMIN, status=422)),
    "tool-contract": (Answers(status=200, roles=ALL, elsewhere=200), NO),
    "tool-new": (sees(), does(ADMIN, 422)),
    "tool": (sees_own(), does_own(ADMIN, 409)),
    "tool-preview": (NO, does_own(ALL, status=200)),
    "tool-simulation": (sees_own(), NO),
    "tools-double-fire": (sees(), NO),
    "tools-double-fire-csv": (sees(STAFF), NO),
    "tools-file": (sees(), NO),
    "tools-file-export": (sees(STAFF), NO),
    "tools-file-import": (NO, does(ADMIN, 422)),
    "tools-file-list": (NO, does(ADMIN, 422)),
    "call-ask-anew": (NO, does_own(STAFF)),
    "runs": (sees(), NO),
    "run": (sees_own(), NO),
    "run-progress": (sees_own(), NO),
    "run-start": (NO, does(STAFF, 422)),
    "run-stop": (NO, does_own(STAFF)),
    "run-again": (NO, does_own(STAFF)),
    "ghosts": (sees(), NO),
    "ghost-say": (NO, does_own(DECIDERS)),
    "told-otherwise": (sees(), NO),
    "told-otherwise-seen": (NO, does_own(STAFF)),
    "sandbox": (sees(), NO),
    "webhooks": (sees(ENGINEERS), NO),
    "webhook-again": (NO, does_own(ENGINEERS)),
    "webhook-body": (sees_own(ENGINEERS), NO),
    "webhook-address": (NO, does_own(ADMIN)),
    "notifications": (sees(STAFF), NO),
    "notification": (sees_own(STAFF), NO),
    "notification-acknowledge": (NO, does_own(STAFF, 422)),  # an empty form says no time
    "notification-ack-end": (NO, does_own(STAFF)),
    "notification-again": (NO, does_own(LEADS)),
    "notification-rule-new": (sees(LEADS), does(LEADS, 422)),
    "notification-rule": (sees_own(LEADS), does_own(LEADS, 422)),
    "notification-rule-pause": (NO, does_own(LEADS)),
    "notification-rule-retire": (NO, does_own(LEADS)),  # after the others: it is gone then
    "notification-channel-new": (sees(LEADS), does(LEADS, 422)),
    "notification-channel": (sees_own(LEADS), does_own(LEADS, 422)),
    "notification-channel-test": (NO, does_own(LEADS)),
    "notification-channel-retire": (NO, does_own(LEADS)),
    "outbox": (sees(ENGINEERS), NO),
    "outbox-add": (NO, does(ADMIN, status=422)),  # an empty form
    "outbox-trial": (NO, does_own(ADMIN)),
    "outbox-retire": (NO, does_own(ADMIN)),
    "outbox-again": (NO, does_own(ENGINEERS)),
    "outbox-body": (sees_own(ENGINEERS), NO),
    "tokens": (sees(ENGINEERS), does(ADMIN, 422)),
    "token-revoke": (NO, does_own(ADMIN)),
    "events": (sees(), NO),
    "event": (sees_own(), NO),
    "event-raw": (sees_own(), NO),
    "event-body": (sees_own(), NO),
    "event-again": (NO, does_own(ENGINEERS)),
    "turns": (sees(), NO),
    "capture": (sees(), does(ALL, 422)),
    # A conversation's name is an agent's own word: another workspace has a turn of that name, too,
    # and it is empty.
    "turn": (Answers(status=200, roles=ALL, elsewhere=200), NO),
    "people": (sees(), NO),
    "people-add": (sees(ADMIN), does(ADMIN, 422)),
    "person": (sees_own(), NO),
    "person-role": (NO, does_own(ADMIN)),
    "person-link": (NO, does_own(ADMIN, 200)),
    "person-deactivate": (NO, does_own(ADMIN)),  # after the others: the member is gone then
    "settings": (sees(), does(ALL)),
    "workspace-settings": (sees(), does(ADMIN, 422)),
    "password": (sees(), does(ALL, 422)),
    "sessions-end": (NO, does(ALL)),
    # An empty form names no workspace of theirs.
    "workspace": (NO, does(ALL, 404)),
}

OPEN: Final = frozenset({"home", "login", "logout", "join", "healthz", "readyz"})
"""These ask nobody who they are; each has tests of its own."""
NO_DESK: Final = frozenset({"webhook", "otlp-traces", "api-docs", "openapi-json"})
"""Doors of programs, and what describes the API."""


def named(patterns: list[URLPattern | URLResolver], before: str = "") -> Iterator[tuple[str, str]]:
    """Name and address of every pattern that is not of the API itself."""
    for one in patterns:
        address = before + str(one.pattern)
        if address.startswith(("api/v", "^api/v")):
            continue
        if isinstance(one, URLResolver):
            yield from named(one.url_patterns, address)
        else:
            yield one.name or "", address


@dataclass(frozen=True, slots=True, kw_only=True)
class Shop:
    """A workspace with one row of everything that an address can name."""

    workspace: Workspace
    tool: Tool
    ids: dict[str, Any]

    def address(self, name: str) -> str:
        pattern = dict(named(get_resolver().url_patterns))[name]
        wanted = [part.split(">")[0].split(":")[-1] for part in pattern.split("<")[1:]]
        return reverse(name, kwargs={word: self.ids[word] for word in wanted})


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> Shop:
    # Who may ask is judged here; the asking itself goes over a broker and has tests of its own.
    monkeypatch.setattr(tasks, "ask_now", lambda *_, **__: None)
    workspace = desk.a_workspace()
    tool = desk.a_keyed_tool(workspace)
    claim_id = desk.a_lost_call(tool)
    claim = queries.claim(workspace.pk, claim_id)
    other = desk.a_person(workspace, Role.SUPPORT, "other")
    token, _ = auth.issue(workspace, "agents", [TokenScope.CLAIM], other)
    ingest(workspace.pk, None, EVENTS, [b'{"id": 3'])
    return Shop(
        workspace=workspace,
        tool=tool,
        ids={
            "claim_id": claim_id,
            "conversation": claim.conversation,
            "index": claim.turn_index,
            "bulk_id": a_bulk(workspace, other).pk,
            "run_id": a_run(workspace, claim_id).pk,
            "ghost_id": a_ghost().pk,
            "alert_id": an_alert(workspace, claim_id).pk,
            "seq": 0,
            "name": "arguments",
            "contract_name": "generic",
            "proposal_id": 1,
            "case_id": 1,
            "tool_id": tool.pk,
            "token_id": token.pk,
            "item_id": IngestItem.objects.get().pk,
            "connection_id": Connection.objects.get().pk,
            "view_id": a_shared_view(workspace, other).pk,
            "delivery_id": a_delivery().pk,
            "address_id": (address := an_agents_address(workspace)).pk,
            "group_id": a_group(workspace, tool, claim_id).pk,
            "trial_id": a_trial(tool, other, claim_id).pk,
            "sealed_id": a_hidden_value(claim).pk,
            "number": 0,
            "redaction_id": 1,
            "sent_id": composing.trial_message(address).pk,
            "membership_id": Membership.objects.get(user=other).pk,
            **a_notification(workspace, other),
        },
    )


def a_bulk(workspace: Workspace, user: User) -> Bulk:
    now = queries.clock()
    return Bulk.objects.create(
        workspace=workspace,
        action="snooze",
        form=b"form",
        session=b"session",
        made_by=user,
        made_at=now,
        started_at=now,
    )


def a_run(workspace: Workspace, claim_id: UUID) -> Run:
    return start(NewRun(workspace_id=workspace.pk, scope=Scope(claim_ids=(claim_id,))))


def a_shared_view(workspace: Workspace, owner: User) -> SavedView:
    view = saved.keep(workspace, Filters(), user_id=owner.pk, name="Shared")
    saved.share(view, user_id=owner.pk, role=Role.SUPPORT)
    return view


def a_notification(workspace: Workspace, user: User) -> dict[str, int]:
    """One that was told and acknowledged, with the numbers of everything that belongs to it."""
    channel = a_channel(workspace, "email", user, address="team@example.com")
    rule = a_rule(workspace, user, channel)
    telling.tell(workspace.pk)
    told = Notification.objects.get()
    acks.acknowledge(told, list(told.items.all()), user_id=user.pk, wish=timedelta(hours=1))
    return {
        "channel_id": channel.pk,
        "rule_id": rule.pk,
        "notification_id": told.pk,
        "ack_id": told.acks.get().pk,
        "message_id": told.deliveries.get().pk,
    }


def a_ghost() -> Ghost:
    strangers = [Stranger(id="pi_nobodys", noun="PaymentIntent")]
    note_strangers(Connection.objects.get(), strangers, queries.clock())
    return Ghost.objects.get()


def an_alert(workspace: Workspace, claim_id: UUID) -> Alert:
    told = {"told": "not_executed", "became": "completed", "at": queries.clock()}
    Contradiction.objects.create(workspace=workspace, claim_id=claim_id, version=2, **told)
    alerts.raise_due(1)
    return Alert.objects.get()


def a_group(workspace: Workspace, tool: Tool, claim_id: UUID) -> DuplicateGroup:
    now = queries.clock()
    return DuplicateGroup.objects.create(
        workspace=workspace,
        rule=DuplicateGroup.Rule.SAME_CALL,
        identity=b"identity",
        tool=tool.name,
        claim_ids=[claim_id],
        found_at=now,
        last_at=now,
        diagnosed_at=now,
    )


def a_hidden_value(claim: Claim) -> SealedText:
    found = Found("$.amount", 0, 1, "1", "1", Mode.HIDE)
    text = Redacted(claim.arguments or "", (found,))
    name = SealedText.Name.ARGUMENTS
    redacting.seal(claim.workspace_id, name, text, claim_id=claim.pk)
    return SealedText.objects.get()


def a_trial(tool: Tool, user: User, claim_id: UUID) -> LookupTrial:
    return LookupTrial.objects.create(
        workspace=tool.workspace,
        tool=tool,
        user=user,
        claim_id=claim_id,
        entry="{}",
        asked_at=queries.clock(),
    )


def an_agents_address(workspace: Workspace) -> AgentAddress:
    return AgentAddress.objects.create(
        workspace=workspace,
        name="agent",
        url="https://agents.example.com",
        secret_name="A_SECRET",
        made_at=queries.clock(),
    )


def a_delivery() -> WebhookDelivery:
    now = queries.clock()
    return WebhookDelivery.objects.create(
        connection=Connection.objects.get(),
        event_id="evt_1",
        body=b"{}",
        received_at=now,
        last_received_at=now,
    )


def browser_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def status(client: Client, method: str, address: str) -> int:
    answer = client.get(address) if method == "GET" else client.post(address)
    if answer.status_code == 302 and answer["Location"].startswith("/login/"):
        return 401  # our word for "sign in first"
    return answer.status_code


def expected(answers: Answers | None, role: Role | None) -> int:
    if answers is None:
        return 405
    if role is None:
        return 401
    return answers.status if role in answers.roles else 403


def test_every_address_is_in_the_table() -> None:
    found = {name for name, _ in named(get_resolver().url_patterns)}
    assert found - OPEN - NO_DESK == set(TABLE)


@pytest.mark.parametrize("role", [None, *Role])
def test_every_address_lets_in_whom_the_table_says(shop: Shop, role: Role | None) -> None:
    client = browser_of(desk.a_person(shop.workspace, role)) if role else Client()
    wrong = {}
    for name, both in TABLE.items():
        for method, answers in zip(("GET", "POST"), both, strict=True):
            got, wanted = status(client, method, shop.address(name)), expected(answers, role)
            if got != wanted:
                wrong[f"{method} {name}"] = f"{got}, not {wanted}"
    assert wrong == {}


def test_what_belongs_to_another_workspace_does_not_exist(shop: Shop) -> None:
    stranger = desk.a_person(desk.a_workspace("neighbour"), Role.ADMIN, "stranger")
    client = browser_of(stranger)
    wrong = {}
    for name, both in TABLE.items():
        for method, answers in zip(("GET", "POST"), both, strict=True):
            if answers is not None and answers.elsewhere is not None:
                got = status(client, method, shop.address(name))
                if got != answers.elsewhere:
                    wrong[f"{method} {name}"] = f"{got}, not {answers.elsewhere}"
    assert wrong == {}


def test_a_turn_of_another_workspace_shows_nothing_of_it(shop: Shop) -> None:
    stranger = desk.a_person(desk.a_workspace("neighbour"), Role.ADMIN, "stranger")
    page = browser_of(stranger).get(shop.address("turn")).content.decode()
    assert "proves nothing" in page
    assert str(shop.ids["claim_id"]) not in page
