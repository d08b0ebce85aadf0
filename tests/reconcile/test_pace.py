"""How fast one account is asked, and when it is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from effects.core.vocabulary import SightingWord
from effects.models import Connection
from reconcile import pace
from tests.support.desk import a_workspace

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.fixture
def account() -> Connection:
    return Connection.objects.create(
        workspace=a_workspace(), name="Stripe", kind="stripe", base_url="https://api.stripe.com"
    )


def test_a_crowd_of_claims_is_asked_about_four_times_a_second(account: Connection) -> None:
    asked = sum(
        pace.may_ask(account.pk, NOW + tenth * SECOND / 10) <= NOW + tenth * SECOND / 10
        for tenth in range(100)
        for _ in range(20)
    )

    assert 40 <= asked <= 46, "a fifth of the twenty a second that Stripe allows for its searches"


def test_who_is_put_off_hears_when_to_come_back(account: Connection) -> None:
    while (free_at := pace.may_ask(account.pk, NOW)) <= NOW:
        pass

    assert pace.may_ask(account.pk, free_at) == free_at


@pytest.mark.parametrize("word", [SightingWord.LOOKUP_FAILED, SightingWord.RATE_LIMITED])
def test_five_answers_in_vain_and_the_account_is_left_alone(
    account: Connection, word: SightingWord
) -> None:
    for _ in range(pace.FAILURES_MAX - 1):
        pace.note(account.pk, word, NOW)
    before = pace.may_ask(account.pk, NOW)
    pace.note(account.pk, word, NOW)

    assert before == NOW
    assert pace.may_ask(account.pk, NOW) == NOW + pace.ALONE_FIRST


def test_a_refused_secret_ends_the_asking_at_once(account: Connection) -> None:
    pace.note(account.pk, SightingWord.MISCONFIGURED, NOW)

    assert pace.may_ask(account.pk, NOW) == NOW + pace.ALONE_FIRST


def test_one_question_tries_an_account_that_was_left_alone(account: Connection) -> None:
    pace.note(account.pk, SightingWord.MISCONFIGURED, NOW)
    later = NOW + pace.ALONE_FIRST

    first, second = (pace.may_ask(account.pk, later) for _ in range(2))

    assert (first, second) == (later, later + pace.TRIAL)


@pytest.mark.parametrize("word", [SightingWord.RATE_LIMITED, SightingWord.ABSENT], ids=str)
def test_a_retry_after_is_obeyed_whatever_other_questions_bring(
    account: Connection, word: SightingWord
) -> None:
    pace.note(account.pk, SightingWord.RATE_LIMITED, NOW, retry_after_seconds=90)
    pace.note(account.pk, word, NOW + SECOND)

    assert pace.may_ask(account.pk, NOW + 2 * SECOND) == NOW + 90 * SECOND
    assert pace.may_ask(account.pk, NOW + 90 * SECOND) == NOW + 90 * SECOND


def test_a_retry_after_of_years_is_taken_for_a_day(account: Connection) -> None:
    pace.note(account.pk, SightingWord.RATE_LIMITED, NOW, retry_after_seconds=10**9)

    assert pace.may_ask(account.pk, NOW + SECOND) == NOW + pace.RETRY_AFTER_MAX


def test_a_reading_of_many_requests_is_paid_for_afterwards(account: Connection) -> None:
    assert pace.may_ask(account.pk, NOW) == NOW
    pace.spend(account.pk, 24, NOW)

    # 5 were there, 1 + 24 are spent: 21 have to come back at 4 a second before the next one.
    assert pace.may_ask(account.pk, NOW) == NOW + timedelta(seconds=5.25)


def test_a_reading_never_costs_more_than_a_minutes_rest(account: Connection) -> None:
    pace.spend(account.pk, 10**6, NOW)

    assert pace.may_ask(account.pk, NOW) <= NOW + timedelta(seconds=61)


def test_the_rest_grows_and_has_an_end(account: Connection) -> None:
    for _ in range(100):
        pace.note(account.pk, SightingWord.LOOKUP_FAILED, NOW)

    assert pace.may_ask(account.pk, NOW) == NOW + pace.ALONE_MAX
    standing = pace.standing(account.pk, NOW)
    assert standing.open_until == NOW + pace.ALONE_MAX
    assert standing.why == "It gave no answer."
    assert pace.standing(account.pk, NOW + pace.ALONE_MAX).open_until is None


@pytest.mark.parametrize("word", sorted(set(SightingWord) - pace.IN_VAIN), ids=str)
def test_any_answer_ends_the_rest(account: Connection, word: SightingWord) -> None:
    pace.note(account.pk, SightingWord.MISCONFIGURED, NOW)
    pace.note(account.pk, word, NOW)

    assert pace.may_ask(account.pk, NOW) == NOW


def test_one_account_does_not_slow_another(account: Connection) -> None:
    other = Connection.objects.create(
        workspace=account.workspace, name="Bank", kind="http", base_url="https://bank.example"
    )
    pace.note(account.pk, SightingWord.MISCONFIGURED, NOW)

    assert pace.may_ask(other.pk, NOW) == NOW
