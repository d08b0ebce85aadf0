"""LangGraph with its real PostgreSQL checkpointer: nodes that run again, and a second process."""

from __future__ import annotations

import itertools
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool as undecorated
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command, RetryPolicy, interrupt

from effects.client import ArgumentsRefused, Call, Ledger, NoIdentity, Tool, effect
from effects.client.integrations.events import Events
from effects.client.integrations.langchain import as_langchain
from effects.client.integrations.langchain_callbacks import LedgerCallbacks
from effects.client.integrations.langgraph import Pending, ask_a_person, node_call
from effects.core.vocabulary import ClaimState, Flag, TokenScope
from effects.models import Tool as RegisteredTool
from effects.models import Workspace
from ledger import auth
from ledger.models import Attempt, Claim
from tests import settings as test_settings
from tests.effects.client.integrations.langgraph_worker import CALL, Job
from tests.effects.client.scripted_ledger import QUICK
from tests.effects.faulty_server import FaultyServer, faulty, read_request
from tests.support.clock import ShiftedClock
from tests.support.stack import ROOT

live = pytest.mark.django_db(transaction=True)

AGAIN = RetryPolicy(initial_interval=0.01, jitter=False)
LEASE_SECONDS = 700


@pytest.fixture(scope="module")
def checkpoints(django_db_setup: None) -> str:
    """A database of LangGraph's own beside ours."""
    url = test_settings.TEST_POSTGRES.url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE langgraph_checkpoints")
    own = url.rsplit("/", 1)[0] + "/langgraph_checkpoints"
    with PostgresSaver.from_conn_string(own) as saver:
        saver.setup()
    return own


@dataclass
class Agent:
    """A thread of a graph, a tool of ours, and how often it really ran."""

    ledger: Ledger
    saver: PostgresSaver
    api: str
    workspace: Workspace
    runs: list[str] = field(default_factory=list)
    meets: Callable[[], object] = lambda: None
    thread: str = field(default_factory=lambda: f"t-{uuid4()}")

    @property
    def config(self) -> Any:
        return {"configurable": {"thread_id": self.thread}}

    def token(self, *scopes: TokenScope) -> str:
        return auth.issue(self.workspace, "an agent", scopes, user=None)[1]

    @property
    def refund(self) -> Tool:
        @effect(self.ledger, effect_class="keyed_write")
        def refund(call: Call, *, payment: str) -> dict[str, str]:
            """Refund a payment."""
            self.runs.append(payment)
            self.meets()
            return {"id": f"re_{len(self.runs)}"}

        return refund

    def graph(self, *nodes: tuple[str, Any], retry: RetryPolicy | None = None) -> Any:
        """The nodes one after the other."""
        graph = StateGraph(MessagesState)
        names = [START, *(name for name, _ in nodes), END]
        for name, node in nodes:
            graph.add_node(name, node, retry_policy=retry)
        for before, after in itertools.pairwise(names):
            graph.add_edge(before, after)
        return graph.compile(checkpointer=self.saver)


@pytest.fixture
def agent(live_api: str, checkpoints: str) -> Iterator[Agent]:
    shop = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    RegisteredTool.objects.create(
        workspace=shop, name="refund", effect_class="keyed_write", window_seconds=86_400
    )
    token = auth.issue(shop, "an agent", (TokenScope.CLAIM,), user=None)[1]
    with (
        Ledger(live_api, token, patience=QUICK) as ledger,
        PostgresSaver.from_conn_string(checkpoints) as saver,
    ):
        yield Agent(ledger, saver, live_api, shop)


def asking(call: Any = CALL) -> dict[str, Any]:
    """A state in which the model has just asked for a call."""
    return {"messages": [HumanMessage("Refund it."), AIMessage("", tool_calls=[call])]}


def told(end: dict[str, Any]) -> list[Any]:
    return [
        json.loads(str(message.content))
        for message in end["messages"]
        if isinstance(message, ToolMessage)
    ]


def the_claim() -> Claim:
    return Claim.objects.get()


