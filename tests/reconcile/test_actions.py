"""What a person may do about a call, and why not."""

from datetime import timedelta
from decimal import Decimal

import pytest

from effects.access import ROLE_WORDS, Ability, roles_with
from effects.core.vocabulary import ClaimState, EffectClass, Outcome, Role, SightingWord
from effects.money import Money
from reconcile.action_rules import snooze_until
from reconcile.actions import Action, ActionName, find, safe_actions
from reconcile.second_person import Team
from reconcile.situation import AttemptSeen, Situation
from tests.support.situations import (
    FOUND,
    LOST_ANSWER,
    NOW,
    OTHER_CLAIM,
    SENT_AT,
    SIBLING,
    STRONG_ABSENCE,
    WEAK_ABSENCE,
    a_situation,
    evidence,
    in_flight,
)

A, S = ActionName, ClaimState
TWO = Team(others=(Role.LEAD,))  # somebody else could approve
ONE = Team()
MONEY = Money(amount=Decimal("149.00"), currency="EUR")
UNKEYED = {"effect_class": EffectClass.UNKEYED_WRITE, "window_until": None}
MARGIN = timedelta(seconds=140)
OVERDUE = in_flight(
    attempts=(AttemptSeen(fence=1, granted_at=NOW - timedelta(seconds=700)),),
    lease_seconds=900,
    lease_until=NOW + timedelta(seconds=200),
)


ASIDE = {A.SNOOZE, A.SECOND_PERSON}  # asked about in tables of their own


def offered(situation: Situation, role: Role = Role.SUPPORT, team: Team = TWO) -> set[ActionName]:
    actions = safe_actions(situation, role=role, team=team)
    return {action.name for action in actions if action.offered} - ASIDE


def act(
    situation: Situation, name: ActionName, role: Role = Role.SUPPORT, team: Team = TWO
) -> Action:
    return find(safe_actions(situation, role=role, team=team), name)


def reason(situation: Situation, name: ActionName, role: Role = Role.SUPPORT) -> str:
    return act(situation, name, role).reason


