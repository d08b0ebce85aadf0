"""Sent while the ledger was away, against the real ones: an API behind a line, and a provider that
counts."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Never
from urllib.parse import urlsplit

import pytest

from effects.client import Call, Effect, Ledger, Patience, Received, Spool, ToolCall, effect
from effects.core.vocabulary import EffectClass
from effects.models import Tool, Workspace
from ledger import queries
from ledger.models import Claim
from reconcile.sandbox.provider.server import Provider
from tests.effects.client.ways import token_of
from tests.reconcile.sandbox.customer import stripe_client
from tests.support import desk
from tests.support.cut import Line, line_to

pytestmark = pytest.mark.django_db(transaction=True)

PROCESSES: Final = multiprocessing.get_context("fork")
ONE_TRY: Final = Patience(claim_tries_max=1, report_tries_max=1)
AMOUNT: Final = 4200


@pytest.fixture
def shop(transactional_db: None) -> Workspace:
    made = desk.a_workspace()
    Tool.objects.create(
        workspace=made,
        name="send_payment",
        effect_class=EffectClass.KEYED_WRITE,
        contract="stripe.v1",
        window_seconds=86_400,
        lease_seconds=1,
        sends_offline=True,
        argument_rules={"volatile": ["trace"], "defaults": {"currency": '"eur"'}},
    )
    return made


@pytest.fixture
def provider(tmp_path: Path) -> Iterator[Provider]:
    with Provider(tmp_path / "sandbox") as running:
        yield running


@pytest.fixture
def line(live_api: str) -> Iterator[Line]:
    with line_to(urlsplit(live_api).port or 0) as open_line:
        yield open_line


Hire = Callable[[str], "Agent"]


class Agent:
    """An agent with the real Stripe client, a spool of its own, and one payment made by the rules
    while the ledger was there."""

    def __init__(self, url: str, token: str, provider: str, folder: Path) -> None:
        self.ledger = Ledger(url, token, patience=ONE_TRY, spool=folder)
        self.spool = Spool(folder)
        self.stripe = stripe_client(provider)
        self.before: Callable[[], object] = lambda: None
        self.after: Callable[[], object] = lambda: None

        @effect(self.ledger, effect_class="keyed_write", contract="stripe.v1", object_from="id")
        def send_payment(call: Call, *, amount: int, currency: str = "eur", trace: str = "") -> Any:
            self.before()
            made = self.stripe.v1.payment_intents.create(
                {"amount": amount, "currency": currency, "metadata": call.marker_metadata},
                {"idempotency_key": call.key},
            )
            self.after()
            return {"id": made.id, "status": made.status}

        self.tool = send_payment

    def learn(self, turn_index: int) -> Effect:
        return self.tool(ToolCall(conversation="c-1", turn_index=turn_index), amount=100)

    def pay(self, turn_index: int = 50, **more: Any) -> Effect:
        at = ToolCall(conversation="c-1", turn_index=turn_index, received=Received.now())
        return self.tool(at, amount=AMOUNT, **more)


@pytest.fixture
def hire(shop: Workspace, provider: Provider, line: Line, tmp_path: Path) -> Iterator[Hire]:
    """Makes an agent of the shop behind the line; its name is that of its spool."""
    token, hired = token_of(shop), []

    def make(name: str) -> Agent:
        hired.append(Agent(line.url, token, provider.url, tmp_path / name))
        return hired[-1]

    yield make
    for agent in hired:
        agent.ledger.close()


def payments(provider: Provider, amount: int = AMOUNT) -> list[Any]:
    made = stripe_client(provider.url).v1.payment_intents.list().data
    return [one for one in made if one.amount == amount]


def the_claim() -> Claim:
    return Claim.objects.get(turn_index=50)


def granted(claim: Claim) -> list[tuple[int, bool]]:
    return [
        (event.fence, "ungranted" in (event.data or {}))
        for event in queries.events(claim)
        if event.kind == "granted"
    ]


def test_a_payment_goes_on_while_the_line_is_cut_and_is_in_the_record_when_it_is_mended(
    hire: Hire, provider: Provider, line: Line
) -> None:
    agent = hire("spool")
    assert agent.learn(1).status == "completed"
    line.cut()
    told = agent.pay(trace="a")
    assert (told.status, told.reported, told.kept) == ("completed", False, True)
    (made,) = payments(provider)
    assert told.result == {"id": made.id, "status": made.status}
    line.mend()
    # Any answer is a sign that the ledger is there again: what is kept is told by itself.
    assert agent.learn(2).status == "completed"
    deadline = time.monotonic() + 10
    while agent.spool.waiting():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    claim = the_claim()
    assert (str(claim.state), claim.object) == ("completed", made.id)
    assert granted(claim) == [(1, True)]
    assert agent.ledger.status(told.for_model["claim"]).result == told.result
    # Whoever asks for the same from now on is answered from the record.
    again = hire("heir").pay(trace="b")
    assert (again.status, again.result, again.claim_id) == ("completed", told.result, claim.pk)
    assert len(payments(provider)) == 1


def test_two_agents_that_both_go_on_make_one_payment(
    hire: Hire, provider: Provider, line: Line
) -> None:
    agents = [hire("a"), hire("b")]
    for number, agent in enumerate(agents):
        agent.learn(number)
    line.cut()
    told = [agents[0].pay(trace="a"), agents[1].pay(currency="eur", trace="b")]
    (made,) = payments(provider)
    assert [one.status for one in told] == ["completed", "completed"]
    assert {one.result["id"] for one in told} == {made.id}
    line.mend()
    assert [agent.ledger.flush().told for agent in agents] == [2, 2]
    claim = the_claim()
    assert (str(claim.state), claim.object) == ("completed", made.id)
    assert granted(claim) == [(1, True), (2, True)]


def test_a_grant_whose_answer_was_lost_is_the_same_payment(
    hire: Hire, provider: Provider, line: Line
) -> None:
    agent = hire("spool")
    agent.learn(1)
    line.drop_next_answer(then=line.cut)
    told = agent.pay()
    assert line.answers_dropped == 1
    assert (told.status, told.kept) == ("completed", True)
    line.mend()
    assert agent.ledger.flush().told == 2
    claim = the_claim()
    assert (str(claim.state), granted(claim)) == ("completed", [(1, False), (2, True)])
    assert len(payments(provider)) == 1


# kill -9


def die(*_: object) -> Never:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("this process is gone")


def die_at(nth: int, real: Callable[..., Any]) -> Callable[..., Any]:
    """The function, until its nth call, which does not happen."""
    left = iter(range(1, nth))

    def doomed(*arguments: Any, **more: Any) -> Any:
        if next(left, None) is None:
            die()
        return real(*arguments, **more)

    return doomed


@dataclass(frozen=True)
class Killed:
    """At which step, and what is there then: payments made, records told, and the claim's state."""

    step: str
    payments: int
    told: int
    state: str | None