# Nodes that run again


@pytest.mark.case("D06")
@live
def test_a_node_that_is_resumed_runs_from_its_first_line_and_refunds_once(agent: Agent) -> None:
    """The node refunds, then waits for a person, once per question."""
    refund = as_langchain(agent.refund)
    answered: list[list[Any]] = []

    def refund_then_ask(state: MessagesState) -> dict[str, Any]:
        asked: Any = state["messages"][-1]
        message = refund.invoke({**asked.tool_calls[0], "type": "tool_call"})
        answered.append([interrupt("Tell the customer?"), interrupt("Close the case?")])
        return {"messages": [message]}

    graph = agent.graph(("refund", refund_then_ask))
    graph.invoke(asking(), agent.config)
    graph.invoke(Command(resume="yes"), agent.config)
    end = graph.invoke(Command(resume="no"), agent.config)
    assert answered == [["yes", "no"]]
    assert agent.runs == ["pi_1"]
    assert [one["result"] for one in told(end)] == [{"id": "re_1"}]
    assert the_claim().fence == 1


@live
def test_an_effect_of_a_plain_node_is_one_for_its_task_and_another_for_each_label(
    agent: Agent,
) -> None:
    refund = agent.refund

    def refund_two_then_ask(state: MessagesState) -> dict[str, Any]:
        ids = [refund(node_call(label), payment="pi_1").result for label in ("fee", "price")]
        interrupt("Is this right?")
        return {"messages": [AIMessage(json.dumps(ids))]}

    graph = agent.graph(("first", refund_two_then_ask), ("second", refund_two_then_ask))
    graph.invoke({"messages": []}, agent.config)
    graph.invoke(Command(resume=True), agent.config)
    end = graph.invoke(Command(resume=True), agent.config)
    ids = [one["id"] for message in end["messages"] for one in json.loads(message.content)]
    assert ids == ["re_1", "re_2", "re_3", "re_4"]
    assert len(agent.runs) == 4


def test_a_plain_node_without_a_checkpointer_has_no_identity() -> None:
    graph = StateGraph(MessagesState)
    graph.add_node("node", lambda state: node_call())
    graph.set_entry_point("node")
    with pytest.raises(NoIdentity, match="checkpointer"):
        graph.compile().invoke({"messages": []})


def time_out() -> None:
    raise httpx.ReadTimeout("The provider did not answer.")


def test_a_retry_policy_repeats_an_undecorated_tool_whose_outcome_is_unknown() -> None:
    """The danger, shown on LangGraph's own defaults."""
    runs: list[str] = []

    @undecorated
    def refund(payment: str) -> None:
        """Refund a payment."""
        runs.append(payment)
        time_out()

    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode([refund]), retry_policy=AGAIN)
    graph.set_entry_point("tools")
    state: Any = asking()
    with pytest.raises(httpx.ReadTimeout):
        graph.compile().invoke(state)
    assert len(runs) == 3


@live
def test_a_retry_policy_repeats_no_decorated_tool_and_the_model_reads_unknown(
    agent: Agent,
) -> None:
    agent.meets = time_out
    graph = agent.graph(("tools", ToolNode([as_langchain(agent.refund)])), retry=AGAIN)
    (words,) = told(graph.invoke(asking(), agent.config))
    assert (words["status"], len(agent.runs)) == ("unknown", 1)
    assert words["next_step"].startswith("Do not call this tool again")
    assert the_claim().state == ClaimState.UNKNOWN


@live
def test_a_node_that_fails_after_its_tool_is_retried_and_gets_the_first_result(
    agent: Agent,
) -> None:
    tools, failures = ToolNode([as_langchain(agent.refund)]), [time_out]

    def refund_then_fail(state: MessagesState, config: RunnableConfig) -> Any:
        done = tools.invoke(state, config)
        if failures:
            failures.pop()()
        return done

    graph = agent.graph(("tools", refund_then_fail), retry=AGAIN)
    (words,) = told(graph.invoke(asking(), agent.config))
    assert (words["result"], agent.runs) == ({"id": "re_1"}, ["pi_1"])


