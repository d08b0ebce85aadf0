"""Who may do what: the table, and the sentences made from it."""

import pytest

from effects.access import ABILITIES, ROLE_WORDS, Ability, can, needs, roles_with
from effects.core.vocabulary import Role, Verdict


def test_every_ability_belongs_to_somebody_and_every_admin_has_it() -> None:
    assert set(ABILITIES) == set(Ability)
    assert all(Role.ADMIN in roles for roles in ABILITIES.values())
    assert set(ROLE_WORDS) == set(Role)


def test_every_verdict_is_an_ability() -> None:
    assert {verdict.value for verdict in Verdict} <= {ability.value for ability in Ability}


@pytest.mark.parametrize("ability", sorted(set(Ability) - {Ability.SEE}))
def test_viewers_only_look(ability: Ability) -> None:
    assert not can(Role.VIEWER, ability)


@pytest.mark.parametrize(
    "ability", [Ability.RELEASE_NEW, Ability.SETTLE, Ability.REOPEN, Ability.ALLOW, Ability.APPROVE]
)
def test_what_may_move_money_twice_is_not_for_support(ability: Ability) -> None:
    assert roles_with(ability) == (Role.LEAD, Role.ADMIN)


def test_engineers_decide_nothing_about_money() -> None:
    allowed = {ability for ability in Ability if can(Role.ENGINEER, ability)}
    assert not allowed & {Ability.HAPPENED, Ability.NOT_HAPPENED, Ability.RELEASE_SAME}


@pytest.mark.parametrize(
    ("ability", "sentence"),
    [
        (Ability.EDIT_TOOLS, "Needs the role Admin."),
        (Ability.RELEASE_NEW, "Needs the role Payments lead or Admin."),
        (Ability.HAPPENED, "Needs the role Support, Payments lead or Admin."),
    ],
)
def test_an_action_names_the_roles_that_have_it(ability: Ability, sentence: str) -> None:
    assert needs(ability) == sentence
