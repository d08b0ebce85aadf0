"""One call of a case, at a provider that answers what the case has written down.

The claim, the worker's reports, the look-ups and the judging are the product's own; the clock alone
is ours. It runs in no transaction, because a look-up waits for the provider.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Final
from unittest import mock
from uuid import UUID, uuid4

import httpx
from django.contrib.auth.models import User
from django.test import override_settings

from effects.core.answers import Contract
from effects.core.failures import Failure, classify_exception
from effects.core.messages import ClaimAnswer, ClaimRequest, Complete, Fail, Unknown
from effects.core.vocabulary import EffectClass, EventKind, Outcome
from effects.models import Connection, Tool, Workspace
from ledger import append, claiming, queries
from ledger.functions import call
from reconcile.adapters import stripe as stripe_adapter
from reconcile.investigate import Asking, Looked, investigate
from tests.cases.stub import Reply, Stub, standing
from tests.support.clock import START, FrozenClock, a_clock_of_our_own

SECRETS: Final = {"live": "rk_live_of_the_cases", "test": "rk_test_of_the_cases"}
SECRET_NAME: Final = "TEST_CASE_SECRET"
SEND_SECONDS: Final = 1
QUIET_SECONDS: Final = 3600
"""How long after the last send a provider is asked: by then it works on nothing any more."""
_numbers = count(1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a case says of its tool and of the account that is asked."""

    lookup_kind: str
    lookup: Mapping[str, Any] = field(default_factory=dict)
    effect_class: EffectClass = EffectClass.KEYED_WRITE
    tool: str = "pay"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    account: str = ""
    mode: str = "test"
    policy: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_stripes(self) -> bool:
        return self.lookup_kind.startswith("stripe.")

    @property
    def contract(self) -> Contract:
        return Contract.STRIPE_V1 if self.is_stripes else Contract.GENERIC


@dataclass(slots=True, kw_only=True)
class World:
    """One claim and its provider."""

    setting: Setting
    stub: Stub
    clock: FrozenClock
    workspace: Workspace
    tool: Tool
    person: User
    answer: ClaimAnswer

    @property
    def claim_id(self) -> UUID:
        assert self.answer.claim_id is not None
        return self.answer.claim_id

    @property
    def answer_given_at(self) -> datetime:
        """When the right to send was given."""
        granted: datetime = self.claim.granted_at
        return granted

    def ask(self, arguments: Mapping[str, Any], key: str | None = None) -> ClaimAnswer:
        """Asks for the right to run the call, as its agent does at first and does again."""
        return claim_of(self.workspace, self.tool, arguments, key)

    def at(self, moment: datetime) -> None:
        """Moves the clock forward; the worker of a claim in flight says that it lives."""
        self.clock.now = max(self.clock.now, moment)
        self.clock.tell()
        self.stub.now = self.clock.now
        call("SELECT ledger_touch_v1(%s, %s)", [self.workspace.pk, self.claim_id])

    def later(self, seconds: float) -> None:
        self.at(self.clock.now + timedelta(seconds=seconds))

    def stay_alive_until(self, moment: datetime) -> None:
        """The worker says that it lives, as often as the helper does it, until `moment`."""
        while self.clock.now < moment:
            append.heartbeat(self.workspace.pk, self.claim_id, self.answer.fence or 1)
            self.at(min(moment, self.clock.now + timedelta(seconds=self.tool.lease_seconds / 3)))

    # The worker

    def send(self, reply: Reply) -> tuple[int, Failure | None, Any]:
        """Sends the write and reads its answer as a tool does: the status, what an error proves
        (None where there is none), and the body."""
        self.stub.writes.append(reply)
        marker = {"metadata": {"counterfoil": self.answer.marker}}
        with httpx.Client(timeout=5) as client:
            response = client.post(
                f"{self.stub.url}/v1/write",
                json=marker,
                headers={"Idempotency-Key": self.answer.key or ""},
            )
        body = _decoded(response.content)
        try:
            response.raise_for_status()
        except httpx.HTTPStatusError as error:
            return (
                response.status_code,
                classify_exception(error, contract=self.setting.contract),
                body,
            )
        return response.status_code, None, body

    def report(self, outcome: Outcome, *, fence: int | None = None, **facts: Any) -> None:
        said = {"fence": fence or self.answer.fence, "marker_sent": True, **facts}
        match outcome:
            case Outcome.COMPLETED:
                settle: Any = Complete(result="{}", **said)
            case Outcome.UNKNOWN:
                settle = Unknown(**said)
            case _:
                settle = Fail(proof=outcome, **said)
        append.report(self.workspace.pk, self.claim_id, outcome, settle)

    # Finding out

    def look(self) -> Looked:
        """Asks the provider, as a person's button does: the schedule's pace is no case's matter."""
        asking = Asking(trigger="person", user_id=self.person.pk)
        return investigate(self.workspace.pk, self.claim_id, asking)

    @property
    def claim(self) -> Any:
        call("SELECT ledger_touch_v1(%s, %s)", [self.workspace.pk, self.claim_id])
        return queries.claim(self.workspace.pk, self.claim_id)

    @property
    def sightings(self) -> list[Any]:
        return [e for e in queries.events(self.claim) if e.kind == EventKind.SIGHTING]

    def raw(self, seq: int) -> Any:
        kept = queries.payload(self.claim, seq, "raw")
        return None if kept is None or kept.body is None else _decoded(bytes(kept.body))