@live
def test_a_thread_that_is_forked_before_the_tool_gets_the_first_result(agent: Agent) -> None:
    graph = agent.graph(("tools", ToolNode([as_langchain(agent.refund)])))
    graph.invoke(asking(), agent.config)
    before = next(one for one in graph.get_state_history(agent.config) if one.next == ("tools",))
    (words,) = told(graph.invoke(None, before.config))
    assert (words["result"], agent.runs) == ({"id": "re_1"}, ["pi_1"])


@live
def test_a_turn_that_is_asked_for_again_is_recognised_under_its_new_call_id(
    agent: Agent,
) -> None:
    ids = [f"toolu_{letter * 16}" for letter in "ab"]

    def model(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("", tool_calls=[{**CALL, "id": ids.pop(0)}])]}

    tools = ToolNode([as_langchain(agent.refund)])
    graph = agent.graph(("model", model), ("tools", tools))
    graph.invoke({"messages": [HumanMessage("Refund it.")]}, agent.config)
    before = next(one for one in graph.get_state_history(agent.config) if one.next == ("model",))
    (words,) = told(graph.invoke(None, before.config))
    assert (words["result"], agent.runs, ids) == ({"id": "re_1"}, ["pi_1"], [])


# A person's approval


@dataclass
class Desk:
    """A graph that asks a person before it refunds."""

    agent: Agent

    def __post_init__(self) -> None:
        tools = ToolNode([as_langchain(self.agent.refund, before=ask_a_person)])
        self.graph = self.agent.graph(("tools", tools))

    def ask(self) -> Any:
        return self.asked(self.graph.invoke(asking(), self.agent.config))

    def answer(self, **said: Any) -> Any:
        return self.graph.invoke(Command(resume=said), self.agent.config)

    def asked(self, end: Any) -> Any:
        (paused,) = end["__interrupt__"]
        return paused.value


@live
def test_a_call_is_claimed_and_run_only_after_a_person_has_approved_it(agent: Agent) -> None:
    desk = Desk(agent)
    asked = desk.ask()
    assert (asked["tool"], json.loads(asked["arguments"])) == ("refund", {"payment": "pi_1"})
    assert (agent.runs, Claim.objects.count()) == ([], 0)
    (words,) = told(desk.answer(digest=asked["digest"], approved=True))
    assert (words["status"], agent.runs) == ("completed", ["pi_1"])


@pytest.mark.case("D15")
@live
def test_an_approval_of_other_arguments_runs_nothing_and_is_asked_again(agent: Agent) -> None:
    """On resume the call says something else, and the approval goes by position."""
    desk = Desk(agent)
    approved = desk.ask()
    changed = AIMessage("", tool_calls=[{**CALL, "args": {"payment": "pi_2"}}])
    last = desk.graph.get_state(agent.config).values["messages"][-1]
    changed.id = last.id
    desk.graph.update_state(agent.config, {"messages": [changed]}, as_node=START)
    first_again = desk.asked(desk.graph.invoke(None, agent.config))
    asked = desk.asked(desk.answer(digest=approved["digest"], approved=True))
    assert first_again["digest"] == asked["digest"] != approved["digest"]
    assert asked["answered"]["digest"] == approved["digest"]
    assert json.loads(asked["arguments"]) == {"payment": "pi_2"}
    assert agent.runs == []
    desk.answer(digest=asked["digest"], approved=True)
    assert agent.runs == ["pi_2"]


