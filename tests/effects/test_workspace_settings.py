"""The settings of a workspace, and links to a trace viewer that its template makes."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.vocabulary import Role
from effects.models import AuditEntry, Workspace
from effects.trace_links import EXAMPLES, fault_of, filled, trace_link
from tests.support import desk

VIEWER = "https://traces.example.com/trace/{trace_id}"


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        (VIEWER, ""),
        ("http://localhost:6006/s?session={conversation}&n={turn}", ""),
        ("https://t.example/{trace_id}#{call_id}", ""),
        ("javascript:alert('{trace_id}')", "begins with https"),
        ("//t.example/{trace_id}", "begins with https"),
        ("https:///{trace_id}", "names a host"),
        ("https://{conversation}.example/{trace_id}", "in the host"),
        ("https://t.example?{trace_id}", ""),
        ("https://ana:pw@t.example/{trace_id}", "password"),
        ("https://t.example/{trace}", "no field {trace}"),
        ("https://t.example/{trace_id.__class__}", "no field"),
        ("https://t.example/{trace_id", "stands alone"),
        ("https://t.example/ {trace_id}", "no spaces"),
        ("https://t.example:x/{trace_id}", "no address"),
        ("https://t.example/", "names no field"),
    ],
)
def test_a_template_is_taken_or_its_fault_is_said(template: str, fault: str) -> None:
    said = fault_of(template)
    assert (fault in said) if fault else said == ""
    assert bool(filled(template, EXAMPLES)) is (said == "")


@given(st.text(min_size=1))
@settings(deadline=None)
def test_whatever_an_agent_calls_its_conversation_it_stays_one_part_of_the_address(
    name: str,
) -> None:
    link = filled("https://t.example/a/{conversation}/b", {"conversation": name})
    assert link.startswith("https://t.example/a/")
    assert link.endswith("/b")
    middle = link.removeprefix("https://t.example/a/").removesuffix("/b")
    assert not set(middle) & set("/?#&\\ \n\"'<>")
    assert middle not in {".", ".."}


def test_a_link_is_only_made_of_what_is_known() -> None:
    shop = Workspace(trace_url=VIEWER)
    assert trace_link(shop, trace_id="4bf9") == "https://traces.example.com/trace/4bf9"
    assert trace_link(shop, conversation="c", turn=3) == ""
    assert trace_link(Workspace(), trace_id="4bf9") == ""
    by_turn = Workspace(trace_url="https://t.example/{conversation}/{turn}")
    assert trace_link(by_turn, conversation="c", turn=0) == "https://t.example/c/0"


def form(shop: Workspace, **changes: str) -> dict[str, str]:
    shown = {"name": shop.name, "seen_name": shop.name, "seen_trace_url": shop.trace_url}
    return {**shown, "trace_url": shop.trace_url, **changes}


@pytest.mark.django_db
def test_an_admin_changes_the_settings_and_the_audit_log_keeps_both_sides(client) -> None:
    shop = desk.a_workspace()
    ada = desk.a_person(shop, Role.ADMIN, "ada")
    client.force_login(ada)
    preview = client.post("/workspace/settings/", form(shop, trace_url=VIEWER, preview="1"))
    assert EXAMPLES["trace_id"] in preview.content.decode()
    assert not AuditEntry.objects.exists()

    client.post("/workspace/settings/", form(shop, trace_url=VIEWER))
    shop.refresh_from_db()
    assert shop.trace_url == VIEWER
    entry = AuditEntry.objects.get()
    assert (entry.act, entry.user_id) == ("workspace.changed", ada.pk)
    assert entry.before == {"name": "Halden", "trace_url": ""}
    assert entry.after == {"name": "Halden", "trace_url": VIEWER}

    client.post("/workspace/settings/", form(shop))
    assert AuditEntry.objects.count() == 1, "nothing was changed"


@pytest.mark.django_db
def test_a_faulty_template_is_refused_with_what_was_typed_kept(client) -> None:
    shop = desk.a_workspace()
    client.force_login(desk.a_person(shop, Role.ADMIN))
    answer = client.post("/workspace/settings/", form(shop, trace_url="javascript:{trace_id}"))
    assert answer.status_code == 422
    assert 'value="javascript:{trace_id}"' in answer.content.decode()
    assert "begins with https" in answer.content.decode()


@pytest.mark.django_db
def test_of_two_admins_who_change_it_at_once_the_second_is_told(client) -> None:
    shop = desk.a_workspace()
    client.force_login(desk.a_person(shop, Role.ADMIN))
    stale = form(shop, name="Second")
    client.post("/workspace/settings/", form(shop, name="First"))
    answer = client.post("/workspace/settings/", stale)
    assert answer.status_code == 409
    assert "Somebody else changed these settings" in answer.content.decode()
    shop.refresh_from_db()
    assert shop.name == "First"
