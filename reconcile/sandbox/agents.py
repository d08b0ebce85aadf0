"""The demo's agents: real processes with real traffic, modest and without end.

They begin with one of everything that can go wrong, so that there is something to see within a
minute, and go on with a call now and then. Some calls only a person can settle; their agents wait
for the decision and print it. There are never more of those than a few.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import stripe

from reconcile.sandbox.conduct import Direction, play
from reconcile.sandbox.faults import Fault
from reconcile.sandbox.jobs import Mishap, World
from reconcile.sandbox.scoreboard import CHECKOUT, SOURCE_FIELD
from reconcile.sandbox.stories import Again, Operation, Trouble
from reconcile.sandbox.tools import AGENT_STRIPE_KEY, DEMO_BOUNDS, ToolName

BETWEEN_SECONDS: Final = 15.0
BETWEEN_SECONDS_AT_FIRST: Final = 0.5
WAIT_SECONDS_MAX: Final = 12 * 60 * 60.0
REQUEST_SECONDS_MAX: Final = 3.0
WAITING_FOR_A_PERSON_MAX: Final = 6
"""How many agents may wait for people before no more of such calls are made."""
DISCOUNT: Final = 500
FAILS_LATE: Final = "ba_fails_after_paid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One kind of call, and how its trouble ends."""

    tool: ToolName
    trouble: Trouble = Trouble()  # noqa: RUF009 - it is frozen.
    again: Again = Again.NO
    discount: int = 0
    bank_account: str = "ba_usual"
    gives_up: bool = False
    needs_a_person: bool = False


def _met(fault: Fault) -> Trouble:
    return Trouble(fault=fault)


OPENING: Final = (
    Recipe(tool=ToolName.CHARGE_CARD),
    # Paid out, and it fails after it was paid: late truth, which only a webhook tells in time.
    Recipe(tool=ToolName.PAY_OUT, bank_account=FAILS_LATE),
    # The worker dies between send and answer. Its webhook settles the call while the lease still
    # runs, so before anybody would ask.
    Recipe(
        tool=ToolName.CHARGE_CARD,
        trouble=Trouble(mishap=Mishap.KILLED_AFTER_SEND, fault=Fault.DELAY),
    ),
    # Settled by a look-up: it happened.
    Recipe(tool=ToolName.CHARGE_CARD, trouble=_met(Fault.DROP_AFTER_COMMIT)),
    Recipe(tool=ToolName.SEND_TRANSFER, trouble=_met(Fault.CUT_MID_BODY)),
    # Settled by a look-up: it did not happen.
    Recipe(tool=ToolName.CHARGE_CARD, trouble=_met(Fault.DROP_BEFORE), gives_up=True),
    Recipe(tool=ToolName.SEND_TRANSFER, trouble=_met(Fault.DROP_BEFORE), gives_up=True),
    # Only a person can tell: nobody can be asked; what is found differs; a 500, and 45 minutes.
    Recipe(tool=ToolName.SEND_LETTER, trouble=_met(Fault.DROP_AFTER_COMMIT), needs_a_person=True),
    Recipe(
        tool=ToolName.CHARGE_CARD,
        trouble=_met(Fault.DROP_AFTER_COMMIT),
        discount=DISCOUNT,
        needs_a_person=True,
    ),
    Recipe(tool=ToolName.REFUND_PAYMENT, trouble=_met(Fault.ERROR_500), needs_a_person=True),
    Recipe(tool=ToolName.CHARGE_CARD, trouble=Trouble(mishap=Mishap.KILLED_BEFORE_SEND)),
    Recipe(tool=ToolName.REFUND_PAYMENT, trouble=Trouble(mishap=Mishap.FROZEN_BEFORE_SEND)),
    Recipe(tool=ToolName.CHARGE_CARD, trouble=_met(Fault.DROP_AFTER_COMMIT), again=Again.REISSUED),
    Recipe(tool=ToolName.CHARGE_CARD, trouble=_met(Fault.DROP_BEFORE), again=Again.NEXT_TURN),
    Recipe(tool=ToolName.CHARGE_CARD, trouble=_met(Fault.REFUSE_402), gives_up=True),
    Recipe(tool=ToolName.REFUND_PAYMENT, trouble=_met(Fault.ERROR_500_THEN_LATE_COMMIT)),
)
EVERYDAY: Final = (
    *(Recipe(tool=tool) for tool in ToolName),
    Recipe(tool=ToolName.REFUND_PAYMENT, trouble=_met(Fault.RATE_LIMIT_429)),
    Recipe(
        tool=ToolName.SEND_TRANSFER,
        trouble=_met(Fault.DROP_AFTER_COMMIT),
        again=Again.REDELIVERED,
    ),
    Recipe(tool=ToolName.CHARGE_CARD, trouble=_met(Fault.GATEWAY_DUPLICATE)),
    *OPENING,
)


def work(provider_url: str, ledger_url: str, token: str, *, seed: int) -> None:
    """Make calls until the process is stopped."""
    run = time.strftime("%d%H%M%S")
    direction = Direction(
        world=World(
            provider_url=provider_url,
            ledger_url=ledger_url,
            token=token,
            request_seconds_max=REQUEST_SECONDS_MAX,
            wait_seconds_max=WAIT_SECONDS_MAX,
            speaks=True,
        ),
        conversation_prefix=f"demo-{run}",
        lease_seconds=DEMO_BOUNDS.lease_seconds,
        payments={},
    )
    chance = random.Random(seed)  # noqa: S311 - a story, not a secret.
    waiting: list[threading.Thread] = []
    for number, recipe in enumerate(_recipes(chance)):
        waiting = [thread for thread in waiting if thread.is_alive()]
        if not (recipe.needs_a_person and len(waiting) >= WAITING_FOR_A_PERSON_MAX):
            operation = _operation(number, run, recipe, amount=chance.randrange(1_900, 29_900))
            thread = threading.Thread(target=_play, args=(direction, operation), daemon=True)
            thread.start()
            if recipe.needs_a_person:
                waiting.append(thread)
        time.sleep(BETWEEN_SECONDS_AT_FIRST if number < len(OPENING) else BETWEEN_SECONDS)


def _recipes(chance: random.Random) -> Iterator[Recipe]:
    return itertools.chain(OPENING, (chance.choice(EVERYDAY) for _ in itertools.count()))


def _operation(number: int, run: str, recipe: Recipe, *, amount: int) -> Operation:
    return Operation(
        conversation=number,
        position=0,
        order=f"H-{run}-{number:03d}",
        tool=recipe.tool,
        amount=amount,
        trouble=recipe.trouble,
        again=recipe.again,
        discount=recipe.discount,
        bank_account=recipe.bank_account,
        gives_up=recipe.gives_up,
    )


def _play(direction: Direction, operation: Operation) -> None:
    if operation.tool is ToolName.REFUND_PAYMENT:
        paid = checkout(direction.world.provider_url, operation)
        direction = replace(direction, payments={operation.order: paid})
    play(direction, operation)


def checkout(provider_url: str, operation: Operation) -> str:
    """The payment that a refund refunds; the shop's own till took it, and no agent."""
    client = stripe.StripeClient(
        AGENT_STRIPE_KEY,
        base_addresses={"api": provider_url},
        http_client=stripe.RequestsClient(),
    )
    return client.v1.payment_intents.create(
        {
            "amount": operation.amount,
            "currency": "eur",
            "confirm": True,
            "payment_method": "pm_card_visa",
            "metadata": {"order": operation.order, SOURCE_FIELD: CHECKOUT},
        }
    ).id
