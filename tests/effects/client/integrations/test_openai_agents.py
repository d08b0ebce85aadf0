"""The real OpenAI Agents SDK against a model on loopback and a real ledger."""

import asyncio
import contextlib
import threading
from typing import Any, override

import openai
import pytest
from agents import (
    Agent,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    RunConfig,
    Runner,
    RunState,
    SQLiteSession,
    UserError,
)

from effects.client import AsyncCall, AsyncLedger, effect
from effects.client.integrations.guard import AsyncGuard
from effects.client.integrations.openai_agents import AsyncToolbox, Toolbox, Turns, function_tools
from effects.core.streams import StreamRecord
from effects.core.vocabulary import ClaimState, Terminal
from tests.effects.client.integrations.till import (
    CONVERSATION,
    PAY,
    PAY_MORE,
    Till,
    lose_the_answer,
    never_answer,
    open_till,
    run_example,
    until_paid,
)
from tests.effects.faulty_server import answers, faulty
from tests.support.awaiting import awaited
from tests.support.model_server import ModelServer, by_turn, model_server, says, wants

ASKED = "Pay what is owed."
PAID = says("It is paid.")
QUIET = RunConfig(tracing_disabled=True)
KINDS = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}

both_models = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture
def till(live_api: str) -> Till:
    return open_till(live_api)


@pytest.fixture
def closed_till(scripted):
    """A till where nothing may be asked of the ledger and nothing may be paid."""
    till = Till(url=scripted.url, token="none")
    yield till
    assert (scripted.said, till.paid) == ([], [])


