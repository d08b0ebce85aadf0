"""The pages about runs: who may do what, what is listed, and what a form has to say."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from ledger import queries
from reconcile import tasks
from reconcile.models import AskingEnded, Backlog, Run, RunItem
from reconcile.runs import keeping, listing, making
from reconcile.runs.making import NewRun, Scope
from tests.support.desk import a_keyed_tool, a_lost_call, a_person, a_workspace

pytestmark = pytest.mark.django_db


@pytest.fixture
def halden() -> Workspace:
    return a_workspace()


@pytest.fixture
def charge(halden: Workspace) -> Tool:
    return a_keyed_tool(halden)


@pytest.fixture(autouse=True)
def told(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Which runs the workers were told of; none is there to hear it."""
    told: list[int] = []
    monkeypatch.setattr(tasks, "start_now", told.append)
    return told


def signed_in(workspace: Workspace, role: Role = Role.SUPPORT) -> Client:
    client = Client()
    client.force_login(a_person(workspace, role))
    return client


def a_run(workspace: Workspace, *claim_ids: UUID, **changes: Any) -> Run:
    fields = {name: changes.pop(name) for name in ("state", "ended_at") if name in changes}
    run = making.start(
        NewRun(workspace_id=workspace.pk, scope=Scope(claim_ids=claim_ids), **changes)
    )
    if fields:
        Run.objects.filter(pk=run.pk).update(due_at=None, started_at=run.made_at, **fields)
    return run


def ended(workspace: Workspace, *claim_ids: UUID, results: str = "", **changes: Any) -> Run:
    now = queries.clock()
    run = a_run(workspace, *claim_ids, state=Run.State.DONE, ended_at=now, **changes)
    for item, result in zip(run.items.order_by("pk"), results.split(), strict=False):
        run.items.filter(pk=item.pk).update(
            result=result, word="found", meaning="happened", strength="strong", followed="Was <b>."
        )
    return run


# The list


def test_an_empty_list_says_what_would_be_on_it(halden: Workspace) -> None:
    page = signed_in(halden, Role.VIEWER).get(reverse("runs"))

    assert "No runs here" in page.text
    assert "Needs the role Support" in page.text


def test_the_list_counts_what_became_of_the_calls(halden: Workspace, charge: Tool) -> None:
    lost = [a_lost_call(charge) for _ in range(6)]
    ended(halden, *lost, results="happened happened not_happened left error limited")

    page = signed_in(halden).get(reverse("runs"))

    (row,) = page.context["page"].rows
    counts = row.counts
    assert (counts.checked, counts.total, counts.happened, counts.not_happened) == (6, 6, 2, 1)
    assert (counts.left, counts.errors, counts.limited) == (1, 1, 1)
    assert "6 of 6" in page.text
    assert "2 / 1" in page.text


@pytest.mark.parametrize(
    ("show", "seen"),
    [("all", 3), ("person", 2), ("dry", 1), ("bulk", 1), ("schedule", 0), ("no such tab", 3)],
)
def test_a_tab_shows_runs_of_its_kind(
    halden: Workspace, charge: Tool, show: str, seen: int
) -> None:
    lost = a_lost_call(charge)
    a_run(halden, lost)
    a_run(halden, lost, dry=True)
    a_run(halden, lost, trigger=Run.Trigger.BULK)

    page = signed_in(halden).get(reverse("runs"), {"show": show})

    assert len(page.context["page"].rows) == seen


def test_a_long_list_goes_on_below_the_last_run(
    halden: Workspace, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "RUNS_PER_PAGE", 2)
    lost = a_lost_call(charge)
    made = [a_run(halden, lost).pk for _ in range(5)]
    client, address, seen = signed_in(halden), "?", []
    while address:
        page = client.get(reverse("runs") + address).context["page"]
        seen += [row.run.pk for row in page.rows]
        address = page.older

    assert seen == made[::-1]


