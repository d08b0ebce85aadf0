"""The registry's pages: who may change a tool, what a change shows first, and what is kept."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils.html import escape

from effects.contracts import CONTRACTS, PERMANENT_SECONDS, lines_of
from effects.core.vocabulary import Role
from effects.models import Connection, Membership, Tool, ToolChange, Workspace
from effects.tools import ToolMoved, save_tool
from ledger import append
from reconcile.pages.tools import UNPROCESSABLE
from tests.support.desk import a_call, a_lost_call, complete

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 11, 29, 21, 40, 3, tzinfo=UTC)


@pytest.fixture
def shop() -> Workspace:
    return Workspace.objects.create(name="Halden", slug="halden", mode="test", created_at=NOW)


@pytest.fixture
def stripe(shop: Workspace) -> Connection:
    return Connection.objects.create(
        workspace=shop, name="Stripe, test", kind="stripe", base_url="https://api.stripe.com"
    )


def member(shop: Workspace, role: Role) -> Client:
    user = User.objects.create_user(f"{role}@example.org", first_name=role.title())
    Membership.objects.create(workspace=shop, user=user, role=role)
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def admin(shop: Workspace) -> Client:
    return member(shop, Role.ADMIN)


@pytest.fixture
def refund(shop: Workspace) -> Tool:
    return Tool.objects.create(
        workspace=shop, name="refund_payment", effect_class="unkeyed_write", summary="Refund"
    )


def typed(**more: str) -> dict[str, str]:
    """What a person types into the form to register a keyed write, unless said otherwise."""
    return {
        "name": "charge_card",
        "effect_class": "keyed_write",
        "owner": "Payments",
        "contract": "stripe.v1",
        "window_seconds": "24 h",
        "margin_seconds": "2 m 20 s",
        "lease_seconds": "90 s",
        "attempt_seconds_max": "10 m",
        "attempts_max": "3",
        "release_lapse_minutes": "30 m",
        "horizon_days": "30",
        "lookups_max": "50",
        "summary": "Charge {amount} to {customer}",
        "amount_field": "amount",
        "amount_is_minor": "on",
        "currency_field": "currency",
        "customer_field": "customer",
        "reason": "New checkout agent",
        **more,
    }


def undecided(tool: Tool, *, state: str = "unknown", effect_class: str = "unkeyed_write") -> None:
    """One claim as the ledger leaves it, put there directly: what is tested is only its count."""
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO ledger_claim (workspace_id, tool_id, effect_class, state, budget,
              granted_at, lease_until, key, position, ordinal, scope, turn, arguments_digest)
            VALUES (%s, %s, %s, %s, 3, now(), now(), 'k', 0, 0, 'x', gen_random_uuid()::text::bytea,
              'x')
            RETURNING id
            """,
            [tool.workspace_id, tool.pk, effect_class, state],
        )
        (claim_id,) = cursor.fetchone()
        cursor.execute(
            "INSERT INTO ledger_due (claim_id, why, workspace_id, at, since)"
            " VALUES (%s, 'lookup', %s, now(), now())",
            [claim_id, tool.workspace_id],
        )