class AgentOf(contextlib.AsyncExitStack):
    """One agent of the till, with a client of its own and async tools, unless it is given others.
    `timeout_seconds` is how long the SDK waits for one of them."""

    def __init__(
        self,
        till: Till,
        model: ModelServer,
        kind: str = "responses",
        *,
        tools: Toolbox | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        super().__init__()
        self._till, self._given, self._timeout_seconds = till, tools, timeout_seconds
        self.records: list[StreamRecord] = []
        guard = AsyncGuard(on_record=self.records.append)
        self._client = openai.AsyncOpenAI(
            base_url=model.openai_url,
            api_key="none",
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(transport=guard),
        )
        self.agent = Agent(name="Till", model=KINDS[kind]("scripted-1", self._client))

    @override
    async def __aenter__(self):
        await self.enter_async_context(self._client)
        tools: Any = self._given
        if tools is None:
            tools = await self.enter_async_context(self._till.async_tools())
        self.agent.tools += function_tools(tools, timeout_seconds=self._timeout_seconds)
        return self

    async def run(self, asked: Any = ASKED, turns: Turns | None = None, **more):
        turns = turns or Turns(CONVERSATION)
        return await Runner.run(self.agent, asked, hooks=turns, run_config=QUIET, **more)

    async def run_streamed(self, turns: Turns | None = None):
        run = Runner.run_streamed(
            self.agent, ASKED, hooks=turns or Turns(CONVERSATION), run_config=QUIET
        )
        async for _ in run.stream_events():
            pass
        return run


async def approved(agent: Agent, waiting: str) -> RunState:
    """The run that waits, as another process finds it, with its call approved."""
    state = await RunState.from_string(agent, waiting)
    state.approve(state.get_interruptions()[0])
    return state


# A turn that goes well


@both_models
@pytest.mark.django_db(transaction=True)
def test_parallel_calls_are_claimed_in_their_places_and_a_run_that_begins_again_repeats_nothing(
    till, kind
):
    async def work() -> None:
        async with AgentOf(till, model, kind) as agent:
            assert (await agent.run_streamed()).final_output == "It is paid."
            assert (await agent.run()).final_output == "It is paid."

    with model_server(by_turn(wants(PAY, PAY), wants(PAY), PAID)) as model:
        awaited(work())
    assert till.paid == [1200] * 3
    assert [(c.turn_index, c.position, c.ordinal, c.state) for c in till.claims()] == [
        (0, 0, 0, ClaimState.COMPLETED),
        (1, 0, 0, ClaimState.COMPLETED),
        (0, 1, 1, ClaimState.COMPLETED),
    ]
    assert [told["status"] for told in model.requests[-1].results] == ["completed"] * 3
    named = set(till.granted("response_id").values())
    assert (named == {None}) == (kind == "chat"), "the SDK's own name is nobody's id"
    assert len(named) == (1 if kind == "chat" else 2)
    assert model.requests[0].tools == ["send_payment", "tool_call_status"]


@pytest.mark.django_db(transaction=True)
def test_turns_go_on_counting_in_a_session_and_after_an_approval_in_another_process(till):
    async def work() -> None:
        async with AgentOf(till, model) as agent:
            pay: Any = agent.agent.tools[0]
            pay.needs_approval = True
            turns = Turns(CONVERSATION)
            waiting = (await agent.run(turns=turns, session=session)).to_state().to_string()
            assert till.paid == []
            with pytest.raises(UserError, match="Turns that it began with"):
                await agent.run(await approved(agent.agent, waiting), session=session)
            turns = Turns.restored(turns.saved())
            await agent.run(await approved(agent.agent, waiting), turns, session=session)
            (effect,) = turns.effects.values()
            assert effect.status == "completed"
            pay.needs_approval = False
            await agent.run(session=session)

    session = SQLiteSession("s")
    with (
        contextlib.closing(session),
        model_server(by_turn(wants(PAY), PAID, wants(PAY), PAID)) as model,
    ):
        awaited(work())
    assert sorted(claim.turn_index for claim in till.claims()) == [0, 2]
    assert till.paid == [1200] * 2


# Where the stream dies


@both_models
@pytest.mark.parametrize("cut", ["inside", "behind", "limit"])
def test_a_response_that_broke_off_runs_nothing(closed_till, kind, cut):
    whole = wants(PAY).but(piece_characters=11)
    script = {
        "inside": whole.but(cut_after=b"amount", whole_event=True),
        "behind": whole.but(cut_after=b'1200}"', whole_event=True),
        "limit": whole.but(limited=True),
    }[cut]

    async def work() -> None:
        async with AgentOf(closed_till, model, kind) as agent:
            with pytest.raises(Exception, match=r"Connection error|final response|incomplete"):
                await agent.run_streamed()
        assert agent.records[0].terminal is (
            Terminal.INCOMPLETE if cut == "limit" else Terminal.CUT
        )

    with model_server(script) as model:
        awaited(work())


def test_without_a_guard_a_call_that_lost_its_arguments_does_not_run_with_the_defaults(scripted):
    async def work() -> None:
        async with (
            AsyncLedger(scripted.url, "none") as ledger,
            openai.AsyncOpenAI(base_url=model.openai_url, api_key="none") as client,
        ):

            @effect(ledger, effect_class="keyed_write")
            async def send_tip(call: AsyncCall, *, amount: int = 5) -> None:
                """Send a tip."""

            tools = function_tools(AsyncToolbox(ledger, send_tip))
            chat = OpenAIChatCompletionsModel("scripted-1", client)
            agent = Agent(name="Till", model=chat, tools=[*tools])
            run = Runner.run_streamed(agent, ASKED, hooks=Turns(CONVERSATION), run_config=QUIET)
            async for _ in run.stream_events():
                pass

    cut = wants(("send_tip", {"amount": 1200})).but(cut_after=b'"send_tip"', whole_event=True)
    with model_server(cut, PAID) as model:
        awaited(work())
    assert [told["status"] for told in model.requests[1].results] == ["refused"]
    assert scripted.said == []


def test_a_run_without_turns_is_an_error_before_anything_is_asked(closed_till):
    async def work() -> None:
        async with AgentOf(closed_till, model) as agent:
            with pytest.raises(UserError, match="hooks=Turns"):
                await Runner.run(agent.agent, ASKED, run_config=QUIET)

    with model_server(wants(PAY)) as model:
        awaited(work())


# Outcomes that nobody knows


@pytest.mark.django_db(transaction=True)
def test_what_failed_took_too_long_or_was_cancelled_is_told_as_unknown_and_the_run_goes_on(till):
    async def send(call: Any) -> None:
        if len(till.paid) == 1:
            lose_the_answer(call)
        if len(till.paid) == 2:
            await never_answer(call)
        raise asyncio.CancelledError

    till.send = send
    third = ("send_payment", {"amount": 33})

    async def work() -> None:
        async with AgentOf(till, model, timeout_seconds=0.5) as agent:
            turns = Turns(CONVERSATION)
            assert (await agent.run(turns=turns)).final_output == "It is paid."
            assert {effect.status for effect in turns.effects.values()} == {"unknown"}

    with model_server(wants(PAY), wants(PAY_MORE), wants(third), PAID) as model:
        awaited(work())
    assert len(model.requests[-1].results) == 3
    for told in model.requests[-1].results:
        assert told["status"] == "unknown"
        assert told["next_step"].startswith("Do not call this tool again")
        assert "try again" not in str(told).lower()
    assert [claim.state for claim in till.claims()] == [ClaimState.UNKNOWN] * 3


@pytest.mark.django_db(transaction=True)
def test_a_plain_tool_that_outlasts_its_timeout_is_told_as_running_and_ends_in_its_thread(till):
    told = threading.Event()
    till.send = lambda _: told.wait(10)

    async def work() -> None:
        async with AgentOf(till, model, tools=tools, timeout_seconds=0.3) as agent:
            assert (await agent.run()).final_output == "It is paid."
            told.set()

    with till.tools() as tools, model_server(wants(PAY), PAID) as model:
        awaited(work())
        (seen,) = model.requests[1].results
        assert seen["status"] == "in_flight"
        assert tools.ledger.wait(seen["claim"], 10).status == "completed"
    assert till.paid == [1200]


@pytest.mark.django_db(transaction=True)
def test_a_run_that_is_cancelled_leaves_its_tools_unknown(till):
    till.send = never_answer

    async def work() -> None:
        async with AgentOf(till, model) as agent:
            task = asyncio.ensure_future(agent.run())
            await until_paid(till, 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with model_server(wants(PAY, PAY_MORE)) as model:
        awaited(work())
    assert [claim.state for claim in till.claims()] == [ClaimState.UNKNOWN] * 2


@pytest.mark.django_db(transaction=True)
def test_the_same_turn_in_two_workers_is_one_effect(till):
    async def work() -> None:
        async with AgentOf(till, model) as one, AgentOf(till, model, "chat") as other:
            ends = await asyncio.gather(one.run_streamed(), other.run())
            assert [end.final_output for end in ends] == ["It is paid."] * 2

    with model_server(by_turn(wants(PAY, PAY_MORE), PAID)) as model:
        awaited(work())
    assert sorted(till.paid) == [7, 1200]


# The documented example


@pytest.mark.django_db(transaction=True)
def test_the_example_pays_once_however_often_it_is_run(till, capfd):
    with (
        faulty(answers(200, b'{"id": "pi_1"}')) as provider,
        model_server(by_turn(wants(PAY), PAID)) as model,
    ):
        for _ in range(2):
            run_example("openai_agents_run.py", till.example_env(model, provider.url))
    assert capfd.readouterr().out == "completed\nIt is paid.\n" * 2
    assert len(provider.requests) == 1
