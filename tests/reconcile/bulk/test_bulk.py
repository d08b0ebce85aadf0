"""Many calls at once: frozen when they were selected, each judged by itself, each taken back."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from effects.core.vocabulary import ClaimState, Role, SightingWord
from effects.models import Membership, Tool, Workspace
from ledger.models import Decision
from reconcile import queries, tasks
from reconcile.action_names import ActionName
from reconcile.assign import assignments
from reconcile.bulk import acts, running
from reconcile.bulk.acts import BulkAction, Outcome
from reconcile.decide import undo
from reconcile.models import Bulk, BulkItem, Run, SecondPersonRule, Snooze
from reconcile.views.filters import Filters
from tests.reconcile.bulk.setting import outcomes, run, select, start
from tests.support import desk

pytestmark = pytest.mark.django_db


def state(tool: Tool, claim_id: UUID) -> ClaimState:
    return queries.call(tool.workspace_id, claim_id).situation.state


@pytest.mark.case("U03")
def test_of_three_calls_of_which_one_changed_two_are_released_and_one_is_skipped_with_its_reason(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    desk.see(charge, three[1], SightingWord.PENDING)
    found = run(bulk)
    assert [found[one][0] for one in three] == [Outcome.DONE, Outcome.CHANGED, Outcome.DONE]
    assert (
        found[three[1]][1] == "Changed since it was selected: 1 new event since it was looked at."
    )
    assert [made.claim_id for made in Decision.objects.order_by("pk")] == [three[0], three[2]]
    assert bulk.ended_at is not None


@pytest.mark.case("U03")
def test_a_call_that_completed_after_it_was_selected_is_never_released(
    halden: Workspace, charge: Tool, lea: User
) -> None:
    answer = desk.a_call(charge)
    claim_id = desk.lose(charge, answer)
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, [claim_id]))
    desk.complete(charge, answer)
    assert run(bulk)[claim_id][0] == Outcome.CHANGED
    assert state(charge, claim_id) is ClaimState.COMPLETED
    assert not Decision.objects.exists()


@pytest.mark.case("U15")
def test_a_bulk_release_skips_the_call_whose_worker_is_alive(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    alive = desk.claim_id_of(
        desk.a_call(desk.a_keyed_tool(halden, name="soon", window_seconds=1800))
    )
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, [*three, alive]))
    found = run(bulk)
    assert found[alive] == (
        Outcome.REFUSED,
        "A worker holds this call and may still report how it ended.",
    )
    assert [found[one][0] for one in three] == [Outcome.DONE] * 3
    assert state(charge, alive) is ClaimState.IN_FLIGHT


@pytest.mark.case("U14")
def test_what_was_set_for_one_act_is_not_read_for_another(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    bulk = select(halden, lea, BulkAction.SNOOZE, three[:1])
    start(bulk, options={"to": lea.pk, "scope": "view", "related": True})
    run(bulk)
    assert bulk.options == {}
    assert assignments.current(halden.pk, three[0]) is None
    assert list(Snooze.objects.values_list("claim_id", flat=True)) == three[:1]


@pytest.mark.case("U14")
def test_without_the_word_for_the_whole_view_only_what_is_named_is_taken(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    named = select(halden, lea, BulkAction.ASK, three[:1])
    assert [item.claim_id for item in named.items.all()] == three[:1]
    whole = select(halden, lea, BulkAction.ASK, whole_view=True, named=())
    assert {item.claim_id for item in whole.items.all()} == set(three)


def test_a_frozen_set_takes_in_nothing_that_arrives_later(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    bulk = select(halden, lea, BulkAction.SNOOZE, whole_view=True, named=())
    later = desk.a_lost_call(charge)
    found = run(start(bulk))
    assert set(found) == set(three)
    assert later not in Snooze.objects.values_list("claim_id", flat=True)


def test_a_whole_view_is_what_its_filters_match_beyond_one_page(
    halden: Workspace, charge: Tool, lea: User
) -> None:
    gift = desk.an_unkeyed_tool(halden)
    gifts = {desk.a_lost_call(gift) for _ in range(2)}
    desk.a_lost_call(charge)
    bulk = select(halden, lea, BulkAction.SNOOZE, whole_view=True, filters=Filters(tool=gift.name))
    assert {item.claim_id for item in bulk.items.all()} == gifts


@pytest.mark.case("U02", "P20")
def test_the_same_selection_sent_twice_is_one_bulk_and_started_twice_runs_once(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    first = select(halden, lea, BulkAction.RELEASE_SAME, three, form=b"one form")
    second = select(halden, lea, BulkAction.RELEASE_SAME, three, form=b"one form")
    assert first == second
    start(first)
    assert not running.start(second, reason="Again.", typed="3")
    run(first)
    run(first)
    assert Decision.objects.count() == 3


@pytest.mark.case("P20")
def test_work_that_broke_off_after_a_decision_finds_it_and_makes_no_second_one(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    item = bulk.items.get(number=1)
    assert acts.perform(bulk, item).outcome == Outcome.DONE  # and its worker dies here
    found = run(bulk)
    assert {outcome for outcome, _ in found.values()} == {Outcome.DONE}
    assert Decision.objects.filter(claim_id=item.claim_id).count() == 1


@pytest.mark.case("P20")
def test_of_two_people_who_release_the_same_calls_the_second_is_told_who_was_first(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    mo = desk.a_person(halden, Role.LEAD, "mo")
    his, hers = (select(halden, one, BulkAction.RELEASE_SAME, three) for one in (mo, lea))
    run(start(hers))
    said = {said for _, said in run(start(his)).values()}
    assert all("lea decided “Release with the same key” at" in one for one in said)
    assert Decision.objects.count() == 3


def test_a_decision_of_a_bulk_is_one_like_any_other_with_what_it_rests_on(
    halden: Workspace, charge: Tool, lea: User
) -> None:
    claim_id = desk.a_lost_call(charge)
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    seen = queries.call(halden.pk, claim_id)
    run(start(select(halden, lea, BulkAction.RELEASE_SAME, [claim_id])))
    (made,) = Decision.objects.all()
    assert (made.decided_by, made.reason) == (lea, "Asked the bank.")
    assert bytes(made.screen_hash or b"") == queries.screen_hash(seen.situation)
    assert made.evidence == [item.number for item in seen.situation.evidence]
    assert made.effective_at - made.decided_at == timedelta(seconds=60)


def test_where_nobody_answered_the_reason_is_the_note_that_it_rests_on(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    run(start(select(halden, lea, BulkAction.RELEASE_SAME, three[:1])))
    call = queries.call(halden.pk, three[0])
    (note,) = call.notes
    assert call.decisions[0].evidence == [note.seq]


def test_what_a_second_person_guards_is_left_to_its_own_page(
    halden: Workspace, charge: Tool, lea: User
) -> None:
    desk.a_person(halden, Role.LEAD, "mo")
    SecondPersonRule.objects.create(
        workspace=halden,
        action=str(ActionName.RELEASE_SAME),
        amount_from=500,
        approver_role=Role.LEAD,
        made_at=halden.created_at,
        reason="Large ones.",
    )
    small, large = desk.a_lost_call(charge), desk.a_lost_call(charge, arguments={"amount": 90000})
    found = run(start(select(halden, lea, BulkAction.RELEASE_SAME, [small, large])))
    assert found[small][0] == Outcome.DONE
    assert found[large][0] == Outcome.REFUSED
    assert "Decide it on its own page" in found[large][1]


# Taking back, stopping


def test_a_whole_bulk_is_taken_back_within_its_minute(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    run(bulk)
    assert running.undo(bulk, user_id=lea.pk) == (3, 0)
    assert outcomes(bulk) == [Outcome.UNDONE] * 3
    desk.move_clock(timedelta(seconds=61))
    assert {state(charge, one) for one in three} == {ClaimState.UNKNOWN}


def test_one_call_of_a_bulk_is_taken_back_and_the_others_stand(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    run(bulk)
    item = bulk.items.get(claim_id=three[1])
    assert running.undo(bulk, user_id=lea.pk, item_id=item.pk) == (1, 0)
    desk.move_clock(timedelta(seconds=61))
    assert [state(charge, one) for one in three] == [
        ClaimState.RELEASED,
        ClaimState.UNKNOWN,
        ClaimState.RELEASED,
    ]


def test_taking_back_too_late_says_how_many_stand(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    run(bulk)
    made = bulk.items.get(number=2)
    undo(halden.pk, made.claim_id, made.decision_id or 0, lea.pk)
    desk.move_clock(timedelta(seconds=61))
    assert running.undo(bulk, user_id=lea.pk) == (0, 3)
    assert state(charge, three[0]) is ClaimState.RELEASED


def test_what_is_stopped_begins_nothing_more(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    assert running.run(bulk.pk, seconds=-1)  # its time is over before the first call
    assert running.stop(bulk, user_id=lea.pk)
    assert not running.stop(bulk, user_id=lea.pk)
    run(bulk)
    assert outcomes(bulk) == [Outcome.STOPPED] * 3
    assert not Decision.objects.exists()


def test_a_call_on_which_the_desk_fails_holds_up_no_other(
    halden: Workspace, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = acts.perform

    def fails_once(bulk: Bulk, item: BulkItem) -> acts.Result:
        if item.claim_id == three[0]:
            raise RuntimeError("out of luck")
        return real(bulk, item)

    monkeypatch.setattr(running, "perform", fails_once)
    found = run(start(select(halden, lea, BulkAction.SNOOZE, three)))
    assert found[three[0]][0] == Outcome.REFUSED
    assert [found[one][0] for one in three[1:]] == [Outcome.DONE] * 2


# The acts that decide nothing


def test_asking_about_many_is_one_run_of_those_that_can_be_asked_about(
    halden: Workspace, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[int] = []
    monkeypatch.setattr(tasks, "start_now", begun.append)
    gift = desk.a_lost_call(desk.an_unkeyed_tool(halden))
    bulk = start(select(halden, lea, BulkAction.ASK, [*three, gift]), reason="")
    found = run(bulk)
    (asked,) = Run.objects.all()
    assert begun == [asked.pk]
    assert (asked.trigger, asked.started_by) == ("bulk", lea)
    assert set(asked.items.values_list("claim_id", flat=True)) == set(three)
    assert found[three[0]] == (Outcome.DONE, f"Asked about in run {asked.pk}.")
    assert found[gift][0] == Outcome.REFUSED
    assert bulk.options == {"run": asked.pk}


def test_what_is_stopped_before_the_question_asks_nobody(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.ASK, three), reason="")
    running.stop(bulk, user_id=lea.pk)
    run(bulk)
    assert outcomes(bulk) == [Outcome.STOPPED] * 3
    assert not Run.objects.exists()


def test_snoozing_and_assigning_many(halden: Workspace, lea: User, three: list[UUID]) -> None:
    ana = desk.a_person(halden, Role.SUPPORT, "ana")
    run(start(select(halden, lea, BulkAction.ASSIGN, three), options={"to": ana.pk}))
    assert {one.assigned_to for one in assignments.current_of(halden.pk, three).values()} == {ana}
    run(start(select(halden, lea, BulkAction.SNOOZE, three)))
    assert Snooze.objects.count() == 3


def test_a_tool_without_a_look_up_is_not_asked_about_and_says_why(
    halden: Workspace, lea: User
) -> None:
    claim_id = desk.a_lost_call(desk.an_unkeyed_tool(halden))
    found = run(start(select(halden, lea, BulkAction.ASK, [claim_id]), reason=""))
    assert found[claim_id][0] == Outcome.REFUSED
    assert "nobody can be asked" in found[claim_id][1]


def test_an_author_who_has_left_or_lost_the_role_does_nothing_any_more(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, three))
    Membership.objects.filter(user=lea).update(role=Role.SUPPORT)
    assert "Needs the role Payments lead or Admin" in run(bulk)[three[0]][1]
    assert not Decision.objects.exists()
