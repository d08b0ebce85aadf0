"""Laws of `safe_actions` over every situation that there can be, not only over those met so far."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.access import Ability, can
from effects.core.vocabulary import ClaimState, EffectClass, Outcome, Role, SightingWord
from effects.money import Money
from reconcile.action_names import ActionName
from reconcile.actions import Action, safe_actions
from reconcile.confirm import CHOSEN, REVIEWED, asking, confirmation
from reconcile.customer.kinds import Tell
from reconcile.second_person import DEFAULT_RULES, Team
from reconcile.situation import AttemptSeen, Evidence, Sibling, Situation, Strength
from reconcile.verdict import verdict
from tests.support.situations import NOW, OTHER_CLAIM, a_situation

A, S = ActionName, ClaimState
HOURS = st.integers(min_value=-72, max_value=72).map(lambda hours: timedelta(hours=hours))
NEAR = st.integers(min_value=-900, max_value=900).map(lambda seconds: timedelta(seconds=seconds))
SPANS = st.one_of(HOURS, NEAR)


@st.composite
def attempts(draw: st.DrawFn) -> tuple[AttemptSeen, ...]:
    """One to four, newest first, each older than the one after it."""
    many = draw(st.integers(min_value=1, max_value=4))
    found = []
    for fence in range(many, 0, -1):
        outcome = draw(st.sampled_from([None, *Outcome]))
        granted_at = NOW - timedelta(minutes=draw(st.integers(0, 30)) + 40 * (many - fence))
        found.append(
            AttemptSeen(
                fence=fence,
                granted_at=granted_at,
                outcome=outcome,
                ended_at=granted_at + timedelta(seconds=30) if outcome else None,
                http_status=draw(st.sampled_from([None, 402, 500])),
                decided=draw(st.booleans()),
                watched=draw(st.booleans()),
            )
        )
    return tuple(found)


@st.composite
def answers(draw: st.DrawFn, fence: int) -> tuple[Evidence, ...]:
    many = draw(st.integers(min_value=0, max_value=3))
    return tuple(
        Evidence(
            number=number,
            word=draw(st.sampled_from(list(SightingWord))),
            fence=draw(st.integers(1, fence)),
            at=NOW - timedelta(minutes=number),
            strength=draw(st.sampled_from(list(Strength))),
            counts=draw(st.booleans()),
            conditional=draw(st.booleans()),
            objects=draw(st.sampled_from([(), ("pi_1",), ("pi_1", "pi_2")])),
            rejected=draw(st.booleans()),
        )
        for number in range(many, 0, -1)
    )


@st.composite
def situations(draw: st.DrawFn, /, **fixed: Any) -> Situation:
    """Any claim in any state, whether or not the ledger could ever bring it there."""
    tried = draw(attempts())
    window = draw(st.one_of(st.none(), SPANS))
    changes: dict[str, Any] = {
        "state": draw(st.sampled_from(list(S))),
        "effect_class": draw(st.sampled_from([EffectClass.KEYED_WRITE, EffectClass.UNKEYED_WRITE])),
        "fence": len(tried),
        "budget": draw(st.integers(1, 5)),
        "fresh_key": draw(st.booleans()),
        "decision_pending": draw(st.booleans()),
        "attempts": tried,
        "lease_until": NOW + draw(SPANS),
        "window_until": None if window is None else NOW + window,
        "margin_seconds": draw(st.sampled_from([0, 140, 3600])),
        "attempt_seconds_max": draw(st.sampled_from([30, 600, 7200])),
        "can_look_up": draw(st.booleans()),
        "evidence": draw(answers(len(tried))),
        "siblings": draw(
            st.one_of(
                st.just(()),
                st.sampled_from(list(S)).map(
                    lambda state: (Sibling(claim_id=OTHER_CLAIM, state=state),)
                ),
            )
        ),
        "effects": draw(st.sampled_from([(), ("pi_1",), ("pi_1", "pi_2")])),
        "held_open": draw(st.integers(0, 2)),
        "money": draw(
            st.sampled_from([None, Money(amount=Decimal("149.00"), currency="EUR", places=2)])
        ),
        "amount_unreadable": draw(st.booleans()),
    }
    return a_situation(**(changes | fixed))


ROLES = st.sampled_from(list(Role))
TEAMS = st.builds(
    Team,
    rules=st.sampled_from([(), DEFAULT_RULES]),
    others=st.lists(ROLES, max_size=2).map(tuple),
)
EVERYTHING = settings(deadline=None, max_examples=120)


def actions_by_name(situation: Situation, role: Role, team: Team) -> dict[ActionName, Action]:
    return {one.name: one for one in safe_actions(situation, role=role, team=team)}


@EVERYTHING
@given(situations(), ROLES, TEAMS)
def test_every_action_has_exactly_one_answer_with_its_reason(
    situation: Situation, role: Role, team: Team
) -> None:
    found = safe_actions(situation, role=role, team=team)
    assert [one.name for one in found] == list(A)
    assert all(one.reason.endswith((".", ")")) for one in found), found
    assert found == safe_actions(situation, role=role, team=team)


@EVERYTHING
@given(situations(), ROLES, TEAMS)
def test_nobody_is_offered_what_their_role_may_neither_do_nor_ask_for(
    situation: Situation, role: Role, team: Team
) -> None:
    for one in safe_actions(situation, role=role, team=team):
        if one.offered:
            assert can(role, Ability(one.name)) or one.needs_second


@EVERYTHING
@given(
    situations(siblings=(Sibling(claim_id=OTHER_CLAIM, state=ClaimState.UNKNOWN),)),
    ROLES,
    TEAMS,
)
def test_beside_an_open_sibling_nothing_runs_again_but_by_the_guarded_new_key(
    situation: Situation, role: Role, team: Team
) -> None:
    found = actions_by_name(situation, role, team)
    for name in (A.RELEASE_SAME, A.NOT_HAPPENED):
        assert not found[name].offered
        assert not found[name].may_ask
    new = found[A.RELEASE_NEW]
    if new.offered:
        assert new.typed
        assert new.needs_second or new.alone


@EVERYTHING
@given(situations(), ROLES, TEAMS)
def test_a_release_with_the_same_key_is_offered_only_while_the_key_is_surely_honoured(
    situation: Situation, role: Role, team: Team
) -> None:
    if not actions_by_name(situation, role, team)[A.RELEASE_SAME].offered:
        return
    until = situation.safe_retry_until
    assert situation.keyed
    assert not situation.fresh_key
    assert until is not None
    assert until > situation.now + timedelta(seconds=situation.hold_seconds)
    assert situation.state in {S.UNKNOWN, S.NOT_EXECUTED}


@EVERYTHING
@given(situations(), ROLES, TEAMS)
def test_what_may_happen_twice_is_typed_and_is_never_one_persons_beside_others(
    situation: Situation, role: Role, team: Team
) -> None:
    found = actions_by_name(situation, role, team)
    risky = [found[A.RELEASE_NEW]]
    if not situation.strong_absence:
        risky.append(found[A.NOT_HAPPENED])
    for one in risky:
        if one.offered:
            assert one.typed
            assert bool(one.needs_second) is not one.alone
            assert one.alone is not team.anybody(one.approvers)


@EVERYTHING
@given(situations(decision_pending=True), ROLES, TEAMS)
def test_while_a_decision_is_held_nothing_is_offered_but_its_undo(
    situation: Situation, role: Role, team: Team
) -> None:
    assert not any(one.offered for one in safe_actions(situation, role=role, team=team))


@EVERYTHING
@given(situations(), ROLES, TEAMS)
def test_the_two_releases_are_never_offered_together(
    situation: Situation, role: Role, team: Team
) -> None:
    found = actions_by_name(situation, role, team)
    assert not (found[A.RELEASE_SAME].offered and found[A.RELEASE_NEW].offered)


@EVERYTHING
@given(situations())
def test_every_review_says_what_will_happen_what_will_not_and_how_it_is_undone(
    situation: Situation,
) -> None:
    for name in REVIEWED:
        for text in (confirmation(name, situation), asking(name, situation)):
            assert text.question.endswith("?")
            assert all((text.lead, text.will, text.will_not, text.undo, text.button))


@EVERYTHING
@given(situations())
def test_what_a_customer_is_told_never_says_more_than_the_state(situation: Situation) -> None:
    kind = verdict(situation).kind
    assert (
        kind
        in {
            S.IN_FLIGHT: {Tell.IN_FLIGHT},
            S.UNKNOWN: {Tell.UNKNOWN},
            S.COMPLETED: {Tell.COMPLETED, Tell.WATCHED, Tell.UNDONE},
            S.NOT_EXECUTED: {Tell.NOT_EXECUTED, Tell.NOT_EXECUTED_FOR_NOW},
            S.RELEASED: {Tell.RELEASED, Tell.RELEASED_NEW_KEY},
            S.CONFLICTED: {Tell.DUPLICATE, Tell.CONTRADICTION},
            S.CLOSED: {Tell.CLOSED},
        }[situation.state]
    )


@pytest.mark.parametrize(
    "name",
    [
        "ask",
        "happened",
        "not_happened",
        "release_same",
        "release_new",
        "lost",
        "close",
        "settle",
        "reopen",
        "snooze",
        "second_person",
    ],
)
def test_the_eleven_actions_are_all_there(name: str) -> None:
    assert ActionName(name).label
    assert (ActionName(name).verdict is not None) is (ActionName(name) in CHOSEN)