def _decoded(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        return None


def claim_of(
    workspace: Workspace, tool: Tool, arguments: Mapping[str, Any], key: str | None
) -> ClaimAnswer:
    request = ClaimRequest(
        tool=tool.name,
        effect_class=EffectClass(tool.effect_class),
        arguments=json.dumps(dict(arguments)),
        conversation=f"case-{workspace.pk}",
        turn_index=1,
        caller_key=key,
    )
    return claiming.claim(workspace.pk, request)


@contextmanager
def a_world(setting: Setting, *, started_at: datetime = START, key: str = "") -> Iterator[World]:
    """A claim whose worker has just got the right to send."""
    stripe_adapter.forget_accounts()
    claiming.forget_tools()
    secret = mock.patch.dict(os.environ, {SECRET_NAME: SECRETS[setting.mode]})
    with secret, standing(started_at) as stub, a_clock_of_our_own():
        clock = FrozenClock(started_at, replace=False)
        with override_settings(COUNTERFOIL_PRIVATE_ORIGINS=[stub.url]):
            yield _world(setting, stub, clock, key)
    claiming.forget_tools()


def _world(setting: Setting, stub: Stub, clock: FrozenClock, key: str) -> World:
    number = next(_numbers)
    workspace = Workspace.objects.create(
        name="Case", slug=f"case-{uuid4().hex[:20]}", mode=setting.mode, created_at=clock.now
    )
    connection = Connection.objects.create(
        workspace=workspace,
        name="Provider",
        kind="stripe" if setting.is_stripes else setting.lookup_kind.partition(".")[0],
        base_url=stub.url,
        account=setting.account,
        secret_name=SECRET_NAME,
    )
    amount = "cents" in setting.arguments
    currency = "currency" if "currency" in setting.arguments else "=EUR"
    contract = {
        "name": setting.tool,
        "effect_class": setting.effect_class,
        "contract": str(setting.contract),
        "window_seconds": 86_400 if setting.effect_class is EffectClass.KEYED_WRITE else None,
        "lookup_kind": setting.lookup_kind,
        "lookup": dict(setting.lookup),
        "amount_field": "cents" if amount else "",
        "currency_field": currency if amount else "",
        "connection": connection,
    }
    tool = Tool.objects.create(workspace=workspace, **(contract | dict(setting.policy)))
    person = User.objects.create_user(username=f"case-{uuid4().hex[:20]}-{number}")
    answer = claim_of(workspace, tool, setting.arguments, key or None)
    stub.account = setting.account
    stub.fills = {
        "currency": str(setting.arguments.get("currency", "eur")),
        "amount": setting.arguments.get("cents", 500),
        "livemode": setting.mode == "live",
        "metadata": {"counterfoil": answer.marker},
    }
    return World(
        setting=setting,
        stub=stub,
        clock=clock,
        workspace=workspace,
        tool=tool,
        person=person,
        answer=answer,
    )