def test_another_workspaces_runs_do_not_exist(halden: Workspace, charge: Tool) -> None:
    run = a_run(halden, a_lost_call(charge))
    client = signed_in(a_workspace("elsewhere"), Role.ADMIN)

    assert client.get(reverse("runs")).context["page"].rows == []
    assert client.get(reverse("run", args=[run.pk])).status_code == 404
    assert client.get(reverse("run-progress", args=[run.pk])).status_code == 404
    for name in ("run-stop", "run-again"):
        assert client.post(reverse(name, args=[run.pk])).status_code == 404


# One run


def test_a_run_shows_each_call_and_pages_through_them(
    halden: Workspace, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "ITEMS_PER_PAGE", 2)
    lost = [a_lost_call(charge) for _ in range(5)]
    run = ended(halden, *lost, results="happened left error left happened")
    client, address, seen = signed_in(halden), "?", []
    while address:
        page = client.get(reverse("run", args=[run.pk]) + address)
        seen += [row.item.claim_id for row in page.context["rows"]]
        address = page.context["older"]
    settled = client.get(reverse("run", args=[run.pk]), {"answers": "settled"})

    assert seen == lost
    assert [row.item.claim_id for row in settled.context["rows"]] == [lost[0], lost[4]]
    assert "Was &lt;b&gt;." in settled.text, "what a provider said is text"


def test_progress_moves_while_the_run_is_open_and_then_loads_the_page(
    halden: Workspace, charge: Tool
) -> None:
    run = a_run(halden, a_lost_call(charge))
    client = signed_in(halden)

    moving = client.get(reverse("run-progress", args=[run.pk]))
    Run.objects.filter(pk=run.pk).update(state="done", due_at=None, ended_at=queries.clock())
    over = client.get(reverse("run-progress", args=[run.pk]))

    assert 'hx-trigger="every 2s"' in moving.text
    assert "HX-Refresh" not in moving.headers
    assert "hx-trigger" not in over.text
    assert over.headers["HX-Refresh"] == "true"


# Starting, stopping, repeating


@pytest.mark.parametrize("name", ["run-start", "run-stop", "run-again"])
def test_a_viewer_starts_and_stops_nothing(halden: Workspace, charge: Tool, name: str) -> None:
    run = ended(halden, a_lost_call(charge), results="error")
    address = reverse(name, args=[] if name == "run-start" else [run.pk])

    assert signed_in(halden, Role.VIEWER).post(address, {"about": "all"}).status_code == 403
    assert Run.objects.count() == 1


@pytest.mark.parametrize("about", ["all", "tool", "connection", "ids"])
def test_a_person_starts_a_run(
    halden: Workspace,
    charge: Tool,
    about: str,
    told: list[int],
    django_capture_on_commit_callbacks: Any,
) -> None:
    lost = a_lost_call(charge)
    number = {"tool": f"-{charge.pk}", "connection": f"-{charge.connection_id}"}.get(about, "")
    form = {"about": about + number, "ids": f"{lost},\n{lost.hex}", "dry": "on"}

    with django_capture_on_commit_callbacks(execute=True):
        answer = signed_in(halden).post(reverse("run-start"), form)

    run = Run.objects.get()
    assert answer.headers["Location"] == reverse("run", args=[run.pk])
    assert (run.trigger, run.dry, told) == ("person", True, [run.pk])
    assert [item.claim_id for item in RunItem.objects.all()] == [lost]


@pytest.mark.parametrize(
    ("form", "says"),
    [
        ({}, "say which calls"),
        ({"about": "tool-x"}, "say which calls"),
        ({"about": "ids", "ids": "  "}, "enter the ids"),
        ({"about": "ids", "ids": "call_<b>"}, "&lt;b&gt;&#x27; is no id of a call"),
        ({"about": "ids", "ids": "0" * 200_001}, "at most 5,000 calls"),
        ({"about": "all"}, "no call of this workspace fits"),
    ],
)
def test_a_form_that_cannot_be_meant_starts_nothing_and_keeps_what_was_typed(
    halden: Workspace, form: dict[str, str], says: str
) -> None:
    page = signed_in(halden).post(reverse("run-start"), form)

    assert page.status_code == 422
    assert says in page.text
    assert form.get("ids", "")[:50].replace("<", "&lt;").replace(">", "&gt;") in page.text
    assert not Run.objects.exists()


