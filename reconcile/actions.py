"""What a person may do about a call now, and why, or why not.

`safe_actions` is what the call page shows and what a POST enforces; nothing else decides it. It is
pure: the situation (its instant included) and the person's role are its arguments. Every action is
always answered for, in one fixed order, so an action never disappears without a reason.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never
from uuid import UUID

from effects.access import Ability, can, needs
from effects.core.vocabulary import ClaimState, Role, Verdict
from reconcile.situation import Evidence, Situation

HEARTBEATS_PER_LEASE: Final = 3
"""A living worker says so about this often while its lease runs."""


class ActionName(StrEnum):
    """The actions in the order in which they are shown."""

    ASK = "ask"
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"
    RELEASE_SAME = "release_same"
    RELEASE_NEW = "release_new"
    LOST = "lost"
    CLOSE = "close"
    SETTLE = "settle"
    REOPEN = "reopen"
    SNOOZE = "snooze"
    SECOND_PERSON = "second_person"

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def verdict(self) -> Verdict | None:
        """The verdict that the ledger records for it; None for an act that decides nothing."""
        return _VERDICTS.get(self)


_LABELS = {
    ActionName.ASK: "Ask the provider now",
    ActionName.HAPPENED: "It happened",
    ActionName.NOT_HAPPENED: "It did not happen",
    ActionName.RELEASE_SAME: "Release with the same key",
    ActionName.RELEASE_NEW: "Release with a new key",
    ActionName.LOST: "Declare the worker lost",
    ActionName.CLOSE: "Stop: do not retry",
    ActionName.SETTLE: "Settle the conflict",
    ActionName.REOPEN: "Reopen",
    ActionName.SNOOZE: "Snooze",
    ActionName.SECOND_PERSON: "Ask a second person",
}
_VERDICTS = {
    ActionName.HAPPENED: Verdict.HAPPENED,
    ActionName.NOT_HAPPENED: Verdict.NOT_HAPPENED,
    ActionName.RELEASE_SAME: Verdict.RELEASE_SAME,
    ActionName.RELEASE_NEW: Verdict.RELEASE_NEW,
    ActionName.LOST: Verdict.LOST,
    ActionName.CLOSE: Verdict.CLOSE,
    ActionName.SETTLE: Verdict.SETTLE,
    ActionName.REOPEN: Verdict.REOPEN,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One action with its reason. `sibling` is the claim that stands in the way, if one does.

    `note_required` and `object_required`: what the person must write before it can be decided.
    """

    name: ActionName
    offered: bool
    reason: str
    sibling: UUID | None = None
    note_required: bool = False
    object_required: bool = False

    @property
    def label(self) -> str:
        return self.name.label


