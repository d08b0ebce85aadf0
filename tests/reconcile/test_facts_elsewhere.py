"""A claim that a ledger kept elsewhere told: asked about by the key that was really sent."""

import pytest

from ledger.models import Claim


@pytest.mark.parametrize(
    ("sent_key", "generation", "expected"),
    [(None, 1, "cf1-a-1"), ("order-8841", 1, "order-8841"), ("order-8841", 2, "cf1-a-2")],
)
def test_the_first_generation_is_known_by_the_key_that_was_sent(sent_key, generation, expected):
    assert Claim(key="cf1-a", sent_key=sent_key).key_sent(generation) == expected
