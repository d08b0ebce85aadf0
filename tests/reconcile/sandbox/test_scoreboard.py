"""The provider's truth beside the ledger's word: what fits, what does not, what says nothing."""

from typing import Any
from uuid import UUID

import pytest

from effects.core.identity import marker
from effects.core.vocabulary import ClaimState, EffectClass
from reconcile.sandbox.scoreboard import ClaimWord, rows, summary

CLAIM = UUID("01936000-0000-7000-8000-000000000001")
OTHER = UUID("01936000-0000-7000-8000-000000000002")


def a_claim(state: ClaimState, claim_id: UUID = CLAIM, **changes: Any) -> ClaimWord:
    usual: dict[str, Any] = {
        "claim_id": claim_id,
        "version": 3,
        "order": "H-1",
        "tool": "charge_card",
        "effect_class": EffectClass.KEYED_WRITE,
        "state": state,
    }
    return ClaimWord(**(usual | changes))


def an_effect(claim_id: UUID | None = CLAIM, number: int = 1, **metadata: str) -> dict[str, Any]:
    return {
        "object_id": f"pi_{number}",
        "marker": marker(claim_id, 1) if claim_id else None,
        "metadata": {"order": "H-1", **metadata},
    }


@pytest.mark.parametrize(
    ("state", "effects", "fits"),
    [
        (ClaimState.COMPLETED, 1, True),
        (ClaimState.COMPLETED, 0, False),
        (ClaimState.COMPLETED, 2, False),
        (ClaimState.NOT_EXECUTED, 0, True),
        (ClaimState.NOT_EXECUTED, 1, False),
        (ClaimState.CONFLICTED, 2, True),
        (ClaimState.CONFLICTED, 1, False),
        (ClaimState.UNKNOWN, 2, True),
        (ClaimState.IN_FLIGHT, 1, True),
        (ClaimState.RELEASED, 1, True),
        (ClaimState.CLOSED, 1, True),
    ],
)
def test_a_word_is_held_against_the_number_of_effects(state, effects, fits):
    truth = [an_effect(number=number) for number in range(effects)]
    (row,) = rows([a_claim(state)], truth)
    assert (row.disagreements == ()) is fits


def test_an_effect_without_a_claim_is_a_disagreement():
    (row,) = rows([], [an_effect(None)])
    assert row.disagreements == ("pi_1 happened without a claim",)


def test_what_the_shop_s_own_till_took_is_no_agent_s_affair():
    assert rows([], [an_effect(None, source="checkout")]) == []


def test_two_claims_for_one_order_are_one_operation_and_two_effects_are_too_many():
    claims = [a_claim(ClaimState.COMPLETED), a_claim(ClaimState.COMPLETED, OTHER)]
    (row,) = rows(claims, [an_effect(CLAIM, 1), an_effect(OTHER, 2)])
    assert row.disagreements == ()
    assert row.too_many


def test_a_named_decision_allows_one_effect_more():
    claims = [a_claim(ClaimState.COMPLETED, allowed=1), a_claim(ClaimState.COMPLETED, OTHER)]
    (row,) = rows(claims, [an_effect(CLAIM, 1), an_effect(OTHER, 2)])
    assert not row.too_many


def test_the_six_figures_count_what_their_names_say():
    claims = [
        a_claim(ClaimState.COMPLETED, by_rule=True),
        a_claim(ClaimState.UNKNOWN, OTHER, order="H-2", needs_person=True),
    ]
    assert summary(rows(claims, [an_effect()])) == {
        "operations": 2,
        "effects": 1,
        "disagreements": 0,
        "unknown": 1,
        "needs_person": 1,
        "settled_by_rule": 1,
    }
