"""What a person is told before they decide: what will happen outside, what will not, and whether
it can be undone. Pure; one text for every action that can be reviewed."""

from __future__ import annotations

from dataclasses import dataclass, replace

from effects.times import duration_words
from reconcile.action_names import ActionName
from reconcile.situation import Situation, instant_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """`button` is the label of the one button that records the decision; `harm` marks an act that
    can make the effect happen twice."""

    question: str
    lead: str
    will: str
    will_not: str
    undo: str
    button: str
    harm: bool = False


CHANGE_LATER = "The decision stays in the record; the agent may already have acted on it."


def confirmation(name: ActionName, situation: Situation) -> Confirmation:
    """The text for an action that is decided at once. Raises KeyError for one without a review."""
    return _TEXTS[name](situation)


def asking(name: ActionName, situation: Situation) -> Confirmation:
    """The text for the same action where a second person is asked first."""
    text = confirmation(name, situation)
    return replace(
        text,
        will=f"A second person is asked. After their yes: {_lower(text.will)}",
        will_not=f"Nothing happens before a second person approves. {text.will_not}",
        undo="The request can be taken back until it is answered. Then: "
        f"{_lower(text.undo)} The minute starts after the second yes.",
        button="Ask a second person",
    )


def _lower(words: str) -> str:
    return words[:1].lower() + words[1:]


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
    unproven = not situation.strong_absence
    return Confirmation(
        question="Mark as not executed?",
        lead=f"This can make the effect happen twice: nothing proves that it did not. {granted}"
        if unproven
        else granted,
        will="The claim is settled as not happened, and the agent is told so.",
        will_not=f"Nothing is sent to {situation.provider} by this desk."
        + (" An effect of an earlier attempt, if there is one, is not undone." if unproven else ""),
        undo=_undo(situation),
        button="It did not happen",
        harm=unproven,
    )


def _release_same(situation: Situation) -> Confirmation:
    until = situation.safe_retry_until
    closes = instant_words(until, situation.now) if until is not None else "the window closes"
    provider = situation.provider
    return Confirmation(
        question="Release this claim?",
        lead=f"The runtime may send the same request with the same key, once, until {closes}"
        + (f" ({duration_words((until - situation.now).total_seconds())})." if until else "."),
        will=f"If the first request did succeed, {provider} returns its saved result, not a second "
        f"effect. If {provider} saved an error (for example 500), the retry gets that error again.",
        will_not="No new key is made. If nobody takes it up in time, the call is unknown again.",
        undo=_undo(situation),
        button="Release with the same key",
    )


def _release_new(situation: Situation) -> Confirmation:
    provider = situation.provider
    return Confirmation(
        question="Release with a new key?",
        lead=f"This can make the effect happen twice{_of_amount(situation, ', ')}. "
        f"{_why_no_longer_safe(situation)}, and nothing proves that no attempt did it.",
        will="The runtime may send one more request, under a new key, which "
        f"{provider} will treat as a first request."
        if situation.keyed
        else f"The runtime may send one more request, which {provider} will treat as a new one.",
        will_not="An effect of an earlier attempt, if there is one, is not undone or refunded.",
        undo=_undo(situation),
        button="Release with a new key" if situation.keyed else "Allow one more run",
        harm=True,
    )


def _why_no_longer_safe(situation: Situation) -> str:
    """Why the old key protects nothing, as the beginning of a sentence."""
    until = situation.safe_retry_until
    if not situation.keyed:
        return "This tool sends no key"
    if situation.fresh_key:
        return "A refusal is stored under the old key"
    if until is None:
        return "How long the old key is honoured is not published"
    if until <= situation.now:
        ago = duration_words((situation.now - until).total_seconds())
        return f"The old key is no longer honoured (closed {ago} ago)"
    return f"The old key holds until {instant_words(until, situation.now)}"


def _of_amount(situation: Situation, before: str) -> str:
    money = situation.money
    return f"{before}{money.figure} {money.currency}" if money is not None else ""


def _lost(situation: Situation) -> Confirmation:
    heard = (
        " The worker gave a sign of life just now: it may be about to act."
        if situation.worker_heard_of
        else ""
    )
    return Confirmation(
        question="Declare this worker lost?",
        lead=f"The call becomes unknown.{heard}",
        will="Whatever the old worker still reports is kept as evidence; it can no longer finish "
        "this call.",
        will_not=f"Nothing is sent to {situation.provider}, and nobody may run the call again yet.",
        undo=_undo(situation),
        button="Declare the worker lost",
        harm=situation.worker_heard_of,
    )


def _settle(situation: Situation) -> Confirmation:
    return Confirmation(
        question="Settle the conflict?",
        lead=f"{len(situation.effects)} effects are known: {', '.join(situation.effects)}. Say "
        "which one stands, and what was done about the rest.",
        will="The claim is settled as happened, once, as the effect that stands. Another effect "
        "that turns up later opens the conflict again.",
        will_not=f"Nothing is sent to {situation.provider}: this desk refunds and cancels nothing.",
        undo=_undo(situation),
        button="Settle the conflict",
    )


def _reopen(situation: Situation) -> Confirmation:
    return Confirmation(
        question="Reopen?",
        lead="The call goes back to unknown; what the agent was told is marked withdrawn.",
        will="Every answer and report from before counts no more, until it is seen anew. Look-ups "
        "start again.",
        will_not=f"Nothing is sent to {situation.provider}, and no attempt is granted. The agent "
        "may already have acted on what it was told; that is not undone.",
        undo=_undo(situation),
        button="Reopen",
    )


def _allow(situation: Situation) -> Confirmation:
    return Confirmation(
        question="Allow the held request?",
        lead="This can make the effect happen twice: it asks for the same thing as this call.",
        will="The request's next try is granted, once, as an operation of its own. This call stays "
        "as it is.",
        will_not=f"Nothing is sent to {situation.provider} by this desk, and no other request is "
        "let through.",
        undo="Not possible: it is in force at once. Only that very request may use it.",
        button="Allow it, once",
        harm=True,
    )


def _close(situation: Situation) -> Confirmation:
    return Confirmation(
        question="Close without a retry?",
        lead="The agent is told: outcome unknown, do not retry.",
        will="The call stays unknown in reports and counts as exposure"
        f"{_of_amount(situation, ' of ')}.",
        will_not=f"Nothing is sent to {situation.provider}, and no further attempt is granted.",
        undo=_undo(situation),
        button="Stop: do not retry",
    )


_TEXTS = {
    ActionName.HAPPENED: _happened,
    ActionName.NOT_HAPPENED: _not_happened,
    ActionName.RELEASE_SAME: _release_same,
    ActionName.RELEASE_NEW: _release_new,
    ActionName.LOST: _lost,
    ActionName.CLOSE: _close,
    ActionName.SETTLE: _settle,
    ActionName.REOPEN: _reopen,
    ActionName.ALLOW: _allow,
}
REVIEWED = frozenset(_TEXTS)
"""The actions that have a review; the others decide nothing."""
CHOSEN = REVIEWED - {ActionName.ALLOW}
"""The decisions about the call itself, chosen from one list; an allowance is about a request."""
