"""Bringing tools in: nothing before it is confirmed, all or none, and hints decide nothing."""

import json
import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import AuditEntry, Connection, Tool, ToolChange, Workspace
from reconcile.registry import importing, mcp_list, toml_file
from reconcile.registry.importing import Kind
from tests.support import desk
from tests.support.desk import a_keyed_tool, an_unkeyed_tool

pytestmark = pytest.mark.django_db

TOML, LIST = "/tools/file/import/", "/tools/file/tools-list/"


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def admin(shop: Workspace) -> Client:
    client = Client()
    client.force_login(desk.a_person(shop, Role.ADMIN))
    return client


def words(answer: Any) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", answer.content.decode()).split())


def file_of(*entries: str) -> str:
    return "format = 1\n" + "".join(f"[[tool]]\n{entry}\n" for entry in entries)


def confirm(client: Client, address: str, page: Any, **more: str) -> Any:
    """Sends the form of a page that shows a plan."""
    hidden = re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)"', page.text)
    (digest,) = re.findall(r'name="confirmed" value="([0-9a-f]+)"', page.text)
    return (
        client.post(
            address,
            dict(page.context["chosen"])
            | {
                "text": page.context["text"],
                "source": page.context["source"],
                "confirmed": digest,
                **more,
            },
        )
        if hidden
        else None
    )


def test_what_is_taken_out_and_brought_in_again_changes_nothing(
    admin: Client, shop: Workspace
) -> None:
    a_keyed_tool(shop, runbook="- Ask Stripe\n- **Then** the customer", margin_seconds=140)
    an_unkeyed_tool(shop, argument_rules={"business": ["order"], "defaults": {"currency": '"eur"'}})
    Tool.objects.create(workspace=shop, name="seen_only", registered=False)
    taken = admin.get("/tools/file/export.toml")
    assert taken["Content-Disposition"] == 'attachment; filename="tools-halden.toml"'
    assert "seen_only" not in taken.text
    page = admin.post(TOML, {"file": SimpleUploadedFile("tools.toml", taken.content)})
    plan = page.context["plan"]
    assert {item.kind for item in plan.items} == {Kind.UNCHANGED}
    assert len(plan.items) == 2
    assert "There is nothing to save." in words(page)
    assert AuditEntry.objects.get().act == "tools.exported"


def test_a_file_is_shown_first_and_saved_when_it_is_confirmed(
    admin: Client, shop: Workspace
) -> None:
    kept = a_keyed_tool(shop)
    text = file_of(
        'name = "charge_card"\nowner = "Payments"',
        'name = "send_sms"\neffect_class = "unkeyed_write"\nsummary = "Text {to}"',
    )
    page = admin.post(TOML, {"file": SimpleUploadedFile("from git.toml", text.encode())})
    assert "Owner: Payments , was none" in words(page)
    assert "send_sms line 5" in words(page)
    assert not Tool.objects.filter(name="send_sms").exists()
    assert not ToolChange.objects.exists()

    done = confirm(admin, TOML, page)
    assert done.status_code == 302, words(done)
    kept.refresh_from_db()
    assert (kept.owner, kept.version, kept.window_seconds) == ("Payments", 2, 86_400)
    assert Tool.objects.get(name="send_sms").summary == "Text {to}"
    assert {change.reason for change in ToolChange.objects.all()} == {"import of from git.toml"}
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.target, entry.after) == (
        "tools.imported",
        "from git.toml",
        {"tools": 2},
    )


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ('name = "charge_card"\nownr = "x"', "Line 4: ownr is no name here. Did you mean owner?"),
        ('name = "charge_card"\nwindow_seconds = 60', "Line 4: margin_seconds"),
        ('name = "new"\neffect_class = "harmless"', "Line 4: effect_class is one of read,"),
        ('name = "charge_card"\nconnection = "Strip"', "There are: Stripe."),
        ('name = "charge_card"\nlookup_kind = "http"', "needs a connection of the kind http"),
        ('name = "charge_card"\ncontract = "twilio"', "Twilio knows no key"),
        ('name = "new"\nsummary = "Charge {amount"', "A brace is open or closed alone."),
    ],
)
def test_what_cannot_be_taken_says_where_and_why_and_then_nothing_is(
    admin: Client, shop: Workspace, body: str, sentence: str
) -> None:
    a_keyed_tool(shop)
    page = admin.post(TOML, {"text": file_of(body, 'name = "fine"')})
    assert page.status_code == 422
    shown = words(page).replace("&#x27;", "'")
    assert sentence.replace("Line 4: margin_seconds", "margin_seconds") in shown
    assert "a file is taken whole or not at all" in shown
    forced = admin.post(
        TOML, {"text": page.context["text"], "confirmed": page.context["plan"].digest}
    )
    assert forced.status_code == 422
    assert not Tool.objects.filter(name="fine").exists()


def test_what_was_shown_is_what_is_saved(admin: Client, shop: Workspace) -> None:
    kept = a_keyed_tool(shop)
    page = admin.post(TOML, {"text": file_of('name = "charge_card"\nowner = "Payments"')})
    Tool.objects.filter(pk=kept.pk).update(version=2, summary="Somebody else was here")
    answer = confirm(admin, TOML, page)
    assert answer.status_code == 409
    assert "Somebody changed the registry since you looked." in words(answer)
    kept.refresh_from_db()
    assert kept.owner == ""
    assert confirm(admin, TOML, answer).status_code == 302


