"""One worker process: it gets a job, calls the tool, waits for the outcome, and says what it heard.

What befalls it is real: it kills itself with SIGKILL, which no handler sees, and freezes itself
with SIGSTOP, from which only somebody else can wake it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace
from multiprocessing.connection import Connection
from typing import Any, Final
from urllib.parse import quote

import httpx2

from effects.client import Effect, Ledger, ToolCall, effect
from reconcile.sandbox.hands import NO_AUTHORITIES, Hands, Permit
from reconcile.sandbox.jobs import WAIT_FOR_A_WORD_SECONDS_MAX, Job, Mishap, Stage, Word, World

PR_SET_PDEATHSIG: Final = 1
ARRIVAL_POLL_SECONDS: Final = 0.02
KILL_SECONDS_MAX: Final = 5.0
LEDGER_AWAY: Final = "ledger_unavailable"
LEDGER_AWAY_PAUSE_SECONDS: Final = 0.5
CALLS_MAX: Final = 6
"""How often one worker makes the same call again, where that is proven to be safe."""

OPEN: Final = frozenset({"unknown", "in_flight", "held"})
"""Words after which an agent waits: nobody knows yet, or another call stands in the way."""


def run(world: World, job: Job, pipe: Connection) -> None:
    """The whole life of a worker process. `pipe` carries `Word`s to whoever started it."""
    _die_with_the_parent()
    run_job(world, job, pipe.send, lambda: pipe.poll(WAIT_FOR_A_WORD_SECONDS_MAX))
    pipe.close()


def run_job(
    world: World, job: Job, say: Callable[[Word], None], wait: Callable[[], object]
) -> None:
    """Do one job to its end, saying each `Stage`. Without a ledger the call is made once."""
    worker = _Worker(world, job, say, wait)
    if world.ledger_url is None:
        worker.call_bare()
    else:
        worker.call_claimed(world.ledger_url)


class _Worker:
    def __init__(
        self, world: World, job: Job, say: Callable[[Word], None], wait: Callable[[], object]
    ) -> None:
        self._world = world
        self._job = job
        self._hands = Hands(world, job)
        self._has_frozen = False
        self._killer: threading.Thread | None = None
        self._say = say
        self._wait = wait

    def call_claimed(self, ledger_url: str) -> None:
        """The agent's loop: call, and where the word is not final, wait and hear the outcome."""
        with Ledger(ledger_url, self._world.token) as ledger:
            tool = effect(
                ledger,
                tool=str(self._job.tool),
                effect_class=self._job.tool.effect_class,
                contract="stripe.v1" if self._job.tool.effect_class == "keyed_write" else None,
                object_from="id",
            )(self._tool)
            until = time.monotonic() + self._world.wait_seconds_max
            told = self._called(tool, until)
            self._tell(Stage.TOLD, told)
            for _ in range(CALLS_MAX):
                if told.status in OPEN:
                    told = self._heard(ledger, told, until)
                if not told.may_call_again or self._job.gives_up or time.monotonic() >= until:
                    break
                told = self._called(tool, until)
            self._tell(Stage.ENDED, told)

    def _called(self, tool: Callable[..., Effect], until: float) -> Effect:
        """What the tool call came to. While the ledger is away nothing is sent, so the same call is
        simply made again."""
        while True:
            told = tool(self._at(), **self._job.arguments)
            if told.status != LEDGER_AWAY or time.monotonic() >= until:
                return told
            time.sleep(LEDGER_AWAY_PAUSE_SECONDS)

    def _heard(self, ledger: Ledger, told: Effect, until: float) -> Effect:
        """The outcome, or the last word if none came in time."""
        held_by = told.answer.blocker if told.answer is not None else None
        claim_id = told.claim_id or held_by
        if claim_id is None:
            return told
        return ledger.wait(claim_id, max(0.0, until - time.monotonic()))

    def call_bare(self) -> None:
        """What agents do without a ledger: call, and report whatever exception came."""
        marker = f"bare_{uuid.uuid4().hex}"
        try:
            self._send(Permit(key=None, marker=marker, check=lambda: None))
        except Exception as error:  # noqa: BLE001 - to such an agent every exception is a failure.
            told = {"status": "failed", "detail": str(error)}
        else:
            told = {"status": "completed"}
        said = Word(
            stage=Stage.TOLD,
            pid=os.getpid(),
            status=told["status"],
            for_model=told,
            sends=self._hands.sends,
        )
        self._say(said)
        self._say(replace(said, stage=Stage.ENDED))

    def _at(self) -> ToolCall:
        job = self._job
        return ToolCall(
            conversation=job.conversation,
            turn_index=job.turn_index,
            position=job.position,
            response_id=job.response_id,
            call_id=job.call_id,
            worker=job.worker,
            delivery_count=job.delivery_count,
        )

    def _tool(self, call: Any, **_arguments: Any) -> Any:
        key = call.key if self._job.tool.effect_class == "keyed_write" else None
        return self._send(Permit(key=key, marker=call.marker, check=call.check_send))

    def _send(self, permit: Permit) -> Any:
        """Carry the tool out, with this job's mishap at its first send."""
        if self._hands.sends:
            return self._hands.carry_out(permit)
        self._say(Word(stage=Stage.GRANTED, pid=os.getpid()))
        if self._job.waits_for_a_word:
            self._wait()
        try:
            return self._hands.carry_out(
                Permit(key=permit.key, marker=permit.marker, check=self._with_mishap(permit))
            )
        finally:
            if self._killer is not None:
                # A quick provider answers before the kill comes; nobody hears of the answer.
                self._killer.join(KILL_SECONDS_MAX)

    def _with_mishap(self, permit: Permit) -> Callable[[], None]:
        match self._job.mishap:
            case Mishap.NONE:
                return permit.check
            case Mishap.KILLED_BEFORE_SEND:
                return lambda: _then(permit.check, _kill)
            case Mishap.KILLED_AFTER_SEND:
                return lambda: _then(permit.check, lambda: self._kill_on_arrival(permit.marker))
            case Mishap.FROZEN_BEFORE_CHECK:
                return lambda: _then(self._freeze, permit.check)
            case Mishap.FROZEN_BEFORE_SEND:
                return lambda: _then(permit.check, self._freeze)

    def _freeze(self) -> None:
        if self._has_frozen:
            return  # It asked again after it was woken too late.
        self._has_frozen = True
        self._say(Word(stage=Stage.FROZEN, pid=os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)

    def _kill_on_arrival(self, marker: str) -> None:
        """Die between the send and the answer: as soon as the provider has the request."""
        url = f"{self._world.provider_url}/_sandbox/arrived?marker={quote(marker)}"

        def watch() -> None:
            with httpx2.Client(verify=NO_AUTHORITIES) as client:
                while client.get(url).json()["arrived"] == 0:
                    time.sleep(ARRIVAL_POLL_SECONDS)
            _kill()

        self._killer = threading.Thread(target=watch, daemon=True)
        self._killer.start()

    def _tell(self, stage: Stage, told: Effect) -> None:
        if self._world.speaks:
            self._speak(stage, told)
        self._say(
            Word(
                stage=stage,
                pid=os.getpid(),
                status=told.status,
                for_model=told.for_model,
                claim_id=told.claim_id,
                sends=self._hands.sends,
            )
        )

    def _speak(self, stage: Stage, told: Effect) -> None:
        """Print what the model is given, as the agent's own process hears it."""
        verb = "is told" if stage is Stage.TOLD else "was given, at the end,"
        sys.stdout.write(f"{self._job.order} {self._job.tool} {verb} {told.text}\n")
        sys.stdout.flush()


def _then(*steps: Callable[[], None]) -> None:
    for step in steps:
        step()


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _die_with_the_parent() -> None:
    """Let nothing of a storm outlive it: a frozen worker could not even be asked to stop."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
