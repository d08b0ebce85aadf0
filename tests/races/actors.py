"""Real agents of the crash tests: processes with the real client, the real SDK and real mishaps."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from effects.core.vocabulary import ClaimState, TokenScope, Verdict
from effects.models import Tool, Workspace
from ledger import append, auth, queries
from ledger.models import Attempt, Claim
from reconcile.sandbox import jobs
from reconcile.sandbox.crew import Delivery, deliver
from reconcile.sandbox.provider.server import Provider
from reconcile.sandbox.reading import TRUTH_FILES
from reconcile.sandbox.tools import STORM_BOUNDS, Bounds, ToolName, tool_fields
from tests.support.clock import ShiftedClock

CHARGE = {"amount": 14_900, "currency": "eur", "customer": "cus_9X2", "order": "8841"}
TRANSFER = {"amount": 14_900, "currency": "EUR", "supplier": "sup_1", "order": "8841"}
ARGUMENTS = {ToolName.CHARGE_CARD: CHARGE, ToolName.SEND_TRANSFER: TRANSFER}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One workspace with the sandbox's tools, one provider, and the api's real door."""

    workspace: Workspace
    provider: Provider
    truth_folder: Path
    clock: ShiftedClock
    world: jobs.World
    person: User

    def job(self, tool: ToolName = ToolName.CHARGE_CARD, **changes: Any) -> jobs.Job:
        usual: dict[str, Any] = {
            "worker": "w-1",
            "conversation": "c-1",
            "turn_index": 1,
            "position": 0,
            "response_id": "resp_1",
            "call_id": "toolu_aaaaaaaaaaaaaaaa",
            "delivery_count": 1,
            "tool": tool,
            "arguments": ARGUMENTS[tool],
        }
        return jobs.Job(**(usual | changes))

    def deliver(self, **changes: Any) -> Delivery:
        return deliver(self.world, self.job(**changes))

    def redeliver(self, **changes: Any) -> Delivery:
        """The queue hands the same job to another worker."""
        delivery = self.deliver(**({"worker": "w-2", "delivery_count": 2} | changes))
        delivery.await_end()
        return delivery

    @property
    def claim(self) -> Claim:
        return Claim.objects.get(workspace=self.workspace)

    @property
    def attempts(self) -> list[Attempt]:
        return list(Attempt.objects.filter(claim_id=self.claim.pk).order_by("fence"))

    def effects(self) -> list[str]:
        """What the provider did, from its own truth files, which the ledger never reads."""
        files = [self.truth_folder / name for name in TRUTH_FILES]
        return [line for file in files if file.exists() for line in file.read_text().splitlines()]

    def state(self) -> ClaimState:
        """The claim's state as the clock leaves it now."""
        append.sweep(100)
        return ClaimState(self.claim.state)

    def time_passes(self, seconds: float) -> None:
        """Both the ledger's clock and the provider's move; the agents' own does not."""
        self.clock.advance(seconds)
        body = json.dumps({"advance_seconds": seconds}).encode()
        request = urllib.request.Request(self.provider.url + "/_sandbox/clock", data=body)
        with urllib.request.urlopen(request, timeout=5) as answer:
            assert answer.status == 200

    def decide(self, verdict: Verdict) -> None:
        """A person decides, and the decision takes effect at once."""
        append.sweep(100)
        decision = append.NewDecision(
            verdict=verdict,
            claim_version=self.claim.version,
            reason="the customer is waiting",
            user_id=self.person.pk,
            hold_seconds=0,
            consent=append.Consent(alone=True),
        )
        append.decide(self.workspace.pk, self.claim.pk, decision)


@contextmanager
def a_stage(
    folder: Path, api_url: str, *, name: str = "crash", bounds: Bounds = STORM_BOUNDS
) -> Iterator[Stage]:
    """Everything real, and short bounds; the clock is put back afterwards."""
    clock = ShiftedClock()
    try:
        with Provider(folder) as provider:
            yield _set(provider, folder, clock, api_url, name, bounds)
    finally:
        clock.restore()


def _set(
    provider: Provider, folder: Path, clock: ShiftedClock, api_url: str, name: str, bounds: Bounds
) -> Stage:
    workspace = Workspace.objects.create(name=name, slug=name, created_at=queries.clock())
    for tool in (ToolName.CHARGE_CARD, ToolName.SEND_TRANSFER):
        Tool.objects.create(workspace=workspace, name=tool, **tool_fields(tool, bounds))
    _, token = auth.issue(workspace, "agents", [TokenScope.CLAIM, TokenScope.READ], None)
    world = jobs.World(
        provider_url=provider.url,
        ledger_url=api_url,
        token=token,
        request_seconds_max=5,
        wait_seconds_max=0,  # the agent does not wait here: the test decides what comes next
    )
    return Stage(
        workspace=workspace,
        provider=provider,
        truth_folder=folder,
        clock=clock,
        world=world,
        person=User.objects.create(username=name),
    )