def words(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def test_registering_keeps_what_was_typed_and_who_typed_it(
    admin: Client, stripe: Connection
) -> None:
    answer = admin.post(
        "/tools/new/",
        typed(
            lookup_kind="stripe.payment_intents",
            connection=str(stripe.pk),
            business="order_id, customer",
            volatile="request_time",
            defaults='currency = "eur"',
        ),
    )
    assert answer.status_code == 302, words(answer)
    tool = Tool.objects.get(name="charge_card")
    assert tool.window_seconds == 86_400
    assert tool.margin_seconds == 140
    assert tool.release_lapse_minutes == 30
    assert tool.registered
    assert tool.argument_rules == {
        "business": ["order_id", "customer"],
        "volatile": ["request_time"],
        "defaults": {"currency": '"eur"'},
    }
    change = ToolChange.objects.get(tool=tool)
    assert (change.version, change.before, change.reason) == (1, None, "New checkout agent")
    assert change.changed_by is not None
    assert change.after["connection"] == "Stripe, test"


@pytest.mark.parametrize("role", [Role.VIEWER, Role.SUPPORT, Role.LEAD, Role.ENGINEER])
def test_others_read_everything_and_are_told_who_may_change_it(
    shop: Workspace, refund: Tool, role: Role
) -> None:
    client = member(shop, role)
    assert "Needs the role Admin." in words(client.get("/tools/"))
    page = client.get(f"/tools/{refund.pk}/")
    assert "You can read this, but not change it. Needs the role Admin." in words(page)
    assert '<fieldset class="rest first" disabled>' in page.text
    for address in ("/tools/new/", f"/tools/{refund.pk}/"):
        refused = client.post(address, typed(version="1"))
        assert refused.status_code == 403
        assert "Needs the role Admin." in words(refused)
    assert Tool.objects.get().effect_class == "unkeyed_write"


@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ({"name": ""}, "Name: This field is required."),
        ({"reason": ""}, "Reason: This field is required."),
        ({"window_seconds": "24"}, "Write a number with its unit"),
        ({"margin_seconds": "25 h"}, "The margin must be shorter than the window"),
        ({"lease_seconds": "20 m"}, "The lease cannot be longer than the longest attempt."),
        ({"attempts_max": "0"}, "greater than or equal to 1"),
        ({"effect_class": "harmless"}, "harmless is not one of the available choices"),
        ({"summary": "Charge {amount"}, "A brace is open or closed alone."),
        ({"amount_field": "a b"}, "This is not a field."),
        (
            {"sends_offline": "on", "window_seconds": "", "contract": "generic"},
            "Only a keyed write with a published",
        ),
        (
            {"contract": "zendesk", "window_seconds": "24 h"},
            "Zendesk honours a key for 2 h and no longer",
        ),
        ({"contract": "twilio", "window_seconds": ""}, "Twilio knows no key"),
        ({"contract": "halden"}, "halden is not one of the available choices"),
        ({"sends_offline": "on", "effect_class": "unkeyed_write"}, "Only a keyed write with a"),
        ({"currency_field": "=EURO"}, "A fixed currency has three letters"),
        ({"lookup_kind": "stripe.refunds"}, "A look-up needs a connection"),
        ({"lookup": "{"}, "Enter a valid JSON."),
        ({"lookup": "[1]"}, "one JSON object"),
        ({"defaults": "currency eur"}, "Line 1 is not of the form"),
        ({"defaults": "currency = eur"}, "Line 1: The text is not JSON"),
        ({"business": "order", "volatile": "order"}, "both volatile and part of the business"),
    ],
)
def test_what_cannot_be_relied_on_is_refused_with_the_form(
    admin: Client, fault: dict[str, str], sentence: str
) -> None:
    answer = admin.post("/tools/new/", typed(**fault))
    assert answer.status_code == UNPROCESSABLE
    assert sentence in words(answer).replace("&#x27;", "'")
    assert 'role="alert"' in answer.text
    assert not Tool.objects.exists()


def test_each_fault_is_a_link_to_its_field(admin: Client) -> None:
    page = admin.post("/tools/new/", typed(window_seconds="24", name="")).text
    for link in re.findall(r'<li><a href="#([^"]+)"', page):
        assert f'id="{link}"' in page
    assert "2 things have to be put right" in page


def test_a_look_up_must_fit_its_connection(admin: Client, stripe: Connection) -> None:
    answer = admin.post("/tools/new/", typed(lookup_kind="http", connection=str(stripe.pk)))
    assert answer.status_code == UNPROCESSABLE
    assert "needs a connection of the kind http" in words(answer)


def test_another_workspaces_connection_is_no_choice(admin: Client, shop: Workspace) -> None:
    other = Workspace.objects.create(name="Other", slug="other", created_at=NOW)
    theirs = Connection.objects.create(
        workspace=other, name="Theirs", kind="stripe", base_url="https://api.stripe.com"
    )
    data = typed(lookup_kind="stripe.refunds", connection=str(theirs.pk))
    assert admin.post("/tools/new/", data).status_code == UNPROCESSABLE
    assert "Theirs" not in admin.get("/tools/new/").text


