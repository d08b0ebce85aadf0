"""A timeout walked through: the same functions as in earnest, on a call that is nowhere."""

from datetime import UTC, datetime, timedelta

import pytest

from effects.core.vocabulary import ClaimState, Reason, Role
from effects.models import Connection, Tool
from reconcile.action_names import ActionName
from reconcile.registry.simulation import Moment, Outlook, Viewer, simulate
from reconcile.second_person import Team

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)
LEAD = Viewer(role=Role.LEAD, team=Team(others=(Role.ADMIN,)))


def keyed(**changes: object) -> Tool:
    usual = {
        "name": "charge",
        "effect_class": "keyed_write",
        "window_seconds": 86_400,
        "lookup_kind": "stripe.payment_intents",
        "connection": Connection(pk=1, name="Stripe"),
        "server_working_seconds_max": 60,
    }
    return Tool(**(usual | changes))


def unkeyed(**changes: object) -> Tool:
    return Tool(**({"name": "sms", "effect_class": "unkeyed_write"} | changes))


def at(moment: Moment, tool: Tool, viewer: Viewer = LEAD) -> Outlook:
    return next(one for one in simulate(tool, viewer, NOW) if one.moment is moment)


def offered(outlook: Outlook) -> set[ActionName]:
    return {one.name for one in outlook.offered}


@pytest.mark.parametrize(
    ("moment", "tool", "state", "told", "release"),
    [
        (Moment.NOT_SENT, keyed(), ClaimState.NOT_EXECUTED, "not_executed", False),
        (Moment.AFTER_SEND, keyed(), ClaimState.UNKNOWN, "unknown", True),
        (Moment.COMMITTED, keyed(), ClaimState.COMPLETED, "completed", False),
        (Moment.COMMITTED, unkeyed(), ClaimState.UNKNOWN, "unknown", False),
        (Moment.WINDOW_CLOSED, keyed(), ClaimState.UNKNOWN, "expired_unanswered", False),
        (Moment.FROZEN, keyed(), ClaimState.UNKNOWN, "unknown", True),
        (Moment.FROZEN, unkeyed(), ClaimState.UNKNOWN, "unknown", False),
        (Moment.AFTER_SEND, unkeyed(), ClaimState.UNKNOWN, "unknown", False),
        (Moment.AFTER_SEND, keyed(window_seconds=None), ClaimState.UNKNOWN, "unknown", False),
    ],
)
def test_each_moment_leads_to_a_state_a_word_for_the_model_and_actions(
    moment: Moment, tool: Tool, state: ClaimState, told: str, *, release: bool
) -> None:
    outlook = at(moment, tool)
    assert outlook.state is state
    assert outlook.for_model["status"] == told
    assert (ActionName.RELEASE_SAME in offered(outlook)) is release
    assert len(outlook.actions) == len(ActionName)
    assert all(one.reason for one in outlook.refused)


def test_look_ups_are_those_of_the_schedule_with_the_two_before_the_window_closes() -> None:
    looks = at(Moment.AFTER_SEND, keyed(lookups_max=3)).looks
    begun = timedelta(seconds=30)
    assert looks.first[:2] == (begun, begun + timedelta(seconds=5))
    # Three by the budget, one when an absence begins to count, and two before the window closes.
    assert looks.first[-2:] == (timedelta(hours=22), timedelta(hours=23, minutes=45))
    assert looks.proves_from == begun + timedelta(seconds=60)
    assert at(Moment.NOT_SENT, keyed()).looks.first == ()
    assert at(Moment.AFTER_SEND, unkeyed()).looks.first == ()


def test_finding_nothing_proves_nothing_while_a_worker_without_a_key_may_still_send() -> None:
    asked = {"lookup_kind": "http", "connection": Connection(pk=1, name="Vouchers")}
    assert at(Moment.FROZEN, unkeyed(**asked)).looks.proves_from is None
    assert at(Moment.AFTER_SEND, unkeyed(**asked)).looks.proves_from is not None
    assert at(Moment.FROZEN, keyed()).looks.proves_from is not None
    assert at(Moment.FROZEN, keyed()).reason is Reason.LEASE_OVER


def test_a_read_is_not_walked_through_because_nobody_could_decide() -> None:
    assert simulate(Tool(name="search", effect_class="read"), LEAD, NOW) == ()


def test_a_viewer_is_offered_nothing_and_told_who_could() -> None:
    outlook = at(Moment.AFTER_SEND, keyed(), Viewer(role=Role.VIEWER, team=Team()))
    assert offered(outlook) == set()
    assert any("Needs the role" in one.reason for one in outlook.refused)
