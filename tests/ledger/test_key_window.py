"""Until when a key is sure to be known: the first possible send, the window, the margin."""

from __future__ import annotations

from datetime import timedelta

import pytest

from effects.core.vocabulary import AnswerCode, KeyWindow, Outcome
from effects.models import Tool
from ledger import append, queries
from ledger.models import Claim
from tests.ledger.claims import (
    MARGIN_SECONDS,
    WINDOW_SECONDS,
    a_world,
    an_unkeyed_world,
    ask,
    granted,
    reported,
)

pytestmark = pytest.mark.django_db
SAFE = timedelta(seconds=WINDOW_SECONDS - MARGIN_SECONDS)


def test_the_deadline_counts_from_the_grant_because_nothing_can_be_sent_before_it() -> None:
    world = a_world()
    first = granted(world)
    assert first.safe_retry_until == world.now + SAFE
    assert first.key_window is KeyWindow.UNTIL


def test_neither_a_late_send_nor_a_later_attempt_moves_the_deadline() -> None:
    world = a_world()
    first = granted(world)
    assert first.claim_id
    world.clock.advance(60)
    append.sent(Claim.objects.get().workspace_id, first.claim_id, 1)
    world.report(first.claim_id, 1, Outcome.NOT_SENT)
    world.clock.advance(1000)
    again = granted(world)
    assert again.fence == 2
    assert again.safe_retry_until == first.safe_retry_until


def test_a_wider_margin_brings_the_deadline_of_calls_that_are_open_forward() -> None:
    world = a_world()
    first = reported(world, Outcome.UNKNOWN)
    assert first.safe_retry_until
    Tool.objects.update(margin_seconds=MARGIN_SECONDS + 100)
    told = ask(world).safe_retry_until
    assert told == first.safe_retry_until - timedelta(seconds=100)


def test_a_shorter_window_holds_for_calls_that_are_granted_from_then_on() -> None:
    world = a_world()
    first = reported(world, Outcome.UNKNOWN)
    Tool.objects.update(window_seconds=MARGIN_SECONDS + 10)
    assert ask(world).safe_retry_until == first.safe_retry_until


def test_a_window_that_nobody_published_is_told_as_unknown_to_whoever_asks() -> None:
    world = a_world(window_seconds=None)
    first = reported(world, Outcome.UNKNOWN)
    told = ask(world)
    assert told.code is AnswerCode.UNKNOWN
    assert (told.safe_retry_until, told.key_window) == (None, KeyWindow.UNKNOWN)
    assert first.claim_id
    status = queries.answer(Claim.objects.get().workspace_id, first.claim_id)
    assert status.key_window is KeyWindow.UNKNOWN


def test_a_tool_without_a_key_has_no_window_to_be_unknown() -> None:
    assert ask(an_unkeyed_world()).key_window is KeyWindow.NO_KEY