def test_another_workspaces_tool_is_not_found(admin: Client) -> None:
    other = Workspace.objects.create(name="Other", slug="other", created_at=NOW)
    theirs = Tool.objects.create(workspace=other, name="their_tool")
    assert admin.get(f"/tools/{theirs.pk}/").status_code == 404
    assert admin.post(f"/tools/{theirs.pk}/", typed(version="1")).status_code == 404
    assert "their_tool" not in admin.get("/tools/").text


def test_a_name_that_is_taken_leads_to_the_tool_that_has_it(admin: Client, refund: Tool) -> None:
    answer = admin.post("/tools/new/", typed(name="refund_payment"))
    assert answer.status_code == UNPROCESSABLE
    assert "A tool of this name is there already." in words(answer)


def test_a_name_never_changes(admin: Client, refund: Tool) -> None:
    admin.post(f"/tools/{refund.pk}/", typed(name="other", version="1", confirmed="1"))
    refund.refresh_from_db()
    assert (refund.name, refund.version) == ("refund_payment", 2)


def test_a_change_that_touches_undecided_calls_is_shown_before_it_is_saved(
    admin: Client, refund: Tool
) -> None:
    for _ in range(2):
        a_lost_call(refund)
    complete(refund, a_call(refund))
    page = admin.post(f"/tools/{refund.pk}/", typed(version="1"))
    assert "Save version 2 of refund_payment?" in words(page)
    assert "2 undecided calls of this tool" in words(page)
    assert "Class keyed write was unkeyed write" in words(page)
    refund.refresh_from_db()
    assert (refund.version, refund.effect_class) == (1, "unkeyed_write")

    sent = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', page.text))
    answer = admin.post(f"/tools/{refund.pk}/", {**sent, "confirmed": "1"})
    assert answer.status_code == 302, words(answer)
    refund.refresh_from_db()
    assert (refund.version, refund.effect_class) == (2, "keyed_write")
    change = ToolChange.objects.get(tool=refund, version=2)
    assert change.before is not None
    assert change.before["effect_class"] == "unkeyed_write"


def test_saving_a_form_as_it_was_shown_changes_nothing(
    admin: Client, shop: Workspace, stripe: Connection
) -> None:
    status = Connection.objects.create(
        workspace=shop, name="Parcels", kind="http", base_url="https://parcels.example"
    )
    tool = Tool.objects.create(
        workspace=shop,
        name="book_shipment",
        effect_class="keyed_write",
        window_seconds=93_600,
        server_working_seconds_max=61,
        connection=status,
        lookup_kind="http",
        lookup={
            "url": "/bookings?ref={reference}",
            "reference": "arguments.order_é",
            "map": {"booked": "found"},
        },
        argument_rules={"business": ["order"], "defaults": {"a": '"x=y"', "b": "1.50"}},
        summary="Book {parcels} parcels",
        currency_field="=EUR",
        amount_is_minor=False,
        hold_in_turn=True,
    )
    page = admin.get(f"/tools/{tool.pk}/")
    form = page.context["form"]
    shown = {name: form[name].value() for name in form.fields}
    data = {name: "" if value is None else value for name, value in shown.items()}
    data = {name: value for name, value in data.items() if value is not False}
    for name in ("window_seconds", "margin_seconds", "lease_seconds", "lookup", "business"):
        assert isinstance(data[name], str)
    admin.post(f"/tools/{tool.pk}/", {**data, "version": "1", "reason": "Looked at it"})
    change = ToolChange.objects.get(tool=tool)
    assert change.version == 2
    assert change.before is not None
    assert change.after == {**change.before, "registered": True}


def test_going_back_from_the_review_keeps_what_was_typed(admin: Client, refund: Tool) -> None:
    undecided(refund)
    page = admin.post(f"/tools/{refund.pk}/", typed(version="1", owner="Night shift", back="1"))
    assert page.status_code == 200
    assert 'value="Night shift"' in page.text
    assert Tool.objects.get().owner == ""


