"""Which groups the record yields, what is at stake in them, and what a new fact does to them."""

from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from effects.core.diagnosis import Constants
from effects.core.messages import ClaimAnswer
from effects.core.vocabulary import AnswerCode
from effects.models import Tool, Workspace
from reconcile.duplicates import constants, finding, listing, tasks
from reconcile.models import DuplicateGroup, FindingMark
from tests.support import desk
from tests.support.clock import FrozenClock

pytestmark = pytest.mark.django_db

CALL: dict[str, Any] = {
    "conversation": "talk",
    "turn_index": 1,
    "call_id": "call_" + "a" * 20,
    "response_id": "resp-1",
}
ARGUMENTS: dict[str, Any] = {
    "amount": 14900,
    "currency": "eur",
    "customer": "cus_1",
    "order": "8001",
}


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def clock(shop: Workspace) -> FrozenClock:
    return FrozenClock()


@pytest.fixture
def card(shop: Workspace, clock: FrozenClock) -> Tool:
    return desk.an_unkeyed_tool(shop)


def pay(tool: Tool, **more: Any) -> ClaimAnswer:
    said: dict[str, Any] = {"arguments": ARGUMENTS, "nonce": uuid4().hex}
    return desk.ask(tool, **(said | CALL | more))


def found(workspace: Workspace) -> list[DuplicateGroup]:
    finding.search(workspace.pk)
    return list(DuplicateGroup.objects.filter(workspace=workspace).order_by("pk"))


def test_calls_that_were_made_once_are_in_no_group(shop: Workspace, card: Tool) -> None:
    pay(card)
    desk.a_call(card)
    assert found(shop) == []


def test_a_call_that_is_asked_for_again_is_a_group_in_which_nothing_is_at_stake(
    shop: Workspace, card: Tool, clock: FrozenClock
) -> None:
    first = pay(card, worker="w-1", delivery_count=1)
    clock.advance(40)
    assert pay(card, worker="w-2", delivery_count=2).code is AnswerCode.IN_FLIGHT
    (group,) = found(shop)
    assert (group.rule, group.claim_ids) == ("same_call", [first.claim_id])
    assert (group.layers, group.certain) == (["queue_redelivery"], True)
    assert (group.operations, group.app_attempts, group.stopped) == (1, 2, 1)
    assert (group.possible, group.at_stake) == (1, None)


def test_a_second_call_that_ran_puts_its_amount_at_stake(
    shop: Workspace, card: Tool, clock: FrozenClock
) -> None:
    desk.complete(card, pay(card))
    clock.advance(540)
    again = pay(card, turn_index=5, call_id="call_" + "b" * 20, response_id="resp-2")
    assert again.code is AnswerCode.GRANTED
    (group,) = found(shop)
    assert (group.rule, len(group.claim_ids), group.possible) == ("same_thing", 2, 2)
    assert str(group.at_stake) == "14,900.00 EUR"
    assert group.layers == ["undetermined"]
    desk.complete(card, again)


def test_a_repeat_that_the_user_asked_for_is_meant(
    shop: Workspace, card: Tool, clock: FrozenClock
) -> None:
    desk.complete(card, pay(card))
    clock.advance(540)
    pay(card, turn_index=5, call_id="call_" + "b" * 20, response_id="r2", user_spoke=True)
    (group,) = found(shop)
    assert (group.layers, group.certain) == (["none"], True)


def test_a_repeat_of_the_model_that_was_held_is_found_with_the_call_that_holds_it(
    shop: Workspace, card: Tool, clock: FrozenClock
) -> None:
    desk.lose(card, pay(card))
    clock.advance(11)
    held = pay(card, turn_index=2, call_id="call_" + "c" * 20, response_id="resp-2", agent="b")
    assert held.code is AnswerCode.HELD
    (group,) = found(shop)
    assert (group.rule, group.layers, group.stopped) == ("same_thing", ["model_reemission"], 1)
    assert group.possible == 1


def test_the_same_customer_and_amount_within_ten_minutes_are_a_hint(
    shop: Workspace, card: Tool, clock: FrozenClock
) -> None:
    one = desk.a_call(card, arguments={"customer": "cus_9", "amount": 50})
    clock.advance(9 * 60)
    two = desk.a_call(card, arguments={"customer": "cus_9", "amount": 50})
    (group,) = found(shop)
    assert group.rule == "same_amount"
    assert set(group.claim_ids) == {one.claim_id, two.claim_id}
    clock.advance(11 * 60)
    desk.a_call(card, arguments={"customer": "cus_9", "amount": 50})
    assert [set(g.claim_ids) for g in found(shop)] == [{one.claim_id, two.claim_id}]