@live
def test_calls_of_one_response_are_approved_one_by_one(agent: Agent) -> None:
    desk, config = Desk(agent), {**agent.config, "max_concurrency": 1}
    calls = [{**CALL, "id": f"{CALL['id']}{n}", "args": {"payment": f"pi_{n}"}} for n in range(3)]
    end = desk.graph.invoke({"messages": [AIMessage("", tool_calls=calls)]}, config)
    answered: list[str] = []
    while "__interrupt__" in end:
        asked = desk.asked(end)
        answered.append(json.loads(asked["arguments"])["payment"])
        said = {"digest": asked["digest"], "approved": answered[-1] != "pi_1", "reason": "Paid."}
        end = desk.graph.invoke(Command(resume=said), config)
    assert answered == ["pi_0", "pi_1", "pi_2"]
    words = told(end)
    assert [one["status"] for one in words] == ["completed", "refused", "completed"]
    assert "did not approve refund: Paid." in words[1]["detail"]
    assert (agent.runs, Claim.objects.count()) == (["pi_0", "pi_2"], 2)


def test_an_approval_is_bound_to_the_tool_and_to_what_its_arguments_amount_to() -> None:
    pending = Pending(tool="refund", arguments='{"amount": 10, "to": "ada"}')
    same = replace(pending, arguments='{"to":"ada","amount":10.0}')
    assert pending.digest == same.digest
    assert pending.digest != replace(pending, tool="transfer").digest
    assert pending.digest != replace(pending, arguments='{"amount": 50, "to": "ada"}').digest
    with pytest.raises(ArgumentsRefused):
        _ = replace(pending, arguments='{"amount": 1, "amount": 2}').digest


# A second process


@live
def test_a_process_that_was_killed_inside_its_tool_leaves_an_unknown_and_its_heir_sends_nothing(
    agent: Agent, checkpoints: str
) -> None:
    reached = threading.Event()

    def take_and_say_nothing(server: FaultyServer, connection: socket.socket) -> None:
        server.requests.append(read_request(connection))
        reached.set()
        server.over.wait()

    with faulty(take_and_say_nothing) as provider:
        job = Job(
            database=checkpoints,
            api=agent.api,
            token=agent.token(TokenScope.CLAIM),
            provider=provider.url,
            thread=agent.thread,
            first="Refund it.",
        )
        with a_worker() as doomed, a_worker() as heir:
            assert doomed.stdin is not None
            doomed.stdin.write(line(job))
            doomed.stdin.flush()
            assert reached.wait(60), "the request reached the provider"
            doomed.send_signal(signal.SIGKILL)
            assert doomed.wait(10) == -signal.SIGKILL
            assert the_claim().state == ClaimState.IN_FLIGHT
            clock = ShiftedClock()
            try:
                clock.advance(LEASE_SECONDS)
                last_words, complaints = heir.communicate(line(replace(job, first=None)), 60)
            finally:
                clock.restore()
        assert (last_words, heir.returncode) == ("unknown", 0), complaints
        assert len(provider.requests) == 1
    assert the_claim().fence == 1


def a_worker() -> subprocess.Popen[str]:
    """A process that has its libraries and waits for a job on a line of its input."""
    module = "tests.effects.client.integrations.langgraph_worker"
    return subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def line(job: Job) -> str:
    return json.dumps(asdict(job)) + "\n"


# Tools that are not decorated


@pytest.mark.case("D14")
@live
def test_a_foreign_tool_that_is_run_again_is_one_claim_with_an_attempt_for_each_run(
    agent: Agent,
) -> None:
    """The third attempt's success does not hide that the first two are open."""
    faults = [time_out, time_out]

    @undecorated
    def refund(payment: str) -> str:
        """Refund a payment."""
        if faults:
            faults.pop()()
        return "refunded"

    graph = agent.graph(("tools", ToolNode([refund])), retry=AGAIN)
    events = Events(agent.api, agent.token(TokenScope.INGEST), source="urn:test:agent")
    with events, LedgerCallbacks(events) as callbacks:
        graph.invoke(asking(), {**agent.config, "callbacks": [callbacks]})
        assert events.waiting == 0
    claim = the_claim()
    assert (claim.tool.name, claim.call_id) == ("refund", CALL["id"])
    outcomes = [one.outcome for one in Attempt.objects.filter(claim=claim).order_by("fence")]
    assert outcomes == ["unknown", "unknown", "completed"]
    assert Flag.MIRRORED in claim.flags
