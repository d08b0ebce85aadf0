"""The lab's agent: two tools, one call of one of them, and what may go wrong with it on the way.

It knows no Django: `python -m tests.faultlab.agent JOB` is an agent's process, that dies and
freezes on demand. It prints a line when its request was answered, and its effect at the end.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Final

import httpx2

from effects.client import Call, Effect, Ledger, Patience, Tool, ToolCall, effect
from reconcile.sandbox.faults import FAULT_HEADER
from reconcile.sandbox.hands import NO_AUTHORITIES
from reconcile.sandbox.tools import AGENT_STRIPE_KEY, PLAIN_TOKEN

ANSWERED: Final = "answered"
ARGUMENTS: Final = {"amount": 14_900, "currency": "eur", "to": "sup_1"}
QUICK: Final = Patience(claim_tries_max=2, report_tries_max=2, pause_seconds_first=0.05)


class Kind(StrEnum):
    """A tool whose provider knows no keys, and one whose provider does."""

    TRANSFER = "transfer"
    CHARGE = "charge"


class Mishap(StrEnum):
    """What befalls the agent when the provider has answered, or when the ledger was told."""

    NONE = "none"
    TIMED_OUT = "builtin TimeoutError"
    KILLED = "kill -9"
    FROZEN = "SIGSTOP, then it goes on"
    FROZEN_AND_FAILED = "SIGSTOP, then it fails"
    NO_JSON = "a result that has no JSON form"
    KILLED_AFTER_REPORT = "kill -9, when the ledger knows"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One call of one tool, as a model, a queue and a network bring it about.

    `case` names what is counted at the provider, `fault` is what its request asks the provider for.
    Not `guarded`: nothing is claimed, which shows that the fault does double an effect.
    """

    ledger: str
    token: str
    provider: str
    case: str
    kind: Kind = Kind.TRANSFER
    conversation: str = "c-1"
    turn_index: int = 1
    call_id: str | None = "toolu_0123456789abcdef"
    response_id: str | None = "msg_1"
    caller_key: str | None = None
    delivery_count: int = 1
    amount: int = ARGUMENTS["amount"]  # type: ignore[assignment] # the table above
    fault: str = ""
    mishap: Mishap = Mishap.NONE
    request_seconds: float = 1.0
    guarded: bool = True
    credentials: str = AGENT_STRIPE_KEY

    @property
    def arguments(self) -> dict[str, Any]:
        return {**ARGUMENTS, "amount": self.amount}

    @property
    def at(self) -> ToolCall:
        return ToolCall(
            conversation=self.conversation,
            turn_index=self.turn_index,
            call_id=self.call_id,
            response_id=self.response_id,
            caller_key=self.caller_key,
            delivery_count=self.delivery_count,
        )


def opened(job: Job) -> Ledger:
    """The ledger by the way that the job's address says."""
    return Ledger(job.ledger, job.token, patience=QUICK)


def tool_of(ledger: Ledger, job: Job) -> Tool:
    """The job's tool, declared as its author would."""
    keyed = job.kind is Kind.CHARGE

    @effect(
        ledger,
        tool=job.kind,
        effect_class="keyed_write" if keyed else "unkeyed_write",
        contract="stripe.v1" if keyed else None,
        object_from="id",
    )
    def pay(call: Call, **_arguments: Any) -> Any:
        call.check_send()
        answer = send(job, key=call.key if keyed else None, marker=call.marker)
        return befall(job.mishap, answer)

    return pay


def ask(ledger: Ledger, job: Job) -> Effect:
    """Claims, carries out and reports the job's call."""
    return tool_of(ledger, job)(job.at, **job.arguments)


def send(job: Job, *, key: str | None = None, marker: str = "none") -> Any:
    """The tool's one request, with nothing around it."""
    fault = {FAULT_HEADER: job.fault} if job.fault else {}
    with httpx2.Client(timeout=job.request_seconds, verify=NO_AUTHORITIES) as client:
        if job.kind is Kind.TRANSFER:
            body = {
                "amount": job.amount,
                "currency": ARGUMENTS["currency"],
                "destination": ARGUMENTS["to"],
                "reference": marker,
                "metadata": {"case": job.case},
            }
            said = {"Authorization": f"Bearer {PLAIN_TOKEN}", **fault}
            answer = client.post(f"{job.provider}/plain/transfers", json=body, headers=said)
        else:
            form = {
                "amount": str(job.amount),
                "currency": str(ARGUMENTS["currency"]),
                "confirm": "true",
                "payment_method": "pm_card_visa",
                "metadata[counterfoil]": marker,
                "metadata[case]": job.case,
            }
            keyed = {} if key is None else {"Idempotency-Key": key}
            said = {"Authorization": f"Bearer {job.credentials}", **keyed, **fault}
            answer = client.post(f"{job.provider}/v1/payment_intents", data=form, headers=said)
        answer.raise_for_status()
        return answer.json()


def befall(mishap: Mishap, answer: Any) -> Any:
    """What the tool makes of an answer that has come."""
    if mishap in {Mishap.KILLED, Mishap.FROZEN, Mishap.FROZEN_AND_FAILED}:
        print(ANSWERED, flush=True)
        os.kill(os.getpid(), signal.SIGKILL if mishap is Mishap.KILLED else signal.SIGSTOP)
    if mishap in {Mishap.TIMED_OUT, Mishap.FROZEN_AND_FAILED}:
        raise TimeoutError("the tool gave up waiting")
    return {"id": answer["id"], "proof": {1, 2}} if mishap is Mishap.NO_JSON else answer


def to_text(job: Job) -> str:
    return json.dumps(asdict(job))


def of_text(text: str) -> Job:
    said = json.loads(text)
    return replace(Job(**said), kind=Kind(said["kind"]), mishap=Mishap(said["mishap"]))


def main() -> None:
    job = of_text(sys.argv[1])
    if not job.guarded:
        befall(job.mishap, send(job))
        return
    with opened(job) as ledger:
        print(ask(ledger, job).text, flush=True)
        if job.mishap is Mishap.KILLED_AFTER_REPORT:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    main()
