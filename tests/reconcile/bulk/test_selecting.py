"""What can be selected, resolved in one go, and started; and what is said where it cannot."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest
from django.contrib.auth.models import User

from effects.core.vocabulary import ClaimState, SightingWord
from effects.models import Tool, Workspace
from ledger import append
from ledger.models import Claim, Decision
from reconcile.bulk import running, selection
from reconcile.bulk.acts import BulkAction, Outcome
from reconcile.bulk.selection import Unusable
from reconcile.views.rows import Seen
from tests.reconcile.bulk.setting import run, select, start
from tests.support import desk

pytestmark = pytest.mark.django_db


# Resolving


def test_calls_with_strong_agreeing_evidence_are_resolved_as_what_it_shows(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    for number, claim_id in enumerate(three):
        desk.see(charge, claim_id, SightingWord.FOUND, objects=(f"pi_{number}",))
    run(start(select(halden, lea, BulkAction.HAPPENED, three)))
    assert [made.object for made in Decision.objects.order_by("pk")] == ["pi_0", "pi_1", "pi_2"]


def test_one_call_whose_evidence_does_not_agree_keeps_all_from_being_resolved_in_one_go(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    for claim_id in three[:2]:
        desk.see(charge, claim_id, SightingWord.ABSENT)
    with pytest.raises(Unusable, match="1 of 3 have none"):
        select(halden, lea, BulkAction.NOT_HAPPENED, three)
    assert select(halden, lea, BulkAction.NOT_HAPPENED, three[:2]).items.count() == 2


def test_calls_of_two_tools_are_not_resolved_in_one_go(
    halden: Workspace, charge: Tool, lea: User, three: list[UUID]
) -> None:
    other = desk.a_keyed_tool(halden, name="refund")
    lost = desk.a_lost_call(other)
    for tool, claim_id in ((charge, three[0]), (other, lost)):
        desk.see(tool, claim_id, SightingWord.ABSENT)
    with pytest.raises(Unusable, match="of several: charge_card, refund"):
        select(halden, lea, BulkAction.NOT_HAPPENED, [three[0], lost])


# Limits and selections


def test_a_bulk_says_how_many_calls_it_takes(
    halden: Workspace, lea: User, three: list[UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "ITEMS_MAX", 2)
    with pytest.raises(Unusable, match="at most 2 calls in one go"):
        select(halden, lea, BulkAction.SNOOZE, three)
    with pytest.raises(Unusable, match="at most 2 calls in one go"):
        select(halden, lea, BulkAction.SNOOZE, whole_view=True)


def test_nothing_selected_is_said_and_makes_no_bulk(halden: Workspace, lea: User) -> None:
    with pytest.raises(Unusable, match="No call is selected"):
        select(halden, lea, BulkAction.SNOOZE)


def test_a_selection_is_good_for_who_was_shown_it(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    bulk = select(halden, lea, BulkAction.SNOOZE, three[:1])
    claim = Claim.objects.get(pk=three[0])
    assert bulk.items.get().seen_version == claim.version
    mine = selection.word_for(
        Seen(claim_id=claim.pk, version=claim.version, state=ClaimState.UNKNOWN), lea.pk
    )
    with pytest.raises(Unusable, match="somebody else"):
        selection.read_words([mine], lea.pk + 1)
    with pytest.raises(Unusable, match="not made by this page"):
        selection.read_words([mine.replace(".unknown.", ".released.")], lea.pk)


def test_another_workspaces_call_is_in_no_bulk(
    halden: Workspace, lea: User, three: list[UUID]
) -> None:
    foreign = desk.a_lost_call(desk.a_keyed_tool(desk.a_workspace("other")))
    seen = Seen(claim_id=foreign, version=2, state=ClaimState.UNKNOWN)
    with pytest.raises(Unusable, match="belongs to this workspace"):
        select(halden, lea, BulkAction.SNOOZE, named=[seen])


@pytest.mark.parametrize(
    ("action", "changes", "fields"),
    [
        (BulkAction.RELEASE_SAME, {"reason": ""}, {"reason"}),
        (BulkAction.RELEASE_SAME, {"typed": "4"}, {"typed"}),
        (BulkAction.RELEASE_SAME, {"reason": "x" * 1001}, {"reason"}),
        (BulkAction.ASSIGN, {"options": {"to": 0}}, {"to"}),
    ],
)
def test_a_bulk_starts_only_once_it_is_confirmed_in_full(
    halden: Workspace,
    lea: User,
    three: list[UUID],
    action: BulkAction,
    changes: dict[str, str],
    fields: set[str],
) -> None:
    bulk = select(halden, lea, action, three)
    with pytest.raises(running.NotStarted) as faulty:
        start(bulk, **changes)
    assert set(faulty.value.errors) == fields
    assert not running.unfinished()


def test_the_clock_alone_is_no_change(halden: Workspace, charge: Tool, lea: User) -> None:
    claim_id = desk.claim_id_of(desk.a_call(charge))
    desk.move_clock(timedelta(seconds=120))
    bulk = start(select(halden, lea, BulkAction.RELEASE_SAME, [claim_id]))
    append.sweep(10)  # the lease that the list showed as over is written down now
    assert run(bulk)[claim_id][0] == Outcome.DONE
