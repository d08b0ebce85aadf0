"""Which decisions need two people: the rules of a workspace, by class, action and amount."""

from decimal import Decimal

import pytest

from effects.core.vocabulary import EffectClass, Role
from effects.money import Money
from reconcile.action_names import ActionName
from reconcile.actions import action
from reconcile.second_person import DEFAULT_RULES, Rule, Team
from tests.support.situations import STRONG_ABSENCE, a_situation

A = ActionName
UNKEYED = {"effect_class": EffectClass.UNKEYED_WRITE, "window_until": None}


def euros(figure: str) -> Money:
    return Money(amount=Decimal(figure), currency="EUR")


def yen(figure: str) -> Money:
    return Money(amount=Decimal(figure), currency="JPY", places=0)


FROM_100_EUR = Rule(currency="EUR", amount_from=Decimal(100))


@pytest.mark.parametrize(
    ("rule", "changes", "speaks"),
    [
        pytest.param(Rule(), {}, True, id="an empty rule speaks of everything"),
        pytest.param(FROM_100_EUR, {"money": euros("99.99")}, False, id="below the amount"),
        pytest.param(FROM_100_EUR, {"money": euros("100.00")}, True, id="the amount itself"),
        pytest.param(FROM_100_EUR, {"money": yen("100000")}, False, id="another currency"),
        pytest.param(FROM_100_EUR, {}, False, id="a call without an amount"),
        pytest.param(
            FROM_100_EUR, {"amount_unreadable": True}, True, id="an amount that cannot be read"
        ),
        pytest.param(
            Rule(amount_from=Decimal(100)), {"money": yen("100")}, True, id="every currency"
        ),
        pytest.param(Rule(action=A.CLOSE), {}, True, id="this action"),
        pytest.param(Rule(action=A.HAPPENED), {}, False, id="another action"),
        pytest.param(Rule(effect_class=EffectClass.UNKEYED_WRITE), {}, False, id="another class"),
        pytest.param(Rule(effect_class=EffectClass.UNKEYED_WRITE), UNKEYED, True, id="this class"),
    ],
)
def test_a_rule_speaks_of_a_class_an_action_and_an_amount(rule, changes, speaks):
    situation = a_situation(**changes)
    assert rule.speaks_of(A.CLOSE, situation) is speaks
    found = action(
        A.CLOSE, situation, role=Role.LEAD, team=Team(rules=(rule,), others=(Role.LEAD,))
    )
    assert bool(found.needs_second) is speaks


@pytest.mark.parametrize(
    ("least", "others", "expected"),
    [
        pytest.param(Role.SUPPORT, (Role.SUPPORT,), True, id="any other decider will do"),
        pytest.param(Role.LEAD, (Role.ADMIN,), True, id="an admin is more than a lead"),
        pytest.param(Role.LEAD, (Role.SUPPORT,), False, id="nobody has the role: the rule rests"),
        pytest.param(Role.LEAD, (), False, id="one person: the rule rests"),
        pytest.param(Role.ADMIN, (Role.LEAD,), False, id="a lead is not enough for this rule"),
    ],
)
def test_a_rule_rests_while_nobody_could_approve(least, others, expected):
    team = Team(rules=(Rule(approver=least),), others=others)
    found = action(A.CLOSE, a_situation(), role=Role.LEAD, team=team)
    assert (found.offered, bool(found.needs_second), found.alone) == (True, expected, False)


def test_of_several_rules_the_strictest_says_who_approves():
    team = Team(
        rules=(Rule(approver=Role.SUPPORT), Rule(approver=Role.ADMIN)),
        others=(Role.SUPPORT, Role.LEAD, Role.ADMIN),
    )
    found = action(A.CLOSE, a_situation(), role=Role.LEAD, team=team)
    assert found.approvers == {Role.ADMIN}


def test_what_always_needs_two_is_not_decided_alone_beside_a_lead_whom_a_rule_rules_out():
    team = Team(rules=(Rule(approver=Role.ADMIN),), others=(Role.LEAD,))
    found = action(A.NOT_HAPPENED, a_situation(**UNKEYED), role=Role.LEAD, team=team)
    assert not found.offered
    assert "nobody else has it" in found.reason


@pytest.mark.parametrize(
    ("name", "changes", "two"),
    [
        (A.NOT_HAPPENED, {"evidence": (STRONG_ABSENCE,), "money": euros("500")} | UNKEYED, True),
        (
            A.NOT_HAPPENED,
            {"evidence": (STRONG_ABSENCE,), "money": euros("499.99")} | UNKEYED,
            False,
        ),
        (A.NOT_HAPPENED, {"evidence": (STRONG_ABSENCE,), "money": euros("500")}, False),
        (A.ALLOW, {"held_open": 1, "money": euros("500")}, True),
        (A.ALLOW, {"held_open": 1, "money": euros("5")}, False),
        (A.RELEASE_SAME, {"money": euros("5000")}, False),
        (A.CLOSE, {"money": euros("5000")}, False),
    ],
)
def test_the_rules_from_the_start_guard_what_lets_a_larger_payment_run_again(name, changes, two):
    team = Team(rules=DEFAULT_RULES, others=(Role.LEAD,))
    found = action(name, a_situation(**changes), role=Role.LEAD, team=team)
    assert found.offered, found.reason
    assert bool(found.needs_second) is two
