"""The lab's real parts, and one scene of them for each row."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self

from effects.client import Effect, Ledger
from effects.core.vocabulary import EffectClass, TokenScope, Verdict
from effects.models import Tool, Workspace
from ledger import agents, append, auth, queries
from reconcile.sandbox.faults import Fault, Plan, Rule
from reconcile.sandbox.provider.context import STRIPE_TRUTH
from reconcile.sandbox.provider.plain import PLAIN_TRUTH
from reconcile.sandbox.provider.server import Provider
from tests.faultlab import agent
from tests.faultlab.agent import Job, Kind
from tests.faultlab.rows import NO_LEDGER
from tests.support.stack import ROOT

LEASE_SECONDS: Final = 1
WINDOW_SECONDS: Final = 24 * 60 * 60
PROCESS_SECONDS_MAX: Final = 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    """One way to the ledger, as an agent is told it."""

    url: str
    token: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lab:
    """A ledger by each of its ways, and the provider that counts."""

    ways: dict[str, Address]
    provider: Provider
    workspace_id: int

    @contextmanager
    def scene(self, way: str) -> Iterator[Scene]:
        """A scene of its own: nothing that happens in it is a repeat of another's."""
        address = Address(url="") if way == NO_LEDGER else self.ways[way]
        case = uuid.uuid4().hex
        job = Job(
            ledger=address.url,
            token=address.token,
            provider=self.provider.url,
            case=case,
            conversation=case,
            call_id=f"toolu_{case}",
            response_id=f"msg_{case}",
        )
        with Scene(lab=self, job=job) as scene:
            yield scene


@dataclass(slots=True, kw_only=True)
class Scene:
    """One row's own conversation, and everything that happens in it."""

    lab: Lab
    job: Job
    _ledger: Ledger | None = None
    _processes: list[Process] = field(default_factory=list)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.end()
        if self._ledger is not None:
            self._ledger.close()

    @property
    def ledger(self) -> Ledger:
        if self._ledger is None:
            self._ledger = agent.opened(self.job)
        return self._ledger

    def other(self, **changes: Any) -> Job:
        """This scene's job, but for the changes."""
        return replace(self.job, **changes)

    def ask(self, **changes: Any) -> Effect:
        """The call is made from this process."""
        return agent.ask(self.ledger, self.other(**changes))

    def spawn(self, **changes: Any) -> Process:
        """The call is made from a process of its own."""
        process = Process(self.other(**changes))
        self._processes.append(process)
        return process

    @property
    def effects(self) -> int:
        """How often the provider did it, by its own count."""
        return len(self.done)

    @property
    def done(self) -> list[dict[str, Any]]:
        return self.done_in(self.job.case)

    def done_in(self, case: str) -> list[dict[str, Any]]:
        store = self.lab.provider.world.store
        effects = store.effects(STRIPE_TRUTH) + store.effects(PLAIN_TRUTH)
        return [one for one in effects if one["metadata"].get("case") == case]

    def settled(self, effects: int) -> bool:
        """Whether the provider comes to that count, and stays there: what it works on is late."""
        return until(lambda: self.effects >= effects) and not until(
            lambda: self.effects > effects, seconds=0.5
        )

    @contextmanager
    def first_send_meets(self, fault: Fault) -> Iterator[None]:
        """Whatever is sent to the provider in the block meets the fault at its first send."""
        world = self.lab.provider.world
        world.plan = Plan(rules=(Rule(fault=fault, sends_max=1),))
        try:
            yield
        finally:
            world.plan = Plan()

    def release_with_same_key(self, effect: Effect) -> None:
        """A person permits one more attempt under the key that the provider knows."""
        claim_id = effect.claim_id
        assert claim_id is not None
        workspace_id = self.lab.workspace_id
        decision = append.NewDecision(
            verdict=Verdict.RELEASE_SAME,
            claim_version=queries.claim(workspace_id, claim_id).version,
            reason="the customer is waiting",
            rule="faultlab",
            hold_seconds=0,
        )
        append.decide(workspace_id, claim_id, decision)

    def lease_passes(self) -> None:
        time.sleep(LEASE_SECONDS + 0.15)


class Process:
    """An agent's process, seen from outside."""

    def __init__(self, job: Job) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faultlab.agent", agent.to_text(job)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
        )

    def await_answered(self) -> None:
        """Until the provider has answered it: the effect has happened, and it is dead or frozen."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line == agent.ANSWERED, f"the agent said {line!r}"

    def wake(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    def await_end(self) -> dict[str, Any]:
        """What the process told the model in the end; empty if it was killed."""
        said, _ = self._process.communicate(timeout=PROCESS_SECONDS_MAX)
        lines = said.splitlines()
        told: dict[str, Any] = (
            json.loads(lines[-1]) if lines and lines[-1] != agent.ANSWERED else {}
        )
        return told

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
        self._process.communicate()


def a_lab(url: str, provider: Provider) -> Lab:
    """A lab on the database of this process's Django, whose door is at `url`."""
    workspace, token = a_workspace()
    role = agents.create(workspace, "agents")
    ways = {"http": Address(url=url, token=token), "postgres": Address(url=role.url)}
    return Lab(ways=ways, provider=provider, workspace_id=workspace.pk)


def a_workspace() -> tuple[Workspace, str]:
    """A workspace with the lab's two tools, and a token for its agents."""
    name = f"faultlab-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    workspace = Workspace.objects.create(name=name, slug=name, created_at=queries.clock())
    bounds = {
        "lease_seconds": LEASE_SECONDS,
        "attempt_seconds_max": 20,
        "attempts_max": 4,
        "margin_seconds": 60,
    }
    Tool.objects.create(
        workspace=workspace, name=Kind.TRANSFER, effect_class=EffectClass.UNKEYED_WRITE, **bounds
    )
    Tool.objects.create(
        workspace=workspace,
        name=Kind.CHARGE,
        effect_class=EffectClass.KEYED_WRITE,
        contract="stripe.v1",
        window_seconds=WINDOW_SECONDS,
        **bounds,
    )
    _, token = auth.issue(workspace, "agents", [TokenScope.CLAIM, TokenScope.READ], None)
    return workspace, token


def until(ask: Callable[[], bool], *, seconds: float = 5.0) -> bool:
    """Whether it becomes true in time."""
    give_up_at = time.monotonic() + seconds
    while not ask():
        if time.monotonic() > give_up_at:
            return False
        time.sleep(0.05)
    return True