class _No(Exception):
    """Why an action is unavailable; caught in this module, never seen outside."""

    def __init__(self, reason: str, *, sibling: UUID | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sibling = sibling


def safe_actions(situation: Situation, *, role: Role) -> tuple[Action, ...]:
    """Every action, in the order of `ActionName`, each offered or unavailable with its reason."""
    return tuple(_action(name, situation, role) for name in ActionName)


def find(actions: tuple[Action, ...], name: ActionName) -> Action:
    """The action of that name among all of them."""
    return next(action for action in actions if action.name is name)


def _action(name: ActionName, situation: Situation, role: Role) -> Action:
    try:
        reason = _RULES[name](situation)
    except _No as no:
        return Action(name=name, offered=False, reason=no.reason, sibling=no.sibling)
    ability = Ability(name)
    if not can(role, ability):
        return Action(name=name, offered=False, reason=needs(ability))
    happened = name is ActionName.HAPPENED
    return Action(
        name=name,
        offered=True,
        reason=reason,
        note_required=happened and not situation.found,
        object_required=happened and bool(situation.strong_absence),
    )


# The rules. Each returns why the action is offered, or raises why it is not.


def _ask(situation: Situation) -> str:
    if not situation.can_look_up:
        raise _No("This tool has no look-up: nobody can be asked. A person decides.")
    if situation.decision_pending:
        raise _No("An answer now would cancel the decision that is held. Undo it first.")
    return f"Read-only. The answer of {situation.provider} is kept as evidence."


def _happened(situation: Situation) -> str:
    _undecided(situation)
    if situation.found:
        return f"{_capital(situation.provider)} shows it ({_numbers(situation.found)})."
    if situation.strong_absence:
        return "Against the evidence: needs the provider's object id and a note."
    if situation.standing:
        return "No answer shows it: say in a note how you know, best with the provider's object id."
    return "Nobody was asked: say in a note how you know, best with the provider's object id."


def _not_happened(situation: Situation) -> str:
    _undecided(situation)
    if situation.found:
        raise _No(f"{_capital(situation.provider)} shows an effect ({_numbers(situation.found)}).")
    absences = situation.strong_absence
    if not absences:
        raise _No(
            "There is no strong absence, so this could make the effect happen twice: it is "
            "the same act as a release with a new key and needs a second person, which is not "
            "available yet."
        )
    _no_sibling(situation)
    until = situation.safe_retry_until
    if situation.keyed and until is not None and situation.now < until:
        then = f"granted with the same key until {_instant(until, situation)}"
    else:
        then = "granted as a new request"
    return (
        f"Strong absence ({_numbers(absences)}). The agent is told so, and its next request for "
        f"this call is {then}."
    )


def _release_same(situation: Situation) -> str:
    _releasable(situation)
    _no_sibling(situation)
    if not situation.keyed:
        raise _No("This tool sends no key: a second send can never be made safe.")
    if situation.fresh_key:
        raise _No(
            f"{_capital(situation.provider)} has stored a refusal under this key: the same "
            "key can only bring the same refusal."
        )
    until = situation.safe_retry_until
    if until is None:
        raise _No(
            f"How long {situation.provider} honours a key is not published, so nobody can "
            "say that a second send with it is safe."
        )
    closes = _instant(until, situation)
    if until <= situation.now:
        raise _No(
            f"The window, less its margin, closed at {closes}. The old key may count as a new "
            "request."
        )
    if situation.now + timedelta(seconds=situation.hold_seconds) >= until:
        raise _No(
            f"The window, less its margin, closes at {closes}, before this decision would be in "
            "force."
        )
    stored = " If it saved an error, the retry gets that error again."
    return (
        f"Same request, same key, until {closes}. If an earlier one did succeed, "
        f"{situation.provider} returns its saved result, not a second effect."
        + (stored if situation.server_error_seen else "")
    )


def _release_new(situation: Situation) -> str:
    _releasable(situation)
    until = situation.safe_retry_until
    if situation.keyed and until is not None and situation.now < until and not situation.fresh_key:
        raise _No(
            f"The old key still holds until {_instant(until, situation)}. A new key now could make "
            "the effect happen twice."
        )
    raise _No(
        "Could make the effect happen twice: needs a second person, which is not available yet."
    )


def _lost(situation: Situation) -> str:
    if situation.state is not ClaimState.IN_FLIGHT:
        raise _No("No worker holds this call.")
    _not_pending(situation)
    newest = situation.attempts[0]
    age_seconds = (situation.now - newest.granted_at).total_seconds()
    if age_seconds <= situation.attempt_seconds_max:
        raise _No(
            f"The worker has its lease until {_instant(situation.lease_until, situation)}; "
            f"this tool may take {situation.attempt_seconds_max} s."
        )
    silent_seconds = (situation.now - situation.sign_of_life_at).total_seconds()
    if silent_seconds < 2 * situation.lease_seconds / HEARTBEATS_PER_LEASE:
        raise _No(
            f"The worker gave a sign of life {int(silent_seconds)} s ago: declaring it lost "
            "needs a second person, which is not available yet."
        )
    return (
        f"The attempt is older than this tool allows ({situation.attempt_seconds_max} s). The call "
        "becomes unknown; whatever the worker still reports is kept as evidence."
    )


def _close(situation: Situation) -> str:
    _not_pending(situation)
    match situation.state:
        case ClaimState.COMPLETED:
            raise _No("It happened: there is nothing to stop.")
        case ClaimState.CONFLICTED:
            raise _No("The conflict has to be settled; stopping would hide it.")
        case ClaimState.CLOSED:
            raise _No("Already stopped.")
        case ClaimState.UNKNOWN:
            return (
                "Stays unknown in reports and counts as exposure. The agent is told: outcome "
                "unknown, do not retry."
            )
        case ClaimState.IN_FLIGHT:
            return (
                "A worker holds this call: it is told to stop, and what it still reports is kept. "
                "The agent is told: outcome unknown, do not retry."
            )
        case ClaimState.RELEASED | ClaimState.NOT_EXECUTED:
            return "No further attempt is granted. The agent is told: do not retry."
        case _:
            assert_never(situation.state)


def _settle(situation: Situation) -> str:
    if situation.state is not ClaimState.CONFLICTED:
        raise _No("The claim is not in conflict.")
    raise _No("Not available yet. Nothing is sent or undone in the meantime.")


def _reopen(situation: Situation) -> str:
    settled = (ClaimState.COMPLETED, ClaimState.NOT_EXECUTED, ClaimState.CLOSED)
    if situation.state not in settled:
        raise _No("The claim is not settled.")
    raise _No("Not available yet.")


def _not_yet(_situation: Situation) -> str:
    raise _No("Not available yet.")


_RULES: Final[dict[ActionName, Callable[[Situation], str]]] = {
    ActionName.ASK: _ask,
    ActionName.HAPPENED: _happened,
    ActionName.NOT_HAPPENED: _not_happened,
    ActionName.RELEASE_SAME: _release_same,
    ActionName.RELEASE_NEW: _release_new,
    ActionName.LOST: _lost,
    ActionName.CLOSE: _close,
    ActionName.SETTLE: _settle,
    ActionName.REOPEN: _reopen,
    ActionName.SNOOZE: _not_yet,
    ActionName.SECOND_PERSON: _not_yet,
}


# Conditions that several actions share.


def _not_pending(situation: Situation) -> None:
    if situation.decision_pending:
        raise _No("A decision is held already. Undo it to decide otherwise.")


def _undecided(situation: Situation) -> None:
    """Only an unknown outcome can be given a name."""
    _not_pending(situation)
    match situation.state:
        case ClaimState.UNKNOWN:
            return
        case ClaimState.IN_FLIGHT:
            raise _No("A worker holds this call and may still report how it ended.")
        case ClaimState.RELEASED:
            raise _No("One more attempt is allowed and may start at any moment.")
        case ClaimState.COMPLETED:
            raise _No("Settled already: it happened.")
        case ClaimState.NOT_EXECUTED:
            raise _No("Settled already: it did not happen.")
        case ClaimState.CONFLICTED:
            raise _No("The claim is in conflict: that has to be settled first.")
        case ClaimState.CLOSED:
            raise _No("A person stopped it; it would have to be reopened.")
        case _:
            assert_never(situation.state)


def _releasable(situation: Situation) -> None:
    """A release is for an unknown outcome, or for a call whose attempts are used up."""
    if situation.state is ClaimState.NOT_EXECUTED:
        _not_pending(situation)
        if situation.fence < situation.budget:
            raise _No("Needs no release: the agent's next request is granted.")
        return
    _undecided(situation)


def _no_sibling(situation: Situation) -> None:
    """While another claim for the same thing is open or came true later, running again could
    make it happen twice, whatever the key."""
    if not situation.siblings:
        return
    sibling = situation.siblings[0]
    raise _No(
        reason=f"Another call for the same thing is {_STATE_WORDS[sibling.state]}.",
        sibling=sibling.claim_id,
    )


_STATE_WORDS = {
    ClaimState.IN_FLIGHT: "in flight",
    ClaimState.UNKNOWN: "unknown",
    ClaimState.COMPLETED: "already done",
    ClaimState.NOT_EXECUTED: "settled as not happened, for as long as its key is honoured",
    ClaimState.RELEASED: "released",
    ClaimState.CONFLICTED: "in conflict",
    ClaimState.CLOSED: "closed, unknown",
}


def _numbers(items: tuple[Evidence, ...]) -> str:
    return "evidence " + ", ".join(str(item.number) for item in items[:3])


def _instant(instant: datetime, situation: Situation) -> str:
    return instant_words(instant, situation.now)


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def instant_words(instant: datetime, now: datetime) -> str:
    """An instant for a sentence: the time alone on the same day, else with its day; in UTC."""
    shape = "%H:%M:%S" if abs((instant - now).total_seconds()) < 120 else "%H:%M"
    if instant.date() != now.date():
        shape = f"%d %b {shape}"
    return f"{instant:{shape}} UTC"