KILLED: Final = (
    Killed("before the claim is on the disk", 0, 0, None),
    Killed("before the send", 0, 1, "unknown"),
    Killed("after the send", 1, 1, "unknown"),
    Killed("before the end is on the disk", 1, 1, "unknown"),
    Killed("after the end is on the disk", 1, 2, "completed"),
    Killed("between the ledger's answer and the removal", 1, 1, "completed"),
)


def go_on_and_die(step: str, api: str, *arguments: Any) -> None:
    """One process's whole life: it learns the terms, finds nobody, and is killed at the step."""
    with line_to(urlsplit(api).port or 0) as line:
        agent = Agent(line.url, *arguments)
        agent.learn(1)
        agent.ledger.flush()
        line.cut()
        match step:
            case "before the claim is on the disk":
                os.fsync = die_at(1, os.fsync)
            case "before the send":
                agent.before = die
            case "after the send":
                agent.after = die
            case "before the end is on the disk":
                os.fsync = die_at(3, os.fsync)
            case _:  # It dies after the payment.
                pass
        agent.pay()
        if step == "between the ledger's answer and the removal":
            line.mend()
            Path.unlink = die_at(2, Path.unlink)  # type: ignore[method-assign]
            agent.ledger.flush()
        die()


@pytest.mark.parametrize("killed", KILLED, ids=lambda killed: killed.step)
def test_a_process_that_is_killed_at_any_step_leaves_what_the_next_one_tells(
    shop: Workspace, provider: Provider, live_api: str, tmp_path: Path, killed: Killed
) -> None:
    token, folder = token_of(shop), tmp_path / "spool"
    process = PROCESSES.Process(
        target=go_on_and_die, args=(killed.step, live_api, token, provider.url, folder)
    )
    process.start()
    process.join(30)
    assert process.exitcode == -signal.SIGKILL
    assert len(payments(provider)) == killed.payments
    with Ledger(live_api, token, patience=ONE_TRY, spool=folder) as heir:
        assert heir.flush().told == killed.told
        assert Spool(folder).waiting() == 0
        if killed.state is None:
            assert not Claim.objects.filter(turn_index=50).exists()
            return
        claim = the_claim()
        deadline = time.monotonic() + 5
        while (known := heir.status(claim.pk).status) != killed.state:
            assert known == "in_flight", "silence is never taken for an end before its time"
            assert time.monotonic() < deadline
            time.sleep(0.05)
    assert granted(claim) == [(1, True)]