@pytest.mark.parametrize(
    ("situation", "expected"),
    [
        pytest.param(
            a_situation(),
            {A.ASK, A.HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="an unknown outcome with an open window",
        ),
        pytest.param(
            a_situation(evidence=(STRONG_ABSENCE,)),
            {A.ASK, A.HAPPENED, A.NOT_HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="strong absence also offers: it did not happen",
        ),
        pytest.param(
            a_situation(evidence=(WEAK_ABSENCE,)),
            {A.ASK, A.HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="a weak absence does not",
        ),
        pytest.param(
            a_situation(fence=2, evidence=(STRONG_ABSENCE,)),
            {A.ASK, A.HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="an absence from before the newest attempt does not",
        ),
        pytest.param(
            a_situation(evidence=(evidence(SightingWord.ABSENT, rejected=True),)),
            {A.ASK, A.HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="an absence that a reopening rejected does not",
        ),
        pytest.param(
            a_situation(evidence=(FOUND, STRONG_ABSENCE)),
            {A.ASK, A.HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="an answer that shows the effect outweighs an absence",
        ),
        pytest.param(
            a_situation(can_look_up=False),
            {A.HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="nobody to ask",
        ),
        pytest.param(
            a_situation(**UNKEYED),
            {A.ASK, A.HAPPENED, A.NOT_HAPPENED, A.RELEASE_NEW, A.CLOSE},
            id="no key: what lets it run again is proposed to a second person",
        ),
        pytest.param(
            a_situation(window_until=None),
            {A.ASK, A.HAPPENED, A.NOT_HAPPENED, A.RELEASE_NEW, A.CLOSE},
            id="a window that is not published is none",
        ),
        pytest.param(
            a_situation(fresh_key=True),
            {A.ASK, A.HAPPENED, A.NOT_HAPPENED, A.RELEASE_NEW, A.CLOSE},
            id="a burnt key: a new one, with a second person",
        ),
        pytest.param(
            a_situation(**UNKEYED, siblings=(SIBLING,)),
            {A.ASK, A.HAPPENED, A.RELEASE_NEW, A.CLOSE},
            id="beside a sibling only the guarded release is left",
        ),
        pytest.param(
            a_situation(**UNKEYED, evidence=(FOUND,)),
            {A.ASK, A.HAPPENED, A.CLOSE},
            id="what the provider shows is not run again",
        ),
        pytest.param(
            a_situation(siblings=(SIBLING,), evidence=(STRONG_ABSENCE,)),
            {A.ASK, A.HAPPENED, A.CLOSE},
            id="a sibling stands in the way of everything that lets the call run again",
        ),
        pytest.param(
            a_situation(window_until=NOW + MARGIN + timedelta(seconds=61)),
            {A.ASK, A.HAPPENED, A.RELEASE_SAME, A.CLOSE},
            id="near the deadline the hold is waived",
        ),
        pytest.param(
            a_situation(window_until=NOW + MARGIN),
            {A.ASK, A.HAPPENED, A.NOT_HAPPENED, A.RELEASE_NEW, A.CLOSE},
            id="the last instant of the window is too late",
        ),
        pytest.param(
            a_situation(window_until=NOW - timedelta(hours=1)),
            {A.ASK, A.HAPPENED, A.NOT_HAPPENED, A.RELEASE_NEW, A.CLOSE},
            id="a closed window: a new key, with a second person",
        ),
        pytest.param(
            a_situation(decision_pending=True), set(), id="a held decision leaves only its undo"
        ),
        pytest.param(in_flight(), {A.ASK, A.CLOSE}, id="a living worker is not overtaken"),
        pytest.param(OVERDUE, {A.ASK, A.LOST, A.CLOSE}, id="an attempt older than the tool allows"),
        pytest.param(
            a_situation(state=S.NOT_EXECUTED), {A.ASK, A.CLOSE}, id="did not happen, budget left"
        ),
        pytest.param(
            a_situation(state=S.NOT_EXECUTED, fence=3),
            {A.ASK, A.RELEASE_SAME, A.CLOSE},
            id="did not happen, attempts used up",
        ),
        pytest.param(a_situation(state=S.RELEASED), {A.ASK, A.CLOSE}, id="released"),
        pytest.param(a_situation(state=S.COMPLETED), {A.ASK}, id="happened"),
        pytest.param(a_situation(state=S.CONFLICTED), {A.ASK}, id="in conflict"),
        pytest.param(a_situation(state=S.CLOSED), {A.ASK}, id="stopped"),
    ],
)
def test_support_is_offered_what_is_safe_and_nothing_else(situation, expected):
    assert offered(situation) == expected


@pytest.mark.parametrize("state", S)
@pytest.mark.parametrize("effect_class", [EffectClass.KEYED_WRITE, EffectClass.UNKEYED_WRITE])
@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("pending", [False, True])
@pytest.mark.parametrize("team", [ONE, TWO], ids=["one person", "two people"])
def test_every_action_is_answered_for_in_one_order_with_a_reason(
    state, effect_class, role, pending, team
):
    situation = a_situation(state=state, effect_class=effect_class, decision_pending=pending)
    actions = safe_actions(situation, role=role, team=team)
    assert [action.name for action in actions] == list(ActionName)
    for action in actions:
        assert action.reason.endswith("."), action


@pytest.mark.parametrize("state", S)
def test_a_viewer_is_shown_every_action_and_offered_none(state):
    assert offered(a_situation(state=state, evidence=(STRONG_ABSENCE,)), Role.VIEWER) == set()
    words = reason(a_situation(), A.HAPPENED, Role.VIEWER)
    assert words == "Needs the role Support, Payments lead or Admin."


@pytest.mark.parametrize("name", [A.HAPPENED, A.RELEASE_SAME, A.CLOSE, A.ASK])
def test_exactly_the_roles_with_the_ability_are_offered_an_action(name):
    roles = {role for role in ROLE_WORDS if name in offered(a_situation(), role)}
    assert roles == set(roles_with(Ability(name)))


@pytest.mark.parametrize(
    ("situation", "name", "part"),
    [
        pytest.param(a_situation(), A.NOT_HAPPENED, "no strong absence", id="needs absence"),
        pytest.param(
            a_situation(**UNKEYED), A.NOT_HAPPENED, "same act as a release with a new key", id="two"
        ),
        pytest.param(a_situation(), A.RELEASE_NEW, "until 30 Nov 20:37 UTC", id="key still holds"),
        pytest.param(
            a_situation(**UNKEYED), A.RELEASE_NEW, "could make the effect happen twice", id="why"
        ),
        pytest.param(a_situation(**UNKEYED), A.RELEASE_SAME, "sends no key", id="no key"),
        pytest.param(a_situation(window_until=None), A.RELEASE_SAME, "not published", id="unpub"),
        pytest.param(a_situation(fresh_key=True), A.RELEASE_SAME, "stored a refusal", id="burnt"),
        pytest.param(in_flight(), A.RELEASE_SAME, "may still report", id="worker alive"),
        pytest.param(in_flight(), A.LOST, "may take 600 s", id="not lost yet"),
        pytest.param(a_situation(), A.LOST, "No worker holds", id="nobody to declare lost"),
        pytest.param(
            a_situation(attempts=(AttemptSeen(fence=1, granted_at=SENT_AT, http_status=500),)),
            A.RELEASE_SAME,
            "gets that error again",
            id="a stored error is said beforehand",
        ),
        pytest.param(
            a_situation(state=S.NOT_EXECUTED), A.RELEASE_SAME, "Needs no release", id="granted"
        ),
        pytest.param(
            a_situation(decision_pending=True), A.ASK, "would cancel the decision", id="in the hold"
        ),
        pytest.param(
            a_situation(window_until=NOW + timedelta(minutes=34)),
            A.SNOOZE,
            "Ends 30 m before the window closes at the latest, and that is 4 m away.",
            id="no rest near the deadline",
        ),
        pytest.param(
            a_situation(window_until=NOW + timedelta(minutes=20)),
            A.SNOOZE,
            "and that is past",
            id="no rest after the last moment for it",
        ),
        pytest.param(
            a_situation(state=S.CLOSED), A.SNOOZE, "Nobody waits", id="nothing to put off"
        ),
        pytest.param(a_situation(), A.ALLOW, "holds no request back", id="nothing is held back"),
        pytest.param(a_situation(), A.SETTLE, "not in conflict", id="no conflict"),
        pytest.param(
            a_situation(state=S.CONFLICTED, effects=("pi_1",)),
            A.SETTLE,
            "reopened, not settled",
            id="a contradiction is reopened",
        ),
        pytest.param(
            a_situation(
                state=S.COMPLETED,
                attempts=(AttemptSeen(fence=2, granted_at=NOW), LOST_ANSWER),
                lease_until=NOW + timedelta(seconds=90),
            ),
            A.REOPEN,
            "still running",
            id="what still runs may say how it ended",
        ),
    ],
)
def test_a_reason_says_what_stands_in_the_way(situation, name, part):
    assert part in reason(situation, name)


def test_a_sibling_that_stands_in_the_way_is_linked():
    action = act(a_situation(siblings=(SIBLING,)), A.RELEASE_SAME, Role.LEAD)
    assert action.sibling == OTHER_CLAIM
    assert "Another call for the same thing is unknown." in action.reason


@pytest.mark.case("U15")
def test_a_worker_that_was_heard_of_just_now_is_declared_lost_by_two_people_only():
    heard = in_flight(
        attempts=(AttemptSeen(fence=1, granted_at=NOW - timedelta(seconds=700)),),
        lease_seconds=90,
        lease_until=NOW + timedelta(seconds=80),
    )
    assert "sign of life 10 s ago" in reason(heard, A.LOST)
    assert act(heard, A.LOST).needs_second
    assert act(heard, A.LOST, Role.LEAD, ONE).alone
    assert A.LOST not in offered(heard, Role.ENGINEER)


@pytest.mark.parametrize(
    ("left_seconds", "held_seconds"),
    [
        pytest.param(3600, 60, id="an hour left"),
        pytest.param(300, 60, id="five minutes left"),
        pytest.param(299, 0, id="less than five minutes left"),
        pytest.param(-1, 60, id="a deadline that has passed is none"),
    ],
)
def test_a_decision_is_held_for_a_minute_unless_the_deadline_is_near(left_seconds, held_seconds):
    window_until = NOW + MARGIN + timedelta(seconds=left_seconds)
    assert a_situation(window_until=window_until).hold_seconds == held_seconds


@pytest.mark.parametrize(
    ("seen", "note", "provider_object"),
    [
        pytest.param((FOUND,), False, False, id="the provider shows it"),
        pytest.param((), True, False, id="nobody was asked"),
        pytest.param((WEAK_ABSENCE,), True, False, id="no answer shows it"),
        pytest.param((STRONG_ABSENCE,), True, True, id="against the evidence"),
    ],
)
def test_saying_that_it_happened_needs_more_the_less_the_evidence_shows(
    seen, note, provider_object
):
    action = act(a_situation(evidence=seen), A.HAPPENED)
    assert (action.note_required, action.object_required) == (note, provider_object)


def test_a_refusal_seen_in_an_older_attempt_does_not_burn_the_key_here():
    refused = AttemptSeen(fence=2, granted_at=NOW, outcome=Outcome.REFUSED, http_status=403)
    situation = a_situation(fence=2, attempts=(refused, LOST_ANSWER))
    assert A.RELEASE_SAME in offered(situation)


CONFLICT = a_situation(state=S.CONFLICTED, effects=("pi_1", "pi_2"))


@pytest.mark.parametrize(
    ("situation", "name"),
    [
        pytest.param(CONFLICT, A.SETTLE, id="a conflict"),
        pytest.param(a_situation(state=S.CONFLICTED), A.REOPEN, id="a contradiction"),
        pytest.param(a_situation(state=S.COMPLETED), A.REOPEN, id="happened"),
        pytest.param(a_situation(state=S.NOT_EXECUTED), A.REOPEN, id="did not happen"),
        pytest.param(a_situation(state=S.CLOSED), A.REOPEN, id="stopped"),
        pytest.param(a_situation(held_open=1), A.ALLOW, id="a held request"),
    ],
)
def test_a_lead_decides_what_support_can_only_ask_for(situation, name):
    assert name in offered(situation, Role.LEAD)
    mine = act(situation, name, Role.SUPPORT)
    assert (mine.offered, mine.may_ask) == (False, True)
    assert mine.reason == "Needs the role Payments lead or Admin."


@pytest.mark.parametrize(
    ("role", "team", "expected"),
    [
        pytest.param(Role.SUPPORT, TWO, (True, True, False), id="support proposes to a lead"),
        pytest.param(Role.LEAD, TWO, (True, True, False), id="a lead needs another one"),
        pytest.param(Role.ADMIN, TWO, (True, True, False), id="an admin needs another one"),
        pytest.param(Role.LEAD, ONE, (True, False, True), id="the only one answers for it alone"),
        pytest.param(Role.SUPPORT, ONE, (False, False, False), id="support alone does not"),
        pytest.param(
            Role.LEAD,
            Team(others=(Role.SUPPORT, Role.ENGINEER, Role.VIEWER)),
            (True, False, True),
            id="people who may not approve are no second person",
        ),
        pytest.param(Role.ENGINEER, TWO, (False, True, False), id="an engineer decides nothing"),
    ],
)
def test_what_can_happen_twice_needs_two_people_or_somebody_who_has_nobody(role, team, expected):
    for name in (A.RELEASE_NEW, A.NOT_HAPPENED):
        found = act(a_situation(**UNKEYED, money=MONEY), name, role, team)
        assert (found.offered, bool(found.needs_second), found.alone) == expected, name
        if found.offered:
            assert found.typed == "149.00"


def test_without_an_amount_the_end_of_the_calls_id_is_typed():
    found = act(a_situation(**UNKEYED), A.RELEASE_NEW)
    assert found.typed == str(a_situation().claim_id)[-8:]


def test_only_a_weak_it_did_not_happen_has_the_guards_of_a_new_key():
    strong = act(a_situation(evidence=(STRONG_ABSENCE,)), A.NOT_HAPPENED)
    assert (strong.offered, strong.needs_second, strong.typed) == (True, "", "")


@pytest.mark.parametrize(
    ("window_until", "hours"),
    [
        pytest.param(None, 24, id="no window"),
        pytest.param(NOW - timedelta(hours=1), 24, id="a closed window"),
        pytest.param(NOW + timedelta(hours=3), 2.5, id="half an hour before the window closes"),
        pytest.param(NOW + timedelta(hours=30), 24, id="a day at most"),
    ],
)
def test_a_call_is_snoozed_a_day_or_until_half_an_hour_before_its_window(window_until, hours):
    situation = a_situation(window_until=window_until)
    assert snooze_until(situation) == NOW + timedelta(hours=hours)
    assert act(situation, A.SNOOZE).offered


def test_a_second_person_can_be_asked_where_somebody_else_could_approve():
    assert act(a_situation(), A.SECOND_PERSON).offered
    assert not act(a_situation(), A.SECOND_PERSON, Role.SUPPORT, ONE).offered
    assert not act(a_situation(), A.SECOND_PERSON, Role.ENGINEER).offered
