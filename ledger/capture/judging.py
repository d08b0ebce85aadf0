"""What is safe after a captured response, once somebody has said what had been dispatched. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from effects.core.recovery import ENDPOINTS, recover
from effects.core.recovery_messages import (
    CallFacts,
    Received,
    RecoveryDecision,
    RecoveryRecord,
    RequestFailure,
)
from effects.core.recovery_words import ADVICE, MECHANISMS, OBSERVATIONS, STEPS
from effects.core.streams import CallRecord, Death, Dispatched
from effects.core.streams.record import Where
from effects.core.vocabulary import Outcome, Terminal
from ledger.capture.reading import Capture
from ledger.turn_lanes import Drawing, Lane, Line, Mark, draw
from ledger.turn_parts.lines import TERMINAL_WORDS

DISPATCHED_WORDS: Final = {
    Dispatched.NOT_STARTED: "Not dispatched",
    Dispatched.IN_FLIGHT: "Dispatched, nothing came back",
    Dispatched.RETURNED: "Dispatched, and it returned",
}
ROWS: Final = (
    (Where.NOTHING_ANNOUNCED, "Nothing announced", "Ask the turn again"),
    (
        Where.ARGUMENTS_STREAMING,
        "Arguments streaming, nothing dispatched",
        "Ask again; the call did not run, and no result is written for it",
    ),
    (
        Where.OUTSTANDING,
        "A call dispatched and outstanding",
        "Find out first what became of it",
    ),
    (
        Where.RETURNED,
        "Dispatched and returned",
        "Ask again only where the claim answers the repeat with the stored result",
    ),
    (Where.ENDED, "The message ended", "Nothing to ask again"),
)
"""The five places at which a stream can die, and what is safe there."""

_STYLES: Final = {
    "complete": "b-happened",
    "partial": "d-next",
    "complete_but_unconfirmed": "b-flight",
    "invalid": "b-dup",
    "suspect": "b-unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """Where it died and what may be done, by the functions that the client and the API ask."""

    death: Death
    decision: RecoveryDecision
    step: str
    mechanism: str
    rests_on: tuple[str, ...]
    calls: tuple[str, ...]


def judged(capture: Capture, dispatched: Mapping[int, Dispatched], now: datetime) -> Judged:
    """What is safe, given what had been done with each call by its position; with nothing said of
    a call it was not dispatched. What was pasted is no kept result."""
    record = capture.record
    facts = tuple(_facts(call, dispatched) for call in record.calls)
    decision = recover(
        RecoveryRecord(
            terminal=record.terminal,
            result_recorded=False,
            received=Received.PARTIAL if capture.events else Received.NOTHING,
            operation_id=record.response_id,
            cursor=record.cursor,
            calls=facts,
        ),
        RequestFailure(in_stream=record.terminal is Terminal.ERROR_EVENT),
        ENDPOINTS[capture.protocol],
        now,
    )
    return Judged(
        death=record.where_it_died(dispatched),
        decision=decision,
        step=STEPS[decision.step],
        mechanism=MECHANISMS[decision.mechanism],
        rests_on=tuple(OBSERVATIONS[seen].says for seen in decision.observations),
        calls=tuple(ADVICE[step.advice] for step in decision.calls),
    )


def _facts(call: CallRecord, dispatched: Mapping[int, Dispatched]) -> CallFacts:
    done = dispatched.get(call.position, Dispatched.NOT_STARTED)
    return CallFacts(
        position=call.position,
        tool=(call.name or "")[:255] or None,
        arguments=call.state,
        dispatched=done,
        outcome=Outcome.UNKNOWN if done is Dispatched.IN_FLIGHT else None,
    )


# The drawing


def drawing_of(capture: Capture) -> Drawing:
    """The capture in lanes, by the numbers of its events: it says nothing of times."""
    record, last = capture.record, float(capture.events)
    whole = record.terminal in {Terminal.SUCCESS, Terminal.INCOMPLETE}
    label = TERMINAL_WORDS[record.terminal]
    stream = Mark(
        lane=Lane.STREAM,
        row="stream",
        at=1.0,
        until=last,
        style="b-stream",
        ink="t-ink",
        label=label,
        says=f"{label}, after {capture.events} events",
        href="#what",
        torn=not whole,
    )
    marks = [stream, *_call_marks(capture.record.calls, capture, last)]
    lines = []
    declared = record.terminal not in {Terminal.CUT, Terminal.CANCELLED}
    if declared and record.terminal_at is not None:
        lines.append(Line(at=record.terminal_at, words="last word", kind="now"))
    return draw(marks, lines, idle=True, marks_max=60)


def _call_marks(calls: Sequence[CallRecord], capture: Capture, last: float) -> list[Mark]:
    marks = []
    for call, span in zip(calls, capture.spans, strict=True):
        label = f"{call.name or 'unnamed'}: {str(call.state).replace('_', ' ')}"
        marks.append(
            Mark(
                lane=Lane.CALLS,
                row=str(call.position),
                at=float(span.began),
                until=float(span.ended) if span.ended else last,
                style=_STYLES[call.state],
                ink="t-2",
                label=label,
                says=f"{label}, call {call.position}, from event {span.began}",
                href=f"#call-{call.position}",
                torn=not span.ended,
                unsure=not span.ended,
            )
        )
    return marks
