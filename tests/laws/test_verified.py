"""What the laws' own histories leave behind is a sound record, by every invariant."""

from __future__ import annotations

from collections import Counter

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from ledger.management.verification import checks, further_checks
from tests.laws.simulate import one_history
from tests.support.clock import a_clock_of_our_own

SEEDS = range(40)


@pytest.mark.django_db(transaction=True)
def test_every_invariant_holds_after_histories_of_every_kind():
    counted: Counter[str] = Counter()
    with a_clock_of_our_own(), transaction.atomic():
        for number in (1, 2):  # Who decides and who approves in every history.
            User.objects.get_or_create(pk=number, defaults={"username": f"person {number}"})
        for seed in SEEDS:
            one_history(seed, counted)
        found = [
            f"{check.id} {difference.of}: {difference.says}"
            for check in (*checks(clock_may_move=True), *further_checks())
            if check.id != "functions"  # Here the clock is a function of another schema.
            for difference in check.find()
        ]
        transaction.set_rollback(True)
    assert found == []
    assert counted["grants"] > len(SEEDS)
