"""What a person is told before they decide: what will happen outside, what will not, and whether
it can be undone. Pure; one text for every action that can be reviewed."""

from __future__ import annotations

from dataclasses import dataclass

from reconcile.actions import ActionName, instant_words
from reconcile.situation import Situation


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """`button` is the label of the one button that records the decision."""

    question: str
    lead: str
    will: str
    will_not: str
    undo: str
    button: str


CHANGE_LATER = "The decision stays in the record; the agent may already have acted on it."


def confirmation(name: ActionName, situation: Situation) -> Confirmation:
    """The text for an action that this desk can carry out. Raises KeyError for any other."""
    return _TEXTS[name](situation)


def _undo(situation: Situation) -> str:
    seconds = situation.hold_seconds
    if seconds == 0:
        return (
            f"Not possible: the window is about to close, so it is in force at once. {CHANGE_LATER}"
        )
    return f"For {seconds} s. Until then nothing is told or granted. {CHANGE_LATER}"


def _happened(situation: Situation) -> Confirmation:
    return Confirmation(
        question="Mark as happened?",
        lead="The agent will be told that it happened and will not run the call again.",
        will="The claim is settled as happened. Everybody who asks for it again gets that answer.",
        will_not=f"Nothing is sent to {situation.provider}.",
        undo=_undo(situation),
        button="It happened",
    )


def _not_happened(situation: Situation) -> Confirmation:
    until = situation.safe_retry_until
    if situation.keyed and until is not None and situation.now < until:
        closes = instant_words(until, situation.now)
        granted = (
            f"The agent's next request for this call is granted with the same key until {closes}; "
            "after that a new run may do it again under a new key."
        )
    elif situation.keyed:
        granted = "The agent's next request for this call is granted under a new key."
    else:
        granted = "The agent's next request for this call is granted: one more run is allowed."
    return Confirmation(
        question="Mark as not executed?",
        lead=granted,
        will="The claim is settled as not happened, and the agent is told so.",
        will_not=f"Nothing is sent to {situation.provider} by this desk.",
        undo=_undo(situation),
        button="It did not happen",
    )


def _release_same(situation: Situation) -> Confirmation:
    until = situation.safe_retry_until
    closes = instant_words(until, situation.now) if until is not None else "the window closes"
    provider = situation.provider
    return Confirmation(
        question="Release this claim?",
        lead=f"The runtime may send the same request with the same key, once, until {closes}.",
        will=f"If the first request did succeed, {provider} returns its saved result, not a second "
        f"effect. If {provider} saved an error (for example 500), the retry gets that error again.",
        will_not="No new key is made. If nobody takes it up in time, the call is unknown again.",
        undo=_undo(situation),
        button="Release with the same key",
    )


def _lost(situation: Situation) -> Confirmation:
    return Confirmation(
        question="Declare this worker lost?",
        lead="The call becomes unknown.",
        will="Whatever the old worker still reports is kept as evidence; it can no longer finish "
        "this call.",
        will_not=f"Nothing is sent to {situation.provider}, and nobody may run the call again yet.",
        undo=_undo(situation),
        button="Declare the worker lost",
    )


def _close(situation: Situation) -> Confirmation:
    return Confirmation(
        question="Close without a retry?",
        lead="The agent is told: outcome unknown, do not retry.",
        will="The call stays unknown in reports and counts as exposure.",
        will_not=f"Nothing is sent to {situation.provider}, and no further attempt is granted.",
        undo=_undo(situation),
        button="Stop: do not retry",
    )


_TEXTS = {
    ActionName.HAPPENED: _happened,
    ActionName.NOT_HAPPENED: _not_happened,
    ActionName.RELEASE_SAME: _release_same,
    ActionName.LOST: _lost,
    ActionName.CLOSE: _close,
}
REVIEWED = frozenset(_TEXTS)
"""The actions that have a review; the others are not built yet, or decide nothing."""