def test_a_plan_that_moved_while_it_is_saved_saves_none_of_it(shop: Workspace) -> None:
    kept, user = a_keyed_tool(shop), desk.a_person(shop, Role.ADMIN)
    text = file_of('name = "a_new_one"', 'name = "charge_card"\nowner = "Payments"')
    made = importing.plan(shop, map(importing.wanted_of, toml_file.read(text)))
    Tool.objects.filter(pk=kept.pk).update(version=7)
    with pytest.raises(importing.PlanMoved):
        importing.save(made, workspace=shop, user=user, source="x", now=shop.created_at)
    assert not Tool.objects.filter(name="a_new_one").exists()
    assert not AuditEntry.objects.exists()


def test_a_weaker_class_is_said_and_another_workspaces_connection_is_none(
    admin: Client, shop: Workspace
) -> None:
    a_keyed_tool(shop)
    Connection.objects.create(
        workspace=desk.a_workspace("other"),
        name="Theirs",
        kind="http",
        base_url="https://x.example",
    )
    weaker = admin.post(TOML, {"text": file_of('name = "charge_card"\neffect_class = "read"')})
    assert "guards less than before" in words(weaker)
    theirs = admin.post(TOML, {"text": file_of('name = "charge_card"\nconnection = "Theirs"')})
    assert "There is no connection named Theirs here." in words(theirs)


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({}, "Choose a file, or paste its text."),
        ({"file": SimpleUploadedFile("x.toml", b"a = '\xff'")}, "no UTF-8: byte 5"),
        ({"text": "a ="}, "Line 1: This is no TOML"),
        (
            {"file": SimpleUploadedFile("x.toml", b"#" * (toml_file.BYTES_MAX + 1))},
            "larger than 1,048,576 bytes (BYTES_MAX)",
        ),
    ],
)
def test_what_is_no_file_is_refused_and_what_was_typed_is_kept(
    admin: Client, sent: dict[str, Any], sentence: str
) -> None:
    page = admin.post(TOML, sent)
    assert page.status_code == 422
    assert sentence in words(page)
    assert sent.get("text", "") in page.text


# MCP

SAID = {
    "resultType": "complete",
    "tools": [
        {
            "name": "get_order",
            "description": "Reads one order",
            "annotations": {"readOnlyHint": True, "idempotentHint": True},
        },
        {
            "name": "pay",
            "title": "Pay <b>now</b>",
            "inputSchema": {
                "type": "object",
                "properties": {
                    "price": {"properties": {"Amount": {}, "currency": {}, "a b": {}}},
                    "customer": {},
                    "note": {"properties": {"customer": {}}},
                },
            },
        },
    ],
}


def test_hints_are_shown_and_every_tool_begins_as_an_unkeyed_write(
    admin: Client, shop: Workspace
) -> None:
    page = admin.post(LIST, {"text": json.dumps({"jsonrpc": "2.0", "id": 1, "result": SAID})})
    shown = words(page)
    assert "changes nothing readOnlyHint" in shown
    assert "may destroy something destructiveHint , not said" in shown
    assert page.text.count('<option value="unkeyed_write" selected>') == 2
    assert "<b>now</b>" not in page.text
    plan = admin.post(
        LIST, {"text": page.context["text"], "choose": "1", "take-0": "1", "take-1": "1"}
    )
    assert plan.status_code == 200, words(plan)
    assert not Tool.objects.exists()
    assert confirm(admin, LIST, plan).status_code == 302
    assert {tool.effect_class for tool in Tool.objects.all()} == {"unkeyed_write"}
    pay = Tool.objects.get(name="pay")
    assert (pay.amount_field, pay.currency_field, pay.customer_field) == (
        "price.Amount",
        "price.currency",
        "customer",
    )
    assert ToolChange.objects.get(tool=pay).reason == "import of pasted tools/list"


def test_a_person_may_choose_another_class_and_leave_tools_out(
    admin: Client, shop: Workspace
) -> None:
    said = {"text": json.dumps(SAID), "choose": "1", "take-0": "1", "class-0": "read"}
    assert confirm(admin, LIST, admin.post(LIST, said)).status_code == 302
    assert Tool.objects.get().effect_class == "read"
    again = admin.post(LIST, {"text": json.dumps(SAID["tools"])})
    assert "there already" in words(again)
    none = admin.post(LIST, {"text": json.dumps(SAID), "choose": "1"})
    assert none.status_code == 422
    assert "Choose at least one tool." in words(none)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "This is no JSON"),
        ('{"tools": 1}', "There is no list of tools in it"),
        ('{"tools": [{"title": "x"}]}', "Tool 1 has no name"),
        ('[{"name": "a"}, {"name": "a"}]', "a is in the list twice"),
        (json.dumps([{"name": str(n)} for n in range(501)]), "(TOOLS_MAX)"),
        ("[" * 5_000, "This is no JSON"),
    ],
)
def test_what_is_no_list_of_tools_is_refused_with_the_reason(text: str, sentence: str) -> None:
    with pytest.raises(mcp_list.CannotRead, match=re.escape(sentence)):
        mcp_list.read(text)


def test_a_list_of_several_pages_says_that_it_is_not_all(admin: Client, shop: Workspace) -> None:
    page = admin.post(LIST, {"text": json.dumps(SAID | {"nextCursor": "abc"})})
    assert "these are not all of the server&#x27;s tools" in page.text or "nextCursor" in page.text
