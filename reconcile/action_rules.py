"""The rules of the actions: why each is offered, or why it is not. Pure.

Each rule returns its reason, or raises `No` with what stands in the way. Who may do it, and whether
a second person must agree, is asked elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final, assert_never
from uuid import UUID

from effects.core.vocabulary import ClaimState
from effects.times import duration_words
from reconcile.action_names import ActionName
from reconcile.situation import Evidence, Situation, instant_words

SNOOZE_HOURS_MAX: Final = 24
SNOOZE_ENDS_BEFORE_WINDOW: Final = timedelta(minutes=30)
SNOOZE_SHORTEST: Final = timedelta(minutes=5)
"""A shorter rest is none: the call would be back before the page is left."""


class No(Exception):
    """Why an action is unavailable."""

    def __init__(self, reason: str, *, sibling: UUID | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.sibling = sibling


def _ask(situation: Situation) -> str:
    if not situation.can_look_up:
        raise No("This tool has no look-up: nobody can be asked. A person decides.")
    if situation.decision_pending:
        raise No("An answer now would cancel the decision that is held. Undo it first.")
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
        raise No(f"{_capital(situation.provider)} shows an effect ({_numbers(situation.found)}).")
    until = situation.safe_retry_until
    open_until = until if situation.keyed and until is not None and situation.now < until else None
    absences = situation.strong_absence
    if not absences and open_until is not None and not situation.fresh_key:
        raise No(
            "There is no strong absence, and the old key still holds until "
            f"{_instant(open_until, situation)}: a release with the same key is safe, this is not."
        )
    _no_sibling(situation)
    if not absences:
        return (
            "There is no strong absence, so this could make the effect happen twice: it is the "
            "same act as a release with a new key and has its guards."
        )
    then = (
        f"granted with the same key until {_instant(open_until, situation)}"
        if open_until is not None
        else "granted as a new request"
    )
    return (
        f"Strong absence ({_numbers(absences)}). The agent is told so, and its next request for "
        f"this call is {then}."
    )


def _release_same(situation: Situation) -> str:
    _releasable(situation)
    _no_sibling(situation)
    if not situation.keyed:
        raise No("This tool sends no key: a second send can never be made safe.")
    if situation.fresh_key:
        raise No(
            f"{_capital(situation.provider)} has stored a refusal under this key: the same "
            "key can only bring the same refusal."
        )
    until = situation.safe_retry_until
    if until is None:
        raise No(
            f"How long {situation.provider} honours a key is not published, so nobody can "
            "say that a second send with it is safe."
        )
    closes = _instant(until, situation)
    if until <= situation.now:
        raise No(
            f"The window, less its margin, closed at {closes}. The old key may count as a new "
            "request."
        )
    if situation.now + timedelta(seconds=situation.hold_seconds) >= until:
        raise No(
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
    if situation.found:
        raise No(f"{_capital(situation.provider)} shows an effect ({_numbers(situation.found)}).")
    until = situation.safe_retry_until
    if situation.keyed and until is not None and situation.now < until and not situation.fresh_key:
        raise No(
            f"The old key still holds until {_instant(until, situation)}. A new key now could make "
            "the effect happen twice."
        )
    if not situation.keyed:
        why = "This tool sends no key"
    elif situation.fresh_key:
        why = f"{_capital(situation.provider)} has stored a refusal under the old key"
    elif until is None:
        why = "How long the old key is honoured is not published"
    else:
        why = f"The old key is not honoured any more (closed at {_instant(until, situation)})"
    beside = (
        f" Another call for the same thing is {_STATE_WORDS[situation.siblings[0].state]}."
        if situation.siblings
        else ""
    )
    return f"{why}: a further attempt could make the effect happen twice.{beside}"


def _lost(situation: Situation) -> str:
    if situation.state is not ClaimState.IN_FLIGHT:
        raise No("No worker holds this call.")
    _not_pending(situation)
    newest = situation.attempts[0]
    age_seconds = (situation.now - newest.granted_at).total_seconds()
    if age_seconds <= situation.attempt_seconds_max:
        raise No(
            f"The worker has its lease until {_instant(situation.lease_until, situation)}; "
            f"this tool may take {situation.attempt_seconds_max} s."
        )
    older = f"The attempt is older than this tool allows ({situation.attempt_seconds_max} s)."
    if situation.worker_heard_of:
        silent_seconds = (situation.now - situation.sign_of_life_at).total_seconds()
        return f"{older} But the worker gave a sign of life {int(silent_seconds)} s ago."
    return (
        f"{older} The call becomes unknown; whatever the worker still reports is kept as evidence."
    )


def _close(situation: Situation) -> str:
    _not_pending(situation)
    match situation.state:
        case ClaimState.COMPLETED:
            raise No("It happened: there is nothing to stop.")
        case ClaimState.CONFLICTED:
            raise No("The conflict has to be settled; stopping would hide it.")
        case ClaimState.CLOSED:
            raise No("Already stopped.")
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
        raise No("The claim is not in conflict.")
    _not_pending(situation)
    if len(situation.effects) < 2:
        raise No("What is known contradicts what was decided: that is reopened, not settled.")
    return (
        f"{len(situation.effects)} effects are known. Say which one stands and what was done about "
        "the rest. Nothing is sent to the provider."
    )


def _reopen(situation: Situation) -> str:
    contradiction = situation.state is ClaimState.CONFLICTED and len(situation.effects) < 2
    settled = (ClaimState.COMPLETED, ClaimState.NOT_EXECUTED, ClaimState.CLOSED)
    if situation.state not in settled and not contradiction:
        raise No("The claim is not settled.")
    _not_pending(situation)
    if situation.attempt_running:
        raise No("An attempt is still running and may report how it ended.")
    return (
        "The call is unknown again, and what the agent was told is marked withdrawn. The agent may "
        "already have acted on it."
    )


def _allow(situation: Situation) -> str:
    if not situation.held_open:
        raise No("This call holds no request back.")
    _not_pending(situation)
    many = "One request is" if situation.held_open == 1 else f"{situation.held_open} requests are"
    return f"{many} held back by this call. Letting one run could make the effect happen twice."


def snooze_until(situation: Situation) -> datetime:
    """When a call that is snoozed now comes back by itself."""
    day = situation.now + timedelta(hours=SNOOZE_HOURS_MAX)
    window = situation.window_until
    if window is None or window <= situation.now:
        return day
    return min(day, window - SNOOZE_ENDS_BEFORE_WINDOW)


def _snooze(situation: Situation) -> str:
    _not_pending(situation)
    exhausted = situation.state is ClaimState.NOT_EXECUTED and situation.fence >= situation.budget
    if situation.state not in {ClaimState.UNKNOWN, ClaimState.CONFLICTED} and not exhausted:
        raise No("Nobody waits for a decision about this call.")
    until = snooze_until(situation)
    left = until - situation.now
    if left < SNOOZE_SHORTEST:
        away = (
            f"that is {duration_words(left.total_seconds())} away"
            if left > timedelta(0)
            else "that is past"
        )
        raise No(f"Ends 30 m before the window closes at the latest, and {away}.")
    return f"Until {_instant(until, situation)}. It comes back at once if the provider answers."


def _second_person(situation: Situation) -> str:
    _not_pending(situation)
    return "Choose the decision that another person should approve."


RULES: Final[dict[ActionName, Callable[[Situation], str]]] = {
    ActionName.ASK: _ask,
    ActionName.HAPPENED: _happened,
    ActionName.NOT_HAPPENED: _not_happened,
    ActionName.RELEASE_SAME: _release_same,
    ActionName.RELEASE_NEW: _release_new,
    ActionName.LOST: _lost,
    ActionName.CLOSE: _close,
    ActionName.SETTLE: _settle,
    ActionName.REOPEN: _reopen,
    ActionName.ALLOW: _allow,
    ActionName.SNOOZE: _snooze,
    ActionName.SECOND_PERSON: _second_person,
}


# Conditions that several actions share.


def _not_pending(situation: Situation) -> None:
    if situation.decision_pending:
        raise No("A decision is held already. Undo it to decide otherwise.")


def _undecided(situation: Situation) -> None:
    """Only an unknown outcome can be given a name."""
    _not_pending(situation)
    match situation.state:
        case ClaimState.UNKNOWN:
            return
        case ClaimState.IN_FLIGHT:
            raise No("A worker holds this call and may still report how it ended.")
        case ClaimState.RELEASED:
            raise No("One more attempt is allowed and may start at any moment.")
        case ClaimState.COMPLETED:
            raise No("Settled already: it happened.")
        case ClaimState.NOT_EXECUTED:
            raise No("Settled already: it did not happen.")
        case ClaimState.CONFLICTED:
            raise No("The claim is in conflict: that has to be settled first.")
        case ClaimState.CLOSED:
            raise No("A person stopped it; it would have to be reopened.")
        case _:
            assert_never(situation.state)


def _releasable(situation: Situation) -> None:
    """A release is for an unknown outcome, or for a call whose attempts are used up."""
    if situation.state is ClaimState.NOT_EXECUTED:
        _not_pending(situation)
        if situation.fence < situation.budget:
            raise No("Needs no release: the agent's next request is granted.")
        return
    _undecided(situation)


def _no_sibling(situation: Situation) -> None:
    """While another claim for the same thing is open or came true later, running again could
    make it happen twice, whatever the key."""
    if not situation.siblings:
        return
    sibling = situation.siblings[0]
    raise No(
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
