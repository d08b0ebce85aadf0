"""Loops of the real OpenAI SDK, over both of its APIs, against a model on loopback."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import openai
import pytest

from effects.client.integrations.guard import AsyncGuard
from effects.client.integrations.loop import Api
from effects.client.integrations.openai import (
    Stop,
    Toolbox,
    chat,
    dispatched,
    model_turns,
    responses,
)
from effects.core.streams import Dispatched, Ending, StreamReader, StreamRecord
from effects.core.streams.record import Advice
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
from tests.support.model_server import (
    End,
    ModelServer,
    by_turn,
    model_server,
    refuses,
    says,
    wants,
)
from tests.support.model_wire import Reply, Wanted

ASKED: list[Any] = [{"role": "user", "content": "Pay what is owed."}]
REQUEST: dict[str, Any] = {"model": "scripted-1"}
PAID = says("It is paid.")

both_apis = pytest.mark.parametrize("api", [responses, chat], ids=["responses", "chat"])


@pytest.fixture
def till(live_api: str) -> Till:
    return open_till(live_api)


@pytest.fixture
def closed_till(scripted):
    """A till where nothing may be asked of the ledger and nothing may be paid."""
    till = Till(url=scripted.url, token="none")
    yield till
    assert (scripted.said, till.paid) == ([], [])


def client_of(model: ModelServer, **more) -> openai.OpenAI:
    return openai.OpenAI(base_url=model.openai_url, api_key="none", **more)


def run(api: Api, model: ModelServer, tools: Toolbox, said=ASKED, **more):
    client, request = client_of(model), REQUEST | more
    return api.run_loop(client, tools, conversation=CONVERSATION, messages=said, **request)


def stream_of(api: Api, client: Any, **more):
    if api is chat:
        return client.chat.completions.create(messages=ASKED, stream=True, **REQUEST, **more)
    return client.responses.create(input=ASKED, stream=True, **REQUEST, **more)


# A turn that goes well


@both_apis
@pytest.mark.django_db(transaction=True)
def test_parallel_calls_of_one_response_are_claimed_in_their_places_and_told(till, api):
    first = wants(PAY, PAY, ("find_order", {"number": 7}), text="I will pay.")
    with (
        till.tools() as tools,
        model_server(refuses(500, **{"retry-after-ms": "1"}), first, wants(PAY), PAID) as model,
    ):
        result = run(api, model, tools)
    assert (result.stop, result.turn, till.paid) == (Stop.ANSWERED, 3, [1200] * 3)
    assert [(c.turn_index, c.position, c.ordinal, c.state) for c in till.claims()] == [
        (0, 0, 0, ClaimState.COMPLETED),
        (1, 0, 0, ClaimState.COMPLETED),
        (0, 1, 1, ClaimState.COMPLETED),
    ]
    assert till.granted("retry_count") == {(0, 0): 1, (0, 1): 1, (1, 0): 0}
    second = model.requests[2]
    assert second.turn == 1
    assert [told["status"] for told in second.results] == ["completed"] * 3
    assert second.results[2]["result"] == {"number": 7, "owed": 1200}
    assert "I will pay." in str(second.said[1])
    assert "It is paid." in str(result.messages[-1])
    assert model.requests[0].tools == ["send_payment", "find_order", "tool_call_status"]


def test_a_response_of_several_items_is_one_turn():
    call = {"type": "function_call", "call_id": "c", "name": "n", "arguments": "{}"}
    output = {"type": "function_call_output", "call_id": "c", "output": "{}"}
    message = {"role": "assistant", "content": "so"}
    assert model_turns(ASKED) == 0
    assert model_turns([*ASKED, {"type": "reasoning"}, message, call, call, output, output]) == 1
    assert model_turns([*ASKED, call, output, call, output, message]) == 3
    assert model_turns([*ASKED, message, *ASKED, message]) == 2


# Where the stream dies


@pytest.mark.parametrize("end", [End.CLEAN, End.UNFINISHED])
@both_apis
def test_a_response_that_is_cut_inside_the_arguments_runs_nothing(closed_till, api, end):
    whole = wants(("send_payment", {"amount": 1000})).but(piece_characters=13)
    cut = whole.but(cut_after=b'"{\\"amount\\": 10"', end=end)
    with closed_till.tools() as tools, model_server(cut) as model:
        result = run(api, model, tools)
    assert (result.stop, result.death.advice) == (Stop.DIED, Advice.REISSUE)
    assert result.messages == ASKED
    assert result.recovery
    assert [step.advice for step in result.recovery.calls] == ["not_run"]
    assert (result.error is None) == (end is End.CLEAN)


@both_apis
def test_a_response_without_its_own_end_runs_nothing_however_whole_its_calls_are(closed_till, api):
    last = b'"arguments": "1200}"' if api is chat else b"output_item.done"
    cut = wants(PAY).but(piece_characters=11, cut_after=last, whole_event=True)
    with closed_till.tools() as tools, model_server(cut) as model:
        result = run(api, model, tools)
    assert (result.stop, result.records[-1].terminal) == (Stop.DIED, Terminal.CUT)


@both_apis
@pytest.mark.parametrize("spoilt", ["whole but not ended", "cut inside", "ended by a limit"])
def test_a_loop_of_ones_own_runs_only_what_ended(closed_till, api, spoilt):
    whole = wants(PAY).but(piece_characters=11)
    reply = {
        "whole but not ended": whole.but(cut_after=b'1200}"', whole_event=True),
        "cut inside": whole.but(cut_after=b"amount", whole_event=True),
        "ended by a limit": whole.but(limited=True),
    }[spoilt]
    reader = StreamReader(api.hearing.protocol, from_events=True)
    with closed_till.tools() as tools, model_server(reply) as model:
        for event in stream_of(api, client_of(model)):
            reader.feed_event(event)
        ran = tools.run_calls(reader.close(), tools.ledger.turn(CONVERSATION, 0))
    assert [(one.call.name, one.effect) for one in ran] == [("send_payment", None)]
    assert (api.tool_results(ran), dispatched(ran)) == ([], {0: Dispatched.NOT_STARTED})


@both_apis
def test_an_error_event_after_status_200_is_an_error_event_and_runs_nothing(closed_till, api):
    died = wants(PAY).but(cut_after=b"1200}", piece_characters=100, error="server_error")
    with closed_till.tools() as tools, model_server(died) as model:
        result = run(api, model, tools)
    (record,) = result.records
    assert (record.terminal, record.error_type) == (Terminal.ERROR_EVENT, "server_error")
    assert result.stop is Stop.DIED
    # One of the two is raised by the SDK, the other only given out like any event.
    assert (result.error is None) == (api is responses)


@both_apis
def test_a_response_that_reached_its_limit_runs_nothing(closed_till, api):
    with closed_till.tools() as tools, model_server(wants(PAY).but(limited=True)) as model:
        result = run(api, model, tools, first_turn=7)
    assert (result.stop, result.death.advice) == (Stop.DIED, Advice.LARGER_BUDGET)
    assert result.turn == 7, "the turn that died is the one that is asked for next"


@both_apis
def test_a_wrong_request_is_raised_and_what_only_a_server_keeps_is_refused(closed_till, api):
    not_for_it = {"n": 2} if api is chat else {"previous_response_id": "resp_1"}
    with closed_till.tools() as tools, model_server() as model:
        with pytest.raises(ValueError, match="not for it"):
            run(api, model, tools, **not_for_it)
        with pytest.raises(TypeError, match="wrong_name"):
            run(api, model, tools, wrong_name=1)
        assert isinstance(run(api, model, tools).error, openai.BadRequestError)


@both_apis
def test_a_guard_turns_the_end_of_a_broken_stream_into_a_lost_connection(api):
    kept: list[StreamRecord] = []
    whole = wants(PAY)
    last = b'"finish_reason": "tool_calls"' if api is chat else b"output_item.done"
    script = [whole.but(cut_after=last, whole_event=True), whole]

    async def guarded() -> None:
        transport = AsyncGuard(on_record=kept.append)
        http = openai.DefaultAsyncHttpxClient(transport=transport)
        async with openai.AsyncOpenAI(
            base_url=model.openai_url, api_key="none", http_client=http
        ) as client:
            with pytest.raises(openai.APIConnectionError):
                [event async for event in await stream_of(api, client)]
            assert [event async for event in await stream_of(api, client)]

    with model_server(*script) as model:
        awaited(guarded())
    assert [record.terminal for record in kept] == [Terminal.CUT, Terminal.SUCCESS]


# Asked again


@both_apis
@pytest.mark.django_db(transaction=True)
def test_a_call_that_was_dispatched_before_the_cut_has_one_effect(till, api):
    both = wants(PAY, PAY_MORE)
    # A chat call has no end before the finish reason; behind that only [DONE] can be missing.
    last = b'"finish_reason": "tool_calls"' if api is chat else b"output_item.done"
    cut = both.but(cut_after=last, whole_event=True)
    with till.tools() as tools, model_server(cut, both, PAID) as model:
        # A loop of one's own that runs what has ended, although the response did not.
        reader = StreamReader(api.hearing.protocol, from_events=True)
        for event in stream_of(api, client_of(model), tools=api.tool_definitions(tools)):
            reader.feed_event(event)
        record = reader.close(Ending.CLEAN)
        ran = tools.run_calls(record, tools.ledger.turn(CONVERSATION, api.turn_index(ASKED)))
        statuses = [one.effect and one.effect.status for one in ran]
        if api is chat:
            assert (statuses, record.unseen) == (["completed"] * 2, ("done_marker",))
        else:
            assert statuses == ["completed"]
            assert record.where_it_died(dispatched(ran)).advice is Advice.REISSUE_KEYED
        assert len(api.tool_results(ran)) == len([each for each in statuses if each])
        result = run(api, model, tools)
    assert (result.stop, till.paid) == (Stop.ANSWERED, [1200, 7])
    assert [told["status"] for told in model.requests[2].results] == ["completed"] * 2


@pytest.mark.django_db(transaction=True)
def test_the_same_turn_in_two_workers_over_two_apis_is_one_effect(till):
    def work(api: Api):
        with till.tools() as tools:
            return run(api, model, tools)

    with model_server(by_turn(wants(PAY, PAY_MORE), PAID)) as model, ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, [responses, chat]))
    assert sorted(till.paid) == [7, 1200]
    assert {result.stop for result in results} == {Stop.ANSWERED}


# Outcomes that nobody knows


@pytest.mark.django_db(transaction=True)
def test_an_unknown_outcome_is_told_as_unknown_and_the_loop_goes_on(till):
    till.send = lose_the_answer
    with till.tools() as tools, model_server(by_turn(wants(PAY), PAID)) as model:
        result = run(chat, model, tools)
        run(responses, model, tools)
    (told,), (again,) = model.requests[1].results, model.requests[3].results
    assert again["claim"] == told["claim"]
    assert (result.stop, told["status"]) == (Stop.ANSWERED, "unknown")
    assert told["next_step"].startswith("Do not call this tool again")
    assert dispatched(result.ran) == {0: Dispatched.IN_FLIGHT}
    assert till.paid == [1200]


@pytest.mark.django_db(transaction=True)
def test_a_task_that_is_cancelled_while_its_tools_run_leaves_them_unknown(till):
    till.send = never_answer

    async def cancelled() -> None:
        async with (
            till.async_tools() as tools,
            openai.AsyncOpenAI(base_url=model.openai_url, api_key="none") as client,
        ):
            work = responses.run_loop_async(
                client, tools, conversation=CONVERSATION, messages=ASKED, **REQUEST
            )
            task = asyncio.ensure_future(work)
            await until_paid(till, 2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with model_server(wants(PAY, PAY_MORE)) as model:
        awaited(cancelled())
    assert [claim.state for claim in till.claims()] == [ClaimState.UNKNOWN] * 2


# Servers that speak almost the protocol


@pytest.mark.django_db(transaction=True)
def test_an_ended_call_that_is_no_json_is_told_and_one_without_an_id_is_answered(till):
    broken = Wanted(name="send_payment", arguments='{"amount": 12')
    nameless = Wanted(name="send_payment", arguments='{"amount": 7}', call_id="")
    with till.tools() as tools, model_server(Reply(calls=(broken, nameless)), PAID) as model:
        run(chat, model, tools)
    told = model.requests[1]
    assert [each["status"] for each in told.results] == ["refused", "completed"]
    asked, *answers = told.said[1:]
    assert [call["id"] for call in asked["tool_calls"]] == [
        each["tool_call_id"] for each in answers
    ]
    (claim,) = till.claims()
    assert claim.position == 1


# The documented example


@pytest.mark.django_db(transaction=True)
def test_the_example_pays_once_however_often_it_is_run(till, capfd):
    with (
        faulty(answers(200, b'{"id": "pi_1"}')) as provider,
        model_server(by_turn(wants(PAY), PAID)) as model,
    ):
        for _ in range(2):
            run_example("openai_loop.py", till.example_env(model, provider.url))
    assert capfd.readouterr().out == "send_payment completed\nIt is paid.\n" * 2
    assert len(provider.requests) == 1
