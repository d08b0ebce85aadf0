"""Plays one operation with real worker processes: its first delivery, and who asks again."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from reconcile.sandbox import crew
from reconcile.sandbox.crew import Delivery
from reconcile.sandbox.faults import Fault
from reconcile.sandbox.jobs import Job, Mishap, Stage, World
from reconcile.sandbox.stories import Again, Operation
from reconcile.sandbox.tools import ToolName

FIRST_TURN: Final = 1
FROZEN_PAST_LEASE_SECONDS: Final = 1.5
"""How much longer than its lease a worker stays frozen."""
FROZEN_SECONDS_MAX: Final = 15.0


@dataclass(slots=True)
class Played:
    """One operation and everybody who was sent for it, first one first."""

    operation: Operation
    deliveries: list[Delivery] = field(default_factory=list)

    @property
    def asked_again(self) -> bool:
        return len(self.deliveries) > 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Direction:
    """What every operation of a run has in common. `payments` are what a refund refunds."""

    world: World
    conversation_prefix: str
    lease_seconds: float
    payments: Mapping[str, str]
    deliver: Callable[[World, Job], Delivery] = crew.deliver

    @property
    def claims(self) -> bool:
        return self.world.ledger_url is not None


def play(direction: Direction, operation: Operation) -> Played:
    """Play an operation to its end: every worker that was sent for it has ended."""
    played = Played(operation=operation)
    first = _send(direction, played, first_job(direction, operation))
    if operation.trouble.mishap.freezes:
        _play_frozen(direction, played, first)
    elif operation.trouble.mishap.kills:
        first.await_end()
        _send(direction, played, _again(first.job, Again.REDELIVERED))
    elif operation.again is Again.AFTER_DOUBT:
        _play_doubted(direction, played, first)
    elif operation.again is not Again.NO:
        _play_overtaken(direction, played, first)
    for delivery in played.deliveries:
        delivery.await_end()
    if not direction.claims:
        _try_once_more(direction, played)
    return played


def _play_frozen(direction: Direction, played: Played, first: Delivery) -> None:
    """Freeze the first worker past its lease, send another meanwhile, then wake the first.

    One that froze before it asked whether it may send is woken soon, since only its own word can
    end the doubt; one on the verge of sending is woken when the other has done the work.
    """
    first.await_stage(Stage.FROZEN, Stage.ENDED)
    second = _send(direction, played, _again(first.job, Again.REDELIVERED))
    crew.pause(direction.lease_seconds + FROZEN_PAST_LEASE_SECONDS)
    if played.operation.trouble.mishap is Mishap.FROZEN_BEFORE_SEND:
        second.await_end_within(FROZEN_SECONDS_MAX)
    first.wake()


def _play_overtaken(direction: Direction, played: Played, first: Delivery) -> None:
    """Let another worker be asked for the same while the first is at work.

    What a later turn asks for after the first call is known to have happened is another purchase.
    So the first one does not send before the second has had its answer.
    """
    first.await_stage(Stage.GRANTED, Stage.ENDED)
    second = _send(direction, played, _again(first.job, played.operation.again))
    if first.job.waits_for_a_word:
        second.await_stage(Stage.TOLD, Stage.GRANTED)
        first.go_on()


def _play_doubted(direction: Direction, played: Played, first: Delivery) -> None:
    """Let the model ask once more, one turn after it was told that nobody knows.

    By then the ledger may have found out. The model has not heard of it, so what it asks for is no
    other purchase.
    """
    first.await_stage(Stage.TOLD, Stage.ENDED)
    told = first.last
    if told is not None and told.status == "unknown":
        first.await_end()
        _send(direction, played, _again(first.job, Again.AFTER_DOUBT))


def _try_once_more(direction: Direction, played: Played) -> None:
    """Without a ledger an agent that was told "failed" calls the tool again; that is all it can."""
    last = played.deliveries[-1]
    if last.last is None or last.last.status != "completed":
        again = _send(direction, played, _again(last.job, Again.REDELIVERED))
        again.await_end()


def first_job(direction: Direction, operation: Operation) -> Job:
    """The first delivery of an operation, with everything that goes wrong with it."""
    conversation = f"{direction.conversation_prefix}-{operation.conversation}"
    return Job(
        worker=f"worker-{operation.conversation}-{operation.position}",
        conversation=conversation,
        # The calls of one conversation follow each other, with room for a turn that asks again.
        turn_index=FIRST_TURN + 2 * operation.position,
        position=0,
        response_id=f"msg_{uuid.uuid4().hex}",
        call_id=f"toolu_{uuid.uuid4().hex}",
        delivery_count=1,
        tool=operation.tool,
        arguments=arguments(operation, direction.payments),
        fault=operation.trouble.fault,
        fault_seconds=operation.trouble.fault_seconds,
        mishap=operation.trouble.mishap,
        discount=operation.discount,
        gives_up=operation.gives_up,
        waits_for_a_word=operation.again is Again.NEXT_TURN,
    )


def arguments(operation: Operation, payments: Mapping[str, str]) -> dict[str, Any]:
    """What the model asks for."""
    money = {"amount": operation.amount, "currency": "eur", "order": operation.order}
    customer = {"customer": f"cus_Halden{operation.conversation:05d}"}
    match operation.tool:
        case ToolName.CHARGE_CARD:
            return {**money, **customer}
        case ToolName.REFUND_PAYMENT:
            return {**money, **customer, "payment": payments[operation.order]}
        case ToolName.SEND_TRANSFER:
            return {**money, "supplier": f"Supplier {operation.conversation}"}
        case ToolName.PAY_OUT:
            return {**money, "bank_account": operation.bank_account}
        case ToolName.SEND_LETTER:
            return {"order": operation.order, **customer, "subject": "About your order"}


def _again(job: Job, style: Again) -> Job:
    """The same call once more, untroubled."""
    calm = replace(
        job,
        worker=f"{job.worker}-again",
        fault=Fault.NONE,
        fault_seconds=None,
        mishap=Mishap.NONE,
        waits_for_a_word=False,
    )
    response_id, call_id = f"msg_{uuid.uuid4().hex}", f"toolu_{uuid.uuid4().hex}"
    match style:
        case Again.REDELIVERED | Again.NO:
            return replace(calm, delivery_count=job.delivery_count + 1)
        case Again.REISSUED:
            return replace(calm, response_id=response_id, call_id=call_id)
        case Again.NEXT_TURN | Again.AFTER_DOUBT:
            turn_index = job.turn_index + 1
            return replace(calm, turn_index=turn_index, response_id=response_id, call_id=call_id)


def _send(direction: Direction, played: Played, job: Job) -> Delivery:
    delivery = direction.deliver(direction.world, job)
    played.deliveries.append(delivery)
    return delivery