def test_stopping_says_who_and_when(halden: Workspace, charge: Tool) -> None:
    run = a_run(halden, a_lost_call(charge))
    client = signed_in(halden)

    page = client.post(reverse("run-stop", args=[run.pk]), follow=True)
    client.post(reverse("run-stop", args=[run.pk]))

    run.refresh_from_db()
    assert run.stop_asked_at is not None
    assert run.stopped_by is not None
    assert "Stopped by" in page.text
    assert "Stopping" in page.text


def test_what_failed_is_repeated_from_the_page(halden: Workspace, charge: Tool) -> None:
    first, second = a_lost_call(charge), a_lost_call(charge)
    run = ended(halden, first, second, results="happened error")

    page = signed_in(halden).post(reverse("run-again", args=[run.pk]), follow=True)

    again = Run.objects.get(again_of=run)
    assert [item.claim_id for item in again.items.all()] == [second]
    assert f'repeats <a href="{reverse("run", args=[run.pk])}">' in page.text


# Asking that has ended


def test_a_call_says_that_asking_has_ended_and_a_person_restarts_it(
    halden: Workspace, charge: Tool
) -> None:
    lost = a_lost_call(charge)
    AskingEnded.objects.create(
        claim_id=lost, workspace=halden, ended_at=queries.clock(), why="It was asked for 3 days."
    )
    client = signed_in(halden)

    page = client.get(reverse("call", args=[lost]))
    listed = client.get(reverse("runs"))
    after = client.post(reverse("call-ask-anew", args=[lost]), follow=True)

    assert "Asking has ended" in page.text
    assert "It was asked for 3 days." in page.text
    assert "Ask regularly again" in page.text
    assert reverse("call", args=[lost]) in listed.text
    assert "Asking has ended" not in after.text
    assert AskingEnded.objects.get().restarted_by is not None
    stranger = signed_in(a_workspace("elsewhere"), Role.ADMIN)
    assert stranger.post(reverse("call-ask-anew", args=[lost])).status_code == 404
    viewer = signed_in(halden, Role.VIEWER)
    assert viewer.post(reverse("call-ask-anew", args=[lost])).status_code == 403


# What is kept


def test_old_runs_are_forgotten_and_a_persons_later(halden: Workspace, charge: Tool) -> None:
    lost, now = a_lost_call(charge), queries.clock()
    kinds = (Run.Trigger.SCHEDULE, Run.Trigger.WEBHOOK, Run.Trigger.PERSON, Run.Trigger.BULK)
    for days in (6, 8, 91):
        for trigger in kinds:
            a_run(halden, lost, trigger=trigger, state="done", ended_at=now - timedelta(days=days))
    a_run(halden, lost, trigger=Run.Trigger.SCHEDULE)

    forgotten = keeping.forget_old(now)

    assert forgotten == 6
    assert Run.objects.filter(trigger__in=kinds[:2]).count() == 3
    assert Run.objects.filter(trigger__in=kinds[2:]).count() == 4
    assert RunItem.objects.count() == 7


def test_the_backlog_is_counted_once_an_hour_and_drawn(halden: Workspace, charge: Tool) -> None:
    a_lost_call(charge)
    a_workspace("elsewhere")
    keeping.sweep()
    a_lost_call(charge)
    keeping.sweep()
    now = queries.clock()
    assert dict(Backlog.objects.values_list("workspace__slug", "calls")) == {
        "halden": 1,
        "elsewhere": 0,
    }
    assert listing.backlog(halden.pk, now) is None, "one point is no line"
    hour = now.replace(minute=0, second=0, microsecond=0)
    Backlog.objects.create(workspace=halden, at=hour - timedelta(hours=1), calls=4)

    page = signed_in(halden).get(reverse("runs"))

    assert "4 at the beginning, 4 at most" in page.text
    assert page.context["spark"].line == "M0.0 2.0L1000.0 72.5"