@pytest.mark.parametrize(
    ("change", "due"),
    [
        pytest.param({"lookup_kind": "stripe.payment_intents"}, 1, id="the look-up is set up"),
        pytest.param({"owner": "Somebody else"}, 0, id="nothing about the look-up"),
    ],
)
def test_claims_are_asked_about_again_when_their_tools_look_up_changes(
    admin: Client, stripe: Connection, change: dict[str, str], due: int
) -> None:
    base = typed(connection=str(stripe.pk), lookup="")
    admin.post("/tools/new/", base)
    tool = Tool.objects.get(name="charge_card")
    undecided(tool, effect_class="keyed_write")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_due SET at = NULL WHERE why = 'lookup'")
    posted = base | change | {"version": str(tool.version), "confirmed": "yes"}
    assert admin.post(f"/tools/{tool.pk}/", posted).status_code == 302
    assert len(append.take_due_lookups(10, lease_seconds=60)) == due


def test_a_weaker_class_is_always_looked_at_again(admin: Client, refund: Tool) -> None:
    page = admin.post(f"/tools/{refund.pk}/", typed(version="1", effect_class="read"))
    assert "The new class guards less than the old one." in words(page)
    assert Tool.objects.get().version == 1


def test_a_harmless_change_is_saved_at_once(admin: Client, refund: Tool) -> None:
    undecided(refund)
    data = typed(version="1", effect_class="unkeyed_write", owner="Support")
    answer = admin.post(f"/tools/{refund.pk}/", data, follow=True)
    assert "Version 2 of refund_payment is saved." in words(answer)
    assert "Owner: Support, was none" in words(answer)


def test_two_admins_at_once_the_second_sees_what_the_first_did(admin: Client, refund: Tool) -> None:
    harmless = typed(version="1", effect_class="unkeyed_write", summary="Refund")
    assert admin.post(f"/tools/{refund.pk}/", {**harmless, "owner": "First"}).status_code == 302
    late = admin.post(f"/tools/{refund.pk}/", {**harmless, "owner": "Second"})
    assert late.status_code == 409
    assert "changed after this page was opened" in words(late)
    assert "Owner First, was none" in words(late)
    assert Tool.objects.get().owner == "First"


def test_two_saves_that_read_the_same_version_never_both_succeed(
    shop: Workspace, refund: Tool
) -> None:
    user = User.objects.create_user("tomas@example.org")
    twin = Tool.objects.get(pk=refund.pk)
    save_tool(refund, read_version=1, user=user, reason="first", now=NOW)
    with pytest.raises(ToolMoved):
        save_tool(twin, read_version=1, user=user, reason="second", now=NOW)
    assert [change.reason for change in ToolChange.objects.all()] == ["first"]


def test_a_tool_that_appeared_by_itself_is_registered_by_saving_it(
    admin: Client, shop: Workspace
) -> None:
    seen = Tool.objects.create(workspace=shop, name="notify_store", registered=False)
    page = words(admin.get("/tools/"))
    assert "Events arrive for 1 tool that nobody registered : notify_store" in page
    assert "seen in a claim, registered by nobody" in page
    admin.post(f"/tools/{seen.pk}/", typed(version="1", effect_class="unkeyed_write"))
    seen.refresh_from_db()
    assert seen.registered


def test_a_keyed_write_with_a_window_may_opt_in_to_being_sent_without_asking(
    admin: Client,
) -> None:
    assert admin.post("/tools/new/", typed()).status_code == 302
    assert not Tool.objects.get().sends_offline, "nobody opts in by saying nothing"
    tool = Tool.objects.get()
    answer = admin.post(
        f"/tools/{tool.pk}/", typed(sends_offline="on", version="1", reason="Outages cost us")
    )
    assert answer.status_code == 302, words(answer)
    tool.refresh_from_db()
    assert tool.sends_offline
    assert "Sent while the ledger is away" in admin.get(f"/tools/{tool.pk}/").text


def test_an_unkeyed_write_has_no_window(admin: Client) -> None:
    admin.post("/tools/new/", typed(effect_class="unkeyed_write", window_seconds="24 h"))
    assert Tool.objects.get().window_seconds is None