def test_another_amount_or_another_customer_is_no_hint(shop: Workspace, card: Tool) -> None:
    desk.a_call(card, arguments={"customer": "cus_9", "amount": 50})
    desk.a_call(card, arguments={"customer": "cus_9", "amount": 51})
    desk.a_call(card, arguments={"customer": "cus_8", "amount": 50})
    assert found(shop) == []


def test_a_search_goes_on_where_the_last_one_ended(
    shop: Workspace, card: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(5):
        desk.a_call(card)
    monkeypatch.setattr(finding, "SEARCHED_MAX", 2)
    searched = [finding.search(shop.pk) for _ in range(4)]
    assert [(one.searched, one.more) for one in searched] == [
        *((2, True), (2, True), (1, False)),
        (0, False),
    ]
    assert FindingMark.objects.get().workspace == shop


def test_a_settled_group_is_new_again_when_another_call_joins_it(
    shop: Workspace, card: Tool, clock: FrozenClock
) -> None:
    desk.complete(card, pay(card))
    clock.advance(540)
    desk.complete(card, pay(card, turn_index=5, call_id="call_" + "b" * 20, response_id="r2"))
    (group,) = found(shop)
    DuplicateGroup.objects.update(state="not_a_duplicate")
    assert [one.state for one in found(shop)] == ["not_a_duplicate"]
    pay(card, turn_index=9, call_id="call_" + "d" * 20, response_id="r3")
    (joined,) = found(shop)
    assert (joined.pk, joined.state, joined.version) == (group.pk, "new", group.version + 1)
    assert len(joined.claim_ids) == 3


def test_an_open_group_is_looked_at_again_after_a_while(
    shop: Workspace, card: Tool, clock: FrozenClock
) -> None:
    first = pay(card)
    pay(card)
    (group,) = found(shop)
    desk.complete(card, first)
    clock.advance(finding.REFRESH_SECONDS + 1)
    assert finding.search(shop.pk).refreshed == 1
    assert finding.search(shop.pk).refreshed == 0
    again = DuplicateGroup.objects.get(pk=group.pk)
    assert again.diagnosed_at == group.diagnosed_at + timedelta(seconds=301)


def test_other_figures_give_other_answers(shop: Workspace, card: Tool, clock: FrozenClock) -> None:
    pay(card)
    clock.advance(35)
    pay(card)
    (group,) = found(shop)
    assert group.layers == ["undetermined"]
    admin = desk.a_person(shop)
    constants.change(
        shop.pk, Constants(redelivery=()), user_id=admin.pk, reason="no queue", version=0
    )
    (group,) = found(shop)
    assert (group.layers, group.certain) == (["step_retry"], False)
    assert listing.confidence(group) == "Rests on the time between"


def test_figures_that_somebody_else_changed_meanwhile_are_not_overwritten(shop: Workspace) -> None:
    admin = desk.a_person(shop)
    constants.change(shop.pk, Constants(), user_id=admin.pk, reason="a", version=0)
    with pytest.raises(constants.CannotChange, match="meanwhile"):
        constants.change(shop.pk, Constants(), user_id=admin.pk, reason="b", version=0)


def test_a_workspace_that_cannot_be_searched_does_not_cost_the_others(
    shop: Workspace, card: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = desk.a_workspace("other")
    real, seen = finding.search, []

    def search(workspace_id: int) -> finding.Found:
        seen.append(workspace_id)
        if workspace_id == shop.pk:
            raise RuntimeError("broken")
        return real(workspace_id)

    monkeypatch.setattr(finding, "search", search)
    tasks.search()
    assert seen == [shop.pk, other.pk]


def test_another_workspace_has_no_part_in_it(shop: Workspace, card: Tool) -> None:
    other = desk.a_workspace("other")
    theirs = desk.an_unkeyed_tool(other)
    pay(card)
    pay(theirs)
    assert found(shop) == []
    assert found(other) == []
    assert finding.alike(other.pk, UUID(int=7)) == []


def test_what_was_made_just_now_is_searched_a_little_later(
    shop: Workspace, card: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay(card)
    pay(card)
    monkeypatch.setattr(finding, "LAG_SECONDS", 5.0)
    assert finding.search(shop.pk).searched == 0
    monkeypatch.setattr(finding, "LAG_SECONDS", -1.0)
    assert finding.search(shop.pk).searched == 1
