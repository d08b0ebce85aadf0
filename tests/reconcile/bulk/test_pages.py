"""The pages of bulks: from the queue to the outcome of each call, for those who may."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import User
from django.test import Client

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from ledger.models import Decision
from reconcile import listing, takes
from reconcile.assign import assignments
from reconcile.assign import tasks as telling
from reconcile.bulk import running, selection, tasks
from reconcile.bulk.acts import BulkAction
from reconcile.models import Bulk, Snooze, Take
from reconcile.pages import bulk as pages
from reconcile.views.filters import Filters
from tests.reconcile.bulk.setting import select, start
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def begun(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which bulks a worker was told of; none is there in these tests."""
    told: list[int] = []
    monkeypatch.setattr(tasks, "begin", told.append)
    return told


def desk_of(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


def press(client: Client, action: str, **changes: Any) -> Any:
    """Selects every row of the page and presses one button of the bar."""
    listed = client.get("/queue/")
    form = {
        "action": action,
        "token": listed.context["bulk_token"],
        "view": listed.context["carried"],
        "call": list(listed.context["bulk_words"].values()),
    }
    return client.post("/bulk/new/", form | changes, follow=True)


def test_asking_begins_at_once_and_the_toast_leads_to_its_page(
    lea: User, three: list[UUID], begun: list[int]
) -> None:
    response = press(desk_of(lea), "ask")
    made = Bulk.objects.get()
    assert response.redirect_chain[-1][0] == "/queue/?view=open"
    assert f'<a href="/bulk/{made.pk}/">' in response.content.decode()
    assert begun == [made.pk]
    assert made.started_at is not None


def test_everything_else_is_looked_at_first_and_started_once(
    lea: User, three: list[UUID], begun: list[int]
) -> None:
    client = desk_of(lea)
    review = press(client, "release_same").content.decode()
    made = Bulk.objects.get()
    assert "nothing has been done yet" in review
    assert "Type <b" in review
    assert begun == []
    form = {"reason": "Asked.", "typed": "3"}
    words = [
        client.post(f"/bulk/{made.pk}/start/", form, follow=True).content.decode() for _ in range(2)
    ]
    assert ["nothing was started twice" in one for one in words] == [False, True]
    assert begun == [made.pk]


def test_support_snoozes_many_and_is_told_who_decides_about_many(
    halden: Workspace, three: list[UUID]
) -> None:
    ana = desk_of(desk.a_person(halden, Role.SUPPORT, "ana"))
    assert "Needs the role Payments lead or Admin." in ana.get("/queue/").content.decode()
    refused = press(ana, "release_same").content.decode()
    assert "Release with the same key: Needs the role Payments lead or Admin." in refused
    assert not Bulk.objects.exists()
    press(ana, "snooze")
    running.start(Bulk.objects.get(), reason="")
    running.run(Bulk.objects.get().pk)
    assert Snooze.objects.count() == 3


def test_all_that_match_are_taken_where_the_whole_view_is_asked_for(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ROWS_PER_PAGE", 2)
    client = desk_of(lea)
    first = client.get("/queue/")
    assert len(first.context["bulk_words"]) == 2
    assert "Select all 3 matching this view" in first.content.decode()
    press(client, "snooze", scope="view")
    assert {item.claim_id for item in Bulk.objects.get().items.all()} == set(three)


def test_a_view_of_more_than_a_bulk_holds_says_so_before_anything_is_pressed(
    lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ROWS_PER_PAGE", 2)
    monkeypatch.setattr("reconcile.pages.queue.ITEMS_MAX", 2)
    page = desk_of(lea).get("/queue/").content.decode()
    assert "more than 2 match; a bulk takes 2 at most" in page


def test_a_narrowed_list_counts_what_matches_in_all_its_pages(
    halden: Workspace, charge: Tool, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.a_lost_call(desk.an_unkeyed_tool(halden))
    monkeypatch.setattr(listing, "ROWS_PER_PAGE", 2)
    assert listing.queue_page(halden.pk, Filters(tool=charge.name)).matching == 3
    assert listing.queue_page(halden.pk, Filters()).matching == 4
    monkeypatch.setattr(listing, "COUNTED_MAX", 2)
    assert listing.queue_page(halden.pk, Filters(tool=charge.name)).matching == 2


@pytest.mark.parametrize(
    ("action", "changes", "said"),
    [
        ("snooze", {"call": []}, "No call is selected"),
        ("snooze", {"call": ["nonsense"]}, "not made by this page"),
        ("delete", {}, "Choose what is to be done"),
        ("snooze", {"call": ["x"] * 501}, "At most 500 calls"),
    ],
)
def test_what_cannot_be_done_is_said_on_the_list(
    lea: User, three: list[UUID], action: str, changes: dict[str, Any], said: str
) -> None:
    response = press(desk_of(lea), action, **changes)
    assert said in response.content.decode()
    assert not Bulk.objects.exists()


def test_a_draft_is_its_authors_and_a_started_bulk_is_the_workspaces(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    draft = select(halden, lea, BulkAction.SNOOZE, three)
    mo = desk_of(desk.a_person(halden, Role.LEAD, "mo"))
    ole = desk_of(desk.a_person(desk.a_workspace("other"), Role.LEAD, "ole"))
    assert mo.get(f"/bulk/{draft.pk}/").status_code == 404
    assert mo.post(f"/bulk/{draft.pk}/start/").status_code == 404
    start(draft)
    assert mo.get(f"/bulk/{draft.pk}/").status_code == 200
    for address in ("", "start/", "stop/", "undo/"):
        method = ole.post if address else ole.get
        assert method(f"/bulk/{draft.pk}/{address}").status_code == 404


def test_drafts_that_were_never_started_do_not_pile_up(
    halden: Workspace, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "DRAFTS_KEPT_MAX", 2)
    started = start(select(halden, lea, BulkAction.SNOOZE, three))
    drafts = [select(halden, lea, BulkAction.SNOOZE, three) for _ in range(4)]
    assert Bulk.objects.filter(started_at=None).count() == 2
    assert {started, drafts[-1]} <= set(Bulk.objects.all())


def test_one_and_then_all_are_taken_back_by_their_buttons(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    made = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    running.run(made.pk)
    client = desk_of(lea)
    item = made.items.get(number=2)
    said = client.post(f"/bulk/{made.pk}/undo/", {"item": item.pk}, follow=True)
    assert "1 decision taken back." in said.content.decode()
    said = client.post(f"/bulk/{made.pk}/undo/", follow=True)
    assert "2 decisions taken back." in said.content.decode()
    assert Decision.objects.filter(verdict="withdraw").count() == 3
    assert client.get(f"/bulk/{made.pk}/?outcome=undone").content.decode().count("<tr>") == 4


def test_stopping_is_said_once(halden: Workspace, lea: User, three: list[UUID]) -> None:
    made = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    client = desk_of(lea)
    words = [client.post(f"/bulk/{made.pk}/stop/", follow=True).content.decode() for _ in range(2)]
    assert "Stopped. What was done stands" in words[0]
    assert "nothing to stop any more" in words[1]


def test_a_page_shows_so_many_calls_and_the_rest_on_the_next(
    halden: Workspace, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "ROWS_PER_PAGE", 2)
    made = start(select(halden, lea, BulkAction.SNOOZE, three))
    client = desk_of(lea)
    assert "1 to 2 of 3" in client.get(f"/bulk/{made.pk}/").content.decode()
    assert "3 to 3 of 3" in client.get(f"/bulk/{made.pk}/?page=2").content.decode()


# Taking, and telling whom calls were given to


def test_what_is_selected_is_taken_at_once_and_what_somebody_has_is_left(
    halden: Workspace, lea: User, three: list[UUID], begun: list[int]
) -> None:
    takes.take(halden.pk, three[1], user_id=desk.a_person(halden, name="ben").pk)
    page = press(desk_of(lea), "take").content.decode()
    assert "2 of 3 calls are with you for 10 minutes." in page
    bulk = Bulk.objects.get()
    said = dict(bulk.items.values_list("claim_id", "said"))
    assert said[three[1]] == "ben has it. Taking it over needs a reason, on its own page."
    mine = Take.objects.filter(taken_by=lea, ended_at=None)
    assert set(mine.values_list("claim_id", flat=True)) == {three[0], three[2]}
    assert begun == []


def test_a_viewer_takes_nothing(halden: Workspace, three: list[UUID]) -> None:
    viewer = desk_of(desk.a_person(halden, Role.VIEWER))
    assert press(viewer, "take").status_code == 403
    assert Take.objects.count() == 0


def test_all_that_match_can_be_selected_among_all_calls_too(
    lea: User, three: list[UUID], begun: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ROWS_PER_PAGE", 2)
    monkeypatch.setattr(pages, "AT_ONCE_MAX", 2)
    client = desk_of(lea)
    shown = client.get("/queue/?view=all")
    assert shown.context["whole_view"] == 3
    page = press(client, "take", view="?view=all", scope="view").content.decode()
    assert "Taking 3 calls." in page
    assert begun == [Bulk.objects.get().pk]
    running.run(begun[0])
    assert Take.objects.filter(taken_by=lea).count() == 3


def test_whom_calls_are_given_to_is_told_once_of_all_that_are_new(
    halden: Workspace, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[dict[str, Any]] = []
    monkeypatch.setattr(telling, "tell", lambda *_, **said: told.append(said))
    ben = desk.a_person(halden, name="ben")
    assignments.assign(halden.pk, three[0], to_id=ben.pk, by_id=lea.pk)
    bulk = select(halden, lea, BulkAction.ASSIGN, three)
    running.start(bulk, reason="", options={"to": ben.pk})
    running.run(bulk.pk)
    running.run(bulk.pk)
    assert told == [{"user_id": ben.pk, "by_id": lea.pk, "why": "assigned", "many": 2}]


def test_one_mail_for_many_calls_leads_to_all_of_them(
    halden: Workspace, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[str, str]] = []
    monkeypatch.setattr(
        telling, "send_mail", lambda subject, text, *_: sent.append((subject, text))
    )
    ben = desk.a_person(halden, name="ben")
    User.objects.filter(pk=ben.pk).update(email="ben@example.org")
    telling.send(halden.pk, str(three[0]), ben.pk, lea.pk, "assigned", 3)
    telling.send(halden.pk, str(three[0]), ben.pk, lea.pk, "assigned")
    assert [subject for subject, _ in sent] == [
        "3 calls were assigned to you (Halden)",
        "A call was assigned to you (Halden)",
    ]
    assert sent[0][1].rstrip().endswith("/queue/?view=mine")
    assert sent[1][1].rstrip().endswith(f"/calls/{three[0]}")
