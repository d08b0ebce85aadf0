"""Who asks for what, what goes wrong, and who asks again: a pure function of a number and a seed.

A storm is one list of operations. Each is one tool call that a model means once; around it stand a
fault of the provider, a mishap of the worker, and perhaps a second asker.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from reconcile.sandbox.faults import Fault
from reconcile.sandbox.jobs import Mishap
from reconcile.sandbox.tools import ToolName

CALLS_PER_CONVERSATION: Final = 2
EACH_FAULT_MIN: Final = 5
EACH_MISHAP_MIN: Final = 3
ASKED_AGAIN_SHARE: Final = 0.30
CONVERSATIONS_MIN: Final = 36
"""Fewer hold no room for every fault, every mishap, and calls that simply go well."""

DELAY_SECONDS: Final = 1.2
REQUEST_SECONDS_MAX: Final = 0.7
"""How long an agent of a storm waits for an answer: less than the delay, so that the effect comes
after it has given up; the difference is less than what the tools' contract says."""
HOLD_SECONDS: Final = 2.0
"""How long the provider works while a worker is killed between send and answer."""
LATE_COMMIT_SECONDS: Final = 3.0
LOSES_THE_ANSWER: Final = frozenset({Fault.DROP_AFTER_COMMIT, Fault.CUT_MID_BODY})
"""Faults after which the model is told "unknown" although the effect is there."""


class Again(StrEnum):
    """How the same operation is asked for a second time."""

    NO = "no"
    REDELIVERED = "redelivered"  # the queue hands the same job to another worker
    REISSUED = "reissued"  # the turn is requested again: a new response, a new call id
    NEXT_TURN = "next_turn"  # the model asks once more in its next turn
    AFTER_DOUBT = "after_doubt"  # the same, after it was told "unknown" and the truth may be known


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """What goes wrong with one operation."""

    fault: Fault = Fault.NONE
    mishap: Mishap = Mishap.NONE

    @property
    def needs_a_key(self) -> bool:
        """Whether, without a key, it is a second effect, or an outcome that only people can tell.

        A gateway that sends twice, and a worker that is frozen on the verge of sending.
        """
        return self.fault is Fault.GATEWAY_DUPLICATE or self.mishap is Mishap.FROZEN_BEFORE_SEND

    @property
    def fault_seconds(self) -> float | None:
        """How long the fault lasts, where it lasts."""
        match self.fault:
            case Fault.DELAY:
                return HOLD_SECONDS if self.mishap.kills else DELAY_SECONDS
            case Fault.ERROR_500_THEN_LATE_COMMIT:
                return LATE_COMMIT_SECONDS
            case _:
                return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One tool call that is meant once. `amount` is in the currency's smallest unit.

    `discount` is what the tool takes off by itself. `bank_account` is where a payout goes: some
    accounts let it fail after it was paid. `gives_up`: the agent does not call again, even
    where that is proven to be safe.
    """

    conversation: int
    position: int
    order: str
    tool: ToolName
    amount: int
    trouble: Trouble
    again: Again = Again.NO
    discount: int = 0
    gives_up: bool = False
    bank_account: str = "ba_usual"


def storm(conversations: int, seed: int) -> tuple[Operation, ...]:
    """The operations of a storm. Raises ValueError if there is no room for every fault."""
    if conversations < CONVERSATIONS_MIN:
        raise ValueError(
            f"{conversations} conversations hold no room for every fault at least "
            f"{EACH_FAULT_MIN} times; take {CONVERSATIONS_MIN} or more"
        )
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret.
    count = conversations * CALLS_PER_CONVERSATION
    troubles = _troubles(count)
    tools = _tools(troubles)
    asked = _asked_again(troubles, chance)
    cast = list(zip(troubles, tools, asked, strict=True))
    chance.shuffle(cast)
    return tuple(
        Operation(
            conversation=number // CALLS_PER_CONVERSATION,
            position=number % CALLS_PER_CONVERSATION,
            order=f"H-{seed}-{number:04d}",
            tool=tool,
            amount=chance.randrange(900, 90_000),
            trouble=trouble,
            again=again,
        )
        for number, (trouble, tool, again) in enumerate(cast)
    )


def _troubles(count: int) -> list[Trouble]:
    """Every fault and every mishap as often as promised; about a fifth goes well."""
    faults = [fault for fault in Fault if fault is not Fault.NONE]
    times = max(EACH_FAULT_MIN, count * 7 // (10 * len(faults)))
    troubles = [Trouble(fault=fault) for fault in faults for _ in range(times)]
    mishaps = max(EACH_MISHAP_MIN, count // 25)
    for _ in range(mishaps):
        troubles += [
            Trouble(mishap=Mishap.KILLED_BEFORE_SEND),
            Trouble(mishap=Mishap.KILLED_AFTER_SEND, fault=Fault.DELAY),
            Trouble(mishap=Mishap.FROZEN_BEFORE_SEND),
            Trouble(mishap=Mishap.FROZEN_BEFORE_CHECK),
        ]
    return troubles + [Trouble()] * (count - len(troubles))


def _tools(troubles: list[Trouble]) -> list[ToolName]:
    """A tool for each trouble.

    A 500 without an effect can never be proven to be one, with any look-up. So most of them meet
    the transfer: what stays unknown for ever is to be rare among the calls with a key.
    """
    keyed = _turns(ToolName.CHARGE_CARD, ToolName.CHARGE_CARD, ToolName.REFUND_PAYMENT)
    mixed = _turns(
        ToolName.CHARGE_CARD, ToolName.REFUND_PAYMENT, ToolName.SEND_TRANSFER, ToolName.CHARGE_CARD
    )
    bank = _turns(
        ToolName.SEND_TRANSFER,
        ToolName.SEND_TRANSFER,
        ToolName.CHARGE_CARD,
        ToolName.SEND_TRANSFER,
        ToolName.SEND_LETTER,
    )
    chosen = []
    for trouble in troubles:
        if trouble.needs_a_key or trouble.mishap.kills:
            chosen.append(next(keyed))
        elif trouble.fault is Fault.ERROR_500:
            chosen.append(next(bank))
        else:
            chosen.append(next(mixed))
    return chosen


def _turns(*tools: ToolName) -> Iterator[ToolName]:
    while True:
        yield from tools


def _asked_again(troubles: list[Trouble], chance: random.Random) -> list[Again]:
    """Who is asked for again, and how. A worker that falls silent is always followed by another."""
    asked = [
        Again.REDELIVERED if trouble.mishap is not Mishap.NONE else Again.NO for trouble in troubles
    ]
    quiet = [place for place, again in enumerate(asked) if again is Again.NO]
    wanted = -(-len(troubles) * 35 // 100) - (len(troubles) - len(quiet))
    styles = _cycle_of(Again.REISSUED, Again.NEXT_TURN, Again.REDELIVERED)
    for place in chance.sample(quiet, max(wanted, len(troubles) // 10)):
        asked[place] = next(styles)
    for place in quiet:
        if asked[place] is Again.NO and troubles[place].fault in LOSES_THE_ANSWER:
            asked[place] = Again.AFTER_DOUBT
    return asked


def _cycle_of(*styles: Again) -> Iterator[Again]:
    while True:
        yield from styles
