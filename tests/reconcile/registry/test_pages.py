"""The registry's pages over real calls: traffic, previews, consequences and the two new pages."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from effects.core.vocabulary import EffectClass, Role
from effects.models import Tool, ToolHour, Workspace
from ledger import queries
from ledger.models import Event
from reconcile.action_names import ActionName
from reconcile.actions import safe_actions
from reconcile.queries import call
from reconcile.registry.consequences import of_change
from reconcile.registry.measuring import measure
from reconcile.registry.simulation import Viewer
from reconcile.second_person import Team
from reconcile.team import team_of
from tests.support import desk
from tests.support.desk import a_keyed_tool, an_unkeyed_tool

pytestmark = pytest.mark.django_db


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


def form_of(client: Client, tool: Tool, **changes: str) -> dict[str, str]:
    """What the tool's form would send as it is shown, with these changes."""
    form = client.get(f"/tools/{tool.pk}/").context["form"]
    shown = {name: form[name].value() for name in form.fields}
    kept = {name: str(value) for name, value in shown.items() if value not in (None, False)}
    return {**kept, "version": str(tool.version), "reason": "Looked at it", **changes}


# The list


def test_the_list_has_traffic_and_what_it_makes_one_say(admin: Client, shop: Workspace) -> None:
    tool = a_keyed_tool(shop, customer_field="buyer", owner="Payments")
    desk.a_lost_call(tool)
    desk.complete(tool, desk.a_call(tool))
    measure(queries.clock())
    page = words(admin.get("/tools/"))
    assert "2 50.0 % 1 undecided" in page
    assert "customer path buyer matches nothing in the last 2 calls" in page
    assert "key not seen on the wire in the last 2 calls" in page
    assert "second person: from 500" in page
    detail = admin.get(f"/tools/{tool.pk}/")
    assert "Look at the arguments of a call, and name the field that holds the customer." in words(
        detail
    )
    assert 'href="/calls/' in detail.text


def test_tools_that_nobody_entered_are_listed_with_what_was_seen(
    admin: Client, shop: Workspace
) -> None:
    desk.a_call(Tool(workspace=shop, name="notify_store", effect_class="unkeyed_write"))
    now = queries.clock()
    ToolHour.objects.create(
        workspace=shop, name="void <label>", hour=now, announced=3, first_at=now, last_at=now
    )
    measure(now)
    assert "2 tools that nobody registered" in words(admin.get("/tools/"))
    page = admin.get("/tools/?show=unregistered")
    assert "notify_store 1 0 no request shown" in words(page)
    assert "void &lt;label&gt;" in page.text
    (address,) = [one.address for one in page.context["strangers"] if one.name == "void <label>"]
    prefilled = admin.get(address)
    assert prefilled.context["form"]["name"].value() == "void <label>"
    assert "Seen in traffic, entered by nobody." in words(prefilled)
    assert "3 named by streams" in words(prefilled)


def test_the_list_asks_the_same_questions_for_one_tool_and_for_many(
    admin: Client, shop: Workspace
) -> None:
    counts = []
    admin.get("/tools/")  # notes that the person was seen, once a minute
    for tools in (1, 25):
        for number in range(tools):
            desk.a_call(a_keyed_tool(shop, name=f"tool_{tools}_{number}"))
        measure(queries.clock())
        asked = CaptureQueriesContext(connection)
        with asked:
            assert admin.get("/tools/").status_code == 200
        counts.append(len(asked))
    assert counts[0] == counts[1] <= 15


# The form


def test_a_tool_that_nobody_entered_is_offered_the_fields_of_its_newest_call(
    admin: Client, shop: Workspace
) -> None:
    desk.a_call(Tool(workspace=shop, name="pay", effect_class="unkeyed_write"))
    measure(queries.clock())
    kept = Tool.objects.get(name="pay")
    form = admin.get(f"/tools/{kept.pk}/").context["form"]
    assert (form["amount_field"].value(), form["customer_field"].value()) == ("amount", "customer")
    assert form["effect_class"].value() == "unkeyed_write"


def test_registering_under_another_class_than_it_counted_as_is_looked_at_first(
    admin: Client, shop: Workspace
) -> None:
    seen = Tool.objects.create(workspace=shop, name="notify_store", registered=False)
    page = admin.post(f"/tools/{seen.pk}/", form_of(admin, seen, effect_class="keyed_write"))
    assert "from unkeyed write to keyed write" in words(page)
    seen.refresh_from_db()
    assert not seen.registered
    assert admin.post(f"/tools/{seen.pk}/", form_of(admin, seen)).status_code == 302


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({}, "Charge 149.00 EUR to cus_"),
        ({"summary": "Pay {order"}, "Summary: A brace is open or closed alone."),
        ({"amount_field": "a b"}, "Amount field: This is not a field."),
        ({"amount_field": "price"}, "price matches nothing in the last call."),
        ({"currency_field": ""}, "There is a figure, and no currency"),
        ({"customer_field": "buyer.id"}, "buyer.id matches nothing in the last call."),
        ({"summary": "For {reason}"}, "{reason} is in none of the last call."),
    ],
)
def test_what_is_typed_is_shown_on_the_newest_real_call_and_saved_by_nobody(
    admin: Client, shop: Workspace, typed: dict[str, str], sentence: str
) -> None:
    tool = a_keyed_tool(shop)
    desk.a_call(tool, arguments={"customer": "cus_abcdefghijk"})
    measure(queries.clock())
    data = form_of(admin, tool, **typed)
    answer = admin.post(f"/tools/{tool.pk}/preview/", data)
    assert sentence in words(answer)
    without_script = admin.post(f"/tools/{tool.pk}/", data | {"preview": "1"})
    assert sentence in words(without_script)
    tool.refresh_from_db()
    assert tool.version == 1


