"""A turn in a few words: its heading, and what may be done about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from effects.core.recovery_messages import CallAdvice, RecoveryStep
from effects.core.recovery_words import ADVICE, STEPS
from effects.core.vocabulary import Terminal
from ledger.turn_parts.calls import Dispatched

if TYPE_CHECKING:
    from ledger.turns import Turn, TurnStream

ANSWERS: Final = tuple((str(step), words) for step, words in STEPS.items())
"""The seven answers of the decision, in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallAdviceShown:
    position: int
    tool: str
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryShown:
    """What may be done about the turn, as its newest unfinished response has it. `done`: a response
    of the turn ended well, and nothing is asked again."""

    stream: TurnStream
    done: bool
    step: str
    calls: tuple[CallAdviceShown, ...]


def recovery_of_turn(turn: Turn) -> RecoveryShown | None:
    """The decision about the newest response that did not end well; None where there is none to
    decide about: no response was recorded."""
    if not turn.streams:
        return None
    unfinished = [one for one in turn.streams if one.terminal is not Terminal.SUCCESS]
    done = len(unfinished) < len(turn.streams)
    stream = (unfinished or list(turn.streams))[-1]
    decision = stream.recovery.decision or {}
    return RecoveryShown(
        stream=stream,
        done=done,
        step=str(decision.get("step", "")),
        calls=tuple(
            CallAdviceShown(
                position=step["position"],
                tool=step.get("tool") or "unnamed",
                words=ADVICE[CallAdvice(step["advice"])],
            )
            for step in decision.get("calls", ())
        ),
    )


def heading_of(turn: Turn) -> str:
    """How the turn ended and what was dispatched, in one or two sentences."""
    return " ".join(_sentences(turn))


def _sentences(turn: Turn) -> Iterator[str]:
    if turn.streams:
        ends = list(dict.fromkeys(stream.end for stream in turn.streams))
        many = len(turn.streams)
        begin = f"{many} responses: " if many > 1 else ""
        said = f"{begin}{'; '.join(ends)}."
        yield said[0].upper() + said[1:]
    asked = Counter(call.dispatched for call in turn.calls)
    told = [
        (asked[Dispatched.YES], "{} dispatched"),
        (asked[Dispatched.NO], "{} not dispatched"),
        (asked[Dispatched.CANNOT_TELL], "of {} nobody can tell"),
    ]
    parts = [words.format(n) for n, words in told if n]
    calls = f"{len(turn.calls)} call{'' if len(turn.calls) == 1 else 's'}"
    yield f"{calls}: {', '.join(parts)}." if parts else "No calls."


assert len(ANSWERS) == len(RecoveryStep)