@pytest.mark.parametrize(
    ("contract", "seconds", "shown"),
    [
        ("stripe.v1", 86_400, "24 h from first receipt"),
        ("zendesk", 7200, "2 h from first receipt"),
        ("increase", PERMANENT_SECONDS, "for good from first receipt"),
        ("gocardless", None, "not published counts as closed: never repeated with its key"),
        ("modern_treasury", None, "not published counts as closed: never repeated with its key"),
    ],
)
def test_an_empty_window_is_the_contracts(
    admin: Client, contract: str, seconds: int | None, shown: str
) -> None:
    answer = admin.post("/tools/new/", typed(contract=contract, window_seconds=""))
    assert answer.status_code == 302, words(answer)
    assert Tool.objects.get().window_seconds == seconds
    assert shown in words(admin.get("/tools/"))


def test_a_tool_is_shown_beside_its_contract_with_the_source(admin: Client) -> None:
    admin.post("/tools/new/", typed(window_seconds="30 d", key_name="X-Once"))
    page = admin.get(f"/tools/{Tool.objects.get().pk}/")
    shown = words(page)
    assert "at least 24 h from first receipt 30 d your own figure" in shown
    assert "Idempotency-Key X-Once your own figure" in shown
    assert "key sent as X-Once, Stripe reads Idempotency-Key" in shown
    assert 'href="https://docs.stripe.com/api/idempotent_requests"' in page.text
    admin.post(
        f"/tools/{Tool.objects.get().pk}/",
        typed(window_seconds="2 h", version="1", reason="Orders are short-lived"),
    )
    assert "24 h from first receipt 2 h narrower than the contract" in words(
        admin.get(f"/tools/{Tool.objects.get().pk}/")
    )


def test_a_tool_whose_contract_is_not_known_any_more_says_so(admin: Client, refund: Tool) -> None:
    Tool.objects.filter(pk=refund.pk).update(contract="halden.v0")
    assert "the contract halden.v0 is not known here" in words(admin.get("/tools/"))
    assert admin.get(f"/tools/{refund.pk}/").status_code == 200


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_contract_has_a_page_with_its_sources(admin: Client, name: str) -> None:
    page = admin.get(f"/contracts/{name}/")
    assert page.status_code == 200
    shown = words(page)
    for line in lines_of(CONTRACTS[name]):
        assert escape(line.source.title) in page.text
        assert line.label in shown


def test_the_contracts_are_listed_with_the_tools_that_rely_on_them(admin: Client) -> None:
    admin.post("/tools/new/", typed())
    shown = words(admin.get("/contracts/"))
    assert "Stripe API v1 stripe.v1 Idempotency-Key at least 24 h from first receipt 1" in shown
    assert "24 h from first receipt not verified, used as unknown 0" in shown
    assert "charge_card" in words(admin.get("/contracts/stripe.v1/"))
    assert "No tool of this workspace" in words(admin.get("/contracts/wise/"))
    assert admin.get("/contracts/halden/").status_code == 404


@pytest.mark.parametrize(
    ("show", "names"),
    [
        ("all", {"charge", "search", "sms"}),
        ("double", {"sms"}),
        ("keyed", {"charge"}),
        ("reads", {"search"}),
        ("lint", {"charge", "sms"}),
        ("nonsense", {"charge", "search", "sms"}),
    ],
)
def test_tabs_narrow_the_list(admin: Client, shop: Workspace, show: str, names: set[str]) -> None:
    for name, effect_class in (
        ("charge", "keyed_write"),
        ("search", "read"),
        ("sms", "unkeyed_write"),
    ):
        Tool.objects.create(workspace=shop, name=name, effect_class=effect_class)
    page = admin.get(f"/tools/?show={show}").text
    assert set(re.findall(r'<a class="main" href="/tools/\d+/">(\w+)</a>', page)) == names


def test_a_tools_name_from_a_model_is_only_text(admin: Client, shop: Workspace) -> None:
    evil = '<img src=x hx-post="/logout/" hx-trigger="load">'
    tool = Tool.objects.create(workspace=shop, name=evil, registered=False)
    for address in ("/tools/", f"/tools/{tool.pk}/"):
        assert "<img" not in admin.get(address).text
