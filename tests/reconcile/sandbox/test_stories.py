"""A storm is a pure function of its size and seed, and holds what it promises."""

from collections import Counter

import pytest

from effects.core.vocabulary import EffectClass
from reconcile.sandbox.faults import Fault
from reconcile.sandbox.jobs import Mishap
from reconcile.sandbox.stories import (
    ASKED_AGAIN_SHARE,
    CONVERSATIONS_MIN,
    EACH_FAULT_MIN,
    EACH_MISHAP_MIN,
    LOSES_THE_ANSWER,
    Again,
    storm,
)

SIZES = (CONVERSATIONS_MIN, 40, 200)


@pytest.mark.parametrize("conversations", SIZES)
def test_every_fault_and_every_mishap_comes_as_often_as_promised(conversations):
    operations = storm(conversations, 7)
    faults = Counter(operation.trouble.fault for operation in operations)
    mishaps = Counter(operation.trouble.mishap for operation in operations)
    assert all(faults[fault] >= EACH_FAULT_MIN for fault in Fault)
    assert all(mishaps[mishap] >= EACH_MISHAP_MIN for mishap in Mishap)


@pytest.mark.parametrize("conversations", SIZES)
def test_enough_is_asked_for_again_in_every_way(conversations):
    operations = storm(conversations, 7)
    again = Counter(operation.again for operation in operations)
    assert len(operations) - again[Again.NO] >= ASKED_AGAIN_SHARE * len(operations)
    assert all(again[style] for style in Again)


@pytest.mark.parametrize("conversations", SIZES)
def test_what_a_key_alone_can_make_harmless_meets_only_tools_with_a_key(conversations):
    for operation in storm(conversations, 7):
        if operation.trouble.needs_a_key:
            assert operation.tool.effect_class is EffectClass.KEYED_WRITE


def test_the_same_seed_tells_the_same_story():
    assert storm(40, 7) == storm(40, 7)
    assert storm(40, 7) != storm(40, 8)


def test_no_two_operations_share_an_order():
    orders = [operation.order for operation in storm(40, 7)]
    assert len(set(orders)) == len(orders)


def test_a_storm_without_room_for_its_faults_is_refused():
    with pytest.raises(ValueError, match="no room for every fault"):
        storm(CONVERSATIONS_MIN - 1, 7)


def test_a_storm_has_models_that_ask_again_after_they_were_told_unknown():
    doubted = [op for op in storm(40, 7) if op.again is Again.AFTER_DOUBT]
    assert len(doubted) >= 5
    assert {op.trouble.fault for op in doubted} <= LOSES_THE_ANSWER
