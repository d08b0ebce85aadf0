"""A call is sent while the ledger is away only where nothing is known that could forbid it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest

from effects.client import (
    AsyncLedger,
    Call,
    Effect,
    HttpTransport,
    Ledger,
    NotSent,
    Patience,
    Received,
    ToolCall,
    effect,
)
from effects.client import call as call_module
from effects.client import offline as offline_module
from effects.client.clock import elapsed_clock_seconds
from effects.client.decorate import Tool
from effects.client.turn import TurnCall
from effects.core.identity import CallFacts, forwarded_key, identities
from effects.core.messages import ClaimAnswer, OfflineCall, OfflineTerms, Problem
from effects.core.vocabulary import AnswerCode, ClaimState, Outcome
from tests.effects.client.scripted_ledger import GRANT, Reply, ScriptedLedger, scripted_ledger
from tests.effects.faulty_server import answers, close_after_reading
from tests.support.awaiting import awaited

TERMS: Final = OfflineTerms(
    workspace=7,
    window_seconds=600,
    margin_seconds=60,
    lease_seconds=90,
    argument_rules={"volatile": ["trace"], "defaults": {"currency": '"eur"'}},
)
TOLD: Final = GRANT.model_copy(update={"offline": TERMS})
REFUSAL: Final = httpx2.HTTPStatusError(
    "401",
    request=httpx2.Request("POST", "https://provider.example/payments"),
    response=httpx2.Response(401),
)
AWAY: Final = close_after_reading
OTHER_CALL: Final = ToolCall(conversation="c-0", turn_index=1)
ONE_TRY: Final = Patience(claim_tries_max=1, report_tries_max=1)


class Scripted:
    def __init__(self, ledger: ScriptedLedger, transport: HttpTransport) -> None:
        self.url = ledger.url
        self.transport = transport
        self.answers = ledger.answers


class Agent:
    """A process with a spool that has been told the terms of its tool."""

    def __init__(
        self, scripted: Scripted, folder: Path, *, told: Reply = TOLD, **more: Any
    ) -> None:
        self.scripted, self.folder = scripted, folder
        named = {"transport": scripted.transport, "patience": ONE_TRY, "spool": folder, **more}
        self.ledger = Ledger(**named)
        self.runs = 0
        self.calls: list[Call] = []
        self.send: Callable[[Call], Any] = lambda _: {"id": "pi_1"}
        self.tool = self.declared("keyed_write")
        self.at = ToolCall(
            conversation="c-1", turn_index=3, call_id="toolu_01WkP9QmXyZ0", received=Received.now()
        )
        if told is not None:
            scripted.answers("claims", told)
            self.tool(OTHER_CALL, amount=1)
            self.runs = 0
        scripted.answers("claims", AWAY)

    def declared(self, effect_class: str) -> Tool:
        @effect(self.ledger, effect_class=effect_class, tool="send_payment", object_from="id")
        def send_payment(call: Call, *, amount: int) -> Any:
            self.runs += 1
            self.calls.append(call)
            return self.send(call)

        return send_payment

    def pay(self, **changes: Any) -> Effect:
        return self.tool(replace(self.at, **changes), amount=1200)

    def hear(self, reply: Reply, **changes: Any) -> None:
        """The ledger answers once, and is away again."""
        self.scripted.answers("claims", reply)
        self.tool(replace(self.at, **changes), amount=1200)
        self.scripted.answers("claims", AWAY)
        self.runs = 0

    @property
    def kept(self) -> list[OfflineCall]:
        return [OfflineCall.model_validate_json(body_of(path)) for path in records(self.folder)]


def records(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.record"))


def body_of(path: Path) -> str:
    said = json.loads(path.read_bytes().partition(b"\n")[2])
    assert said["verb"] == "offline"
    return json.dumps(said["body"])


@pytest.fixture(scope="module")
def scripted() -> Iterator[Scripted]:
    """One ledger and one connection to it for all: what a process knows is in its `Ledger`."""
    with scripted_ledger() as ledger, closing(HttpTransport(ledger.url, "a-token")) as transport:
        yield Scripted(ledger, transport)


@pytest.fixture
def agent(scripted: Scripted, tmp_path: Path) -> Agent:
    return Agent(scripted, tmp_path / "spool")


def test_the_claim_is_on_the_disk_before_the_tool_runs_and_its_end_before_it_returns(
    agent: Agent,
) -> None:
    seen: list[OfflineCall] = []

    def send(call: Call) -> dict[str, str]:
        seen.extend(agent.kept)
        call.sent()
        call.check_send()
        return {"id": "pi_1"}

    agent.send = send
    told = agent.pay()
    facts = CallFacts(
        workspace=7, tool="send_payment", arguments='{"amount": 1200}', conversation="c-1",
        turn_index=3,
    )  # fmt: skip
    key = forwarded_key(identities(facts), 1)
    (claim,) = seen
    assert (claim.key, claim.end, claim.workspace) == (key, None, 7)
    assert (claim.request.conversation, claim.request.nonce) == ("c-1", None)
    assert (told.status, told.result, told.value) == ("completed", {"id": "pi_1"}, {"id": "pi_1"})
    assert (told.reported, told.kept, told.nothing_sent) == (False, True, False)
    assert told.for_model["claim"] == key, "the status tool can be asked by it"
    first, second = agent.kept
    assert first == claim
    assert second.model_copy(update={"end": None}) == claim
    assert second.end is not None
    assert (second.end.outcome, second.end.provider_object) == (Outcome.COMPLETED, "pi_1")
    # It is said in one word which attempt this is, and nothing that would name a claim is given.
    call = agent.calls[-1]
    assert (call.offline, call.key, call.marker_metadata) == (True, key, {})


def answered(**changes: Any) -> ClaimAnswer:
    return TOLD.model_copy(update=changes)


def problem(code: str, status: int) -> Problem:
    return Problem(title="No.", status=status, detail="No.", code=code)


HELD: Final = ClaimAnswer(
    code=AnswerCode.HELD, state=ClaimState.UNKNOWN, tool="send_payment", offline=TERMS
)
WITHDRAWN: Final = GRANT.model_copy(update={"offline": None})


def half_a_window_ago(agent: Agent) -> Any:
    at = elapsed_clock_seconds() - TERMS.window_seconds / 2
    return agent.pay(received=replace(agent.at.received or Received.now(), at=at))


def after_another_process_sent_it(agent: Agent) -> Effect:
    other = Agent(agent.scripted, agent.folder)
    assert other.pay().status == "completed"
    return agent.pay()


def after_it_was_told(agent: Agent) -> Effect:
    assert agent.pay().status == "completed"
    agent.scripted.answers("claims:offline", HELD)
    assert agent.ledger.flush().told == 2
    agent.runs = 0
    return agent.pay()


def without_a_disk(agent: Agent) -> Effect:
    shutil.rmtree(agent.folder)
    return agent.pay()


def after(reply: Reply, **changes: Any) -> Callable[[Agent], Effect]:
    def then(agent: Agent) -> Effect:
        agent.hear(reply, **changes)
        return agent.pay()

    return then


def now(reply: Reply) -> Callable[[Agent], Effect]:
    def then(agent: Agent) -> Effect:
        agent.scripted.answers("claims", reply)
        return agent.pay()

    return then


def unkeyed(agent: Agent) -> Effect:
    return agent.declared("unkeyed_write")(agent.at, amount=1200)


def not_received(agent: Agent) -> Effect:
    return agent.pay(received=None)


def received_elsewhere(agent: Agent) -> Effect:
    return agent.pay(received=Received(at=elapsed_clock_seconds(), process="1-abc"))


def received_later(agent: Agent) -> Effect:
    later = elapsed_clock_seconds() + 60
    return agent.pay(received=replace(Received.now(), at=later))


def repeated_on_purpose(agent: Agent) -> Effect:
    return agent.pay(repeat_of=GRANT.claim_id)


ANSWERED_WHAT: Final[dict[str, Reply]] = {
    "granted": TOLD,
    "held": HELD,
    "completed": answered(code=AnswerCode.REPLAYED, result="{}"),
    "a fault of its own": problem("internal_error", 500),
    "that it was restored": problem("ledger_behind", 503),
    "too busy": problem("http_429", 429),
    "what nobody understands": answers(200, b"<html>", content_type="text/html"),
    "a grant without its parts": answered(fence=0),
}
CLOSED: Final[dict[str, Callable[[Agent], Effect]]] = {
    "the code says that it has no key": unkeyed,
    "nobody said when the response arrived": not_received,
    "another process received the response": received_elsewhere,
    "the response was received half a window ago": half_a_window_ago,
    "the clock was set back": received_later,
    "the agent means a repeat, which only the ledger allows": repeated_on_purpose,
    "a later answer withdrew the terms": after(WITHDRAWN, turn_index=9, call_id="toolu_9"),
    "another call of the tool in this turn was answered": after(TOLD, position=1, call_id=None),
    "the call id was answered in another turn": after(TOLD, turn_index=8),
    "another process with this spool sent it": after_another_process_sent_it,
    "it was told to the ledger meanwhile": after_it_was_told,
    "the disk takes no claim": without_a_disk,
    **{f"the answer was {words} before": after(reply) for words, reply in ANSWERED_WHAT.items()},
    **{
        f"the answer is {words} now": now(reply)
        for words, reply in ANSWERED_WHAT.items()
        if isinstance(reply, Problem) or callable(reply)
    },
}


@pytest.mark.parametrize("ask", CLOSED.values(), ids=CLOSED.keys())
def test_each_condition_alone_keeps_the_call_back(
    agent: Agent, ask: Callable[[Agent], Effect]
) -> None:
    told = ask(agent)
    assert (told.status, told.nothing_sent, agent.runs) == ("ledger_unavailable", True, 0)
    assert told.may_call_again


@pytest.mark.parametrize(
    ("told", "why"),
    [
        (None, "never reached the ledger"),
        (GRANT, "the tool did not opt in"),
        (
            GRANT.model_copy(
                update={"offline": TERMS.model_copy(update={"argument_rules": {"newer": [1]}})}
            ),
            "a newer ledger compares otherwise",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_process_that_does_not_know_the_terms_sends_nothing(
    scripted: Scripted, tmp_path: Path, told: Reply, why: str
) -> None:
    agent = Agent(scripted, tmp_path, told=told)
    assert (agent.pay().status, agent.runs) == ("ledger_unavailable", 0), why
    assert records(tmp_path) == []


def test_without_a_spool_nothing_is_sent(scripted: Scripted, tmp_path: Path) -> None:
    agent = Agent(scripted, tmp_path, spool=None)
    assert (agent.pay().status, agent.runs) == ("ledger_unavailable", 0)


def test_where_more_was_answered_than_is_remembered_an_older_response_is_not_sent(
    scripted: Scripted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(offline_module, "CALLS_REMEMBERED_MAX", 3)
    agent = Agent(scripted, tmp_path)
    for turn_index in (5, 6, 7):
        agent.hear(TOLD, turn_index=turn_index, call_id=None)
    assert (agent.pay().status, agent.runs) == ("ledger_unavailable", 0)
    assert agent.pay(received=Received.now()).status == "completed"


@pytest.mark.parametrize(
    ("age_seconds", "margin_seconds", "left_seconds"),
    [
        (0, 60, 90),  # the lease
        (250, 60, 50),  # half the window
        (299, 60, 1),
        (299.99, 60, 0.01),
        (300, 60, None),
        (301, 60, None),
        (50, 500, 50),  # the window less the margin, where that is shorter
        (100, 500, None),
    ],
)
def test_the_time_to_send_is_what_is_left_of_lease_half_window_and_margin(
    scripted: Scripted,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    age_seconds: float,
    margin_seconds: int,
    left_seconds: float | None,
) -> None:
    terms = TERMS.model_copy(update={"margin_seconds": margin_seconds})
    agent = Agent(scripted, tmp_path, told=GRANT.model_copy(update={"offline": terms}))
    at = agent.at.received.at if agent.at.received else 0.0
    for module in (offline_module, call_module):
        monkeypatch.setattr(module, "elapsed_clock_seconds", lambda: at + age_seconds)
    told = agent.pay()
    if left_seconds is None:
        assert (told.status, agent.runs) == ("ledger_unavailable", 0)
        assert records(tmp_path) == [], "what is not sent is not claimed"
    else:
        assert told.status == "completed"
        assert agent.calls[-1].send_seconds_left == pytest.approx(left_seconds, abs=1e-6)


def test_the_same_process_may_send_it_again_with_the_same_key_as_long_as_for_the_first_time(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lose(_: Call) -> None:
        raise TimeoutError

    agent.send = lose
    first = agent.pay()
    assert (first.status, first.kept, first.may_call_again) == ("unknown", True, False)
    again = agent.pay(received=Received.now())
    assert (again.status, len({call.key for call in agent.calls[-2:]})) == ("unknown", 1)
    assert len({one.attempt for one in agent.kept}) == 2
    # The model was asked once more, so the response is new; the key is as old as the first one.
    at = agent.at.received.at if agent.at.received else 0.0
    for module in (offline_module, call_module):
        monkeypatch.setattr(module, "elapsed_clock_seconds", lambda: at + 300)
    late = agent.pay(received=replace(Received.now(), at=at + 299))
    assert (late.status, late.nothing_sent, agent.runs) == ("ledger_unavailable", True, 2)


@pytest.mark.parametrize(
    ("error", "status", "outcome"),
    [
        (NotSent("no connection"), "ledger_unavailable", Outcome.NOT_SENT),
        (TimeoutError(), "unknown", Outcome.UNKNOWN),
        # It proves that this attempt did nothing, and only the ledger knows of others.
        (REFUSAL, "unknown", Outcome.REFUSED),
    ],
)
def test_an_end_that_is_no_success_is_told_as_what_is_known(
    agent: Agent, error: Exception, status: str, outcome: Outcome
) -> None:
    def fail(_: Call) -> None:
        raise error

    agent.send = fail
    told = agent.pay()
    assert (told.status, told.error, told.reported, told.kept) == (status, error, False, True)
    assert told.nothing_sent == (outcome is Outcome.NOT_SENT)
    end = agent.kept[-1].end
    assert end is not None
    assert end.outcome is outcome


@pytest.mark.parametrize("name", ["marker", "claim_id"])
def test_what_only_a_claim_has_is_no_proof_that_nothing_was_sent(agent: Agent, name: str) -> None:
    agent.send = lambda call: getattr(call, name)
    told = agent.pay()
    assert told.status == "unknown"
    assert "The ledger is away" in str(told.error)


def test_an_end_that_the_disk_does_not_take_is_not_said_to_be_kept(agent: Agent) -> None:
    def send(_: Call) -> dict[str, str]:
        shutil.rmtree(agent.folder)
        return {"id": "pi_1"}

    agent.send = send
    told = agent.pay()
    assert (told.status, told.reported, told.kept) == ("completed", False, False)


def test_several_calls_of_a_turn_are_decided_one_by_one(agent: Agent) -> None:
    agent.scripted.answers("claims:batch", AWAY)
    turn = agent.ledger.turn("c-5", 2, received=Received.now())
    unkeyed = agent.declared("unkeyed_write")
    calls = [
        TurnCall(tool=tool, arguments={"amount": amount})
        for tool, amount in ((agent.tool, 1), (unkeyed, 2), (agent.tool, 3))
    ]
    told = [effect.status for effect in turn.run_all(calls)]
    assert told == ["completed", "ledger_unavailable", "completed"]
    assert len({call.key for call in agent.calls[-2:]}) == 2


def test_the_async_ledger_decides_by_the_same_rule(scripted: Scripted, tmp_path: Path) -> None:
    async def story() -> tuple[Effect, Effect]:
        async with AsyncLedger(scripted.url, "a-token", patience=ONE_TRY, spool=tmp_path) as ledger:

            @effect(ledger, effect_class="keyed_write")
            async def send_payment(call: Any, *, amount: int) -> dict[str, Any]:
                return {"key": call.key, "amount": amount}

            scripted.answers("claims", TOLD)
            await send_payment(OTHER_CALL, amount=1)
            scripted.answers("claims", AWAY)
            at = ToolCall(conversation="c-1", turn_index=3)
            closed = await send_payment(at, amount=2)
            return closed, await send_payment(replace(at, received=Received.now()), amount=2)

    closed, told = awaited(story())
    assert (closed.status, told.status, told.kept) == ("ledger_unavailable", "completed", True)