def test_a_runbook_is_kept_with_its_lines_and_shown_as_notes_are(
    admin: Client, shop: Workspace
) -> None:
    tool = a_keyed_tool(shop)
    text = "- Ask **Stripe**\r\n- <script>alert(1)</script>"
    assert admin.post(f"/tools/{tool.pk}/", form_of(admin, tool, runbook=text)).status_code == 302
    tool.refresh_from_db()
    assert tool.runbook == "- Ask **Stripe**\n- <script>alert(1)</script>"
    page = admin.get(f"/tools/{tool.pk}/")
    assert "<li>Ask <strong>Stripe</strong></li>" in page.text
    assert "<script>alert" not in page.text
    assert "Runbook: 44 characters, was none" in words(page)
    tool.refresh_from_db()
    refused = admin.post(f"/tools/{tool.pk}/", form_of(admin, tool, runbook="x" * 10_001))
    assert refused.status_code == 422


# Consequences


def test_the_review_says_which_actions_change_on_the_open_calls(
    admin: Client, shop: Workspace
) -> None:
    tool = a_keyed_tool(shop, lookup_kind="", connection=None)
    first, second = desk.a_lost_call(tool), desk.a_lost_call(tool)
    desk.complete(tool, desk.a_call(tool))
    desk.move_clock(timedelta(seconds=2))
    wide = admin.post(f"/tools/{tool.pk}/", form_of(admin, tool, margin_seconds="23 h 59 m 59 s"))
    assert "2 Release with the same key is no longer available" in words(wide)
    assert f'href="/calls/{first}"' in wide.text
    assert f'href="/calls/{second}"' in wide.text
    assert not Event.objects.filter(claim_id=first, kind="decided").exists()
    other = admin.post(f"/tools/{tool.pk}/", form_of(admin, tool, effect_class="unkeyed_write"))
    shown = words(other)
    assert "2 of them stay keyed writes" in shown
    assert "0 actions become available or unavailable on them" in shown
    assert "Release with the same key is not offered any more" in shown


def test_only_so_many_open_calls_are_worked_out_and_the_page_says_so(
    admin: Client, shop: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reconcile.registry.consequences.OPEN_READ_MAX", 1)
    tool = a_keyed_tool(shop)
    desk.a_lost_call(tool)
    desk.a_lost_call(tool)
    page = admin.post(f"/tools/{tool.pk}/", form_of(admin, tool, effect_class="read"))
    assert "Actions were worked out on the" in words(page)
    assert page.context["shifts"].read == 1


def test_a_look_up_that_is_added_makes_asking_available(shop: Workspace) -> None:
    before = a_keyed_tool(shop, lookup_kind="")
    lost = desk.a_lost_call(before)
    after = Tool.objects.select_related("connection").get(pk=before.pk)
    after.lookup_kind = "stripe.payment_intents"
    shifts = of_change(before, after, Viewer(role=Role.SUPPORT, team=Team()))
    ((name, offered, ids),) = [(one.action, one.offered, one.claim_ids) for one in shifts.found]
    assert (name, offered, ids) == (ActionName.ASK, True, (lost,))


# A timeout, and the audit


def test_a_simulated_timeout_stores_nothing_and_shows_every_moment(
    admin: Client, shop: Workspace
) -> None:
    tool = a_keyed_tool(shop)
    desk.a_call(tool)
    measure(queries.clock())
    with CaptureQueriesContext(connection) as asked:
        page = admin.get(f"/tools/{tool.pk}/simulate/")
    written = [one["sql"] for one in asked if re.match(r"INSERT|UPDATE|DELETE", one["sql"])]
    assert [sql for sql in written if "effects_membership" not in sql] == []
    shown = words(page)
    assert "about 149.00 EUR as the newest real one is" in shown
    assert "Did not happen" in shown
    assert "expired_unanswered" in shown
    assert "Nothing is asked, stored or sent." in shown
    read = Tool.objects.create(workspace=shop, name="search", effect_class=EffectClass.READ)
    assert "A read has no timeout to settle" in words(admin.get(f"/tools/{read.pk}/simulate/"))


def test_what_the_simulation_says_is_what_the_call_page_says(
    admin: Client, shop: Workspace
) -> None:
    tool = a_keyed_tool(shop)
    made_up = admin.get(f"/tools/{tool.pk}/simulate/").context["outlooks"][1]["outlook"]
    real = call(shop.pk, desk.a_lost_call(tool))
    team = team_of(shop.pk, User.objects.get().pk)
    there = safe_actions(real.situation, role=Role.ADMIN, team=team)
    assert [(one.name, one.offered) for one in made_up.actions] == [
        (one.name, one.offered) for one in there
    ]
    assert real.told.for_model is not None
    assert made_up.for_model.keys() | {"link"} == real.told.for_model.keys()
    assert made_up.for_model["status"] == real.told.for_model["status"]


def test_the_audit_page_names_every_tool_and_its_file_evaluates_nothing(
    admin: Client, shop: Workspace
) -> None:
    a_keyed_tool(shop)
    an_unkeyed_tool(shop, owner="=HYPERLINK(1)")
    page = words(admin.get("/tools/double-fire/"))
    assert page.index("issue_gift_card") < page.index("charge_card")
    assert "no look-up: after a lost answer only a person can tell what happened" in page
    answer = admin.get("/tools/double-fire/export.csv")
    text = b"".join(answer.streaming_content).decode("utf-8-sig")  # type: ignore[attr-defined]  # a stream
    rows = text.splitlines()
    assert rows[0].startswith("Tool,Owner,Can it fire twice,Class,What lets it")
    assert rows[1].startswith("issue_gift_card,'=HYPERLINK(1),Can fire twice,unkeyed write,")
    assert len(rows) == 3
