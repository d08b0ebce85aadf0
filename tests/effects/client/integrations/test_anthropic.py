"""A loop of the real Anthropic SDK against a model on loopback and a real ledger."""

import asyncio
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import anthropic
import pytest
from anthropic._models import construct_type

from effects.client.clock import elapsed_clock_seconds
from effects.client.integrations import toolbox
from effects.client.integrations.anthropic import Stop, Toolbox, dispatched, messages
from effects.client.integrations.guard import Guard
from effects.client.integrations.loop import Loop
from effects.core.streams import (
    Dispatched,
    Ending,
    Protocol,
    StreamReader,
    StreamRecord,
    read_stream,
)
from effects.core.streams.record import Advice
from effects.core.vocabulary import ClaimState, Terminal
from ledger.models import Stream
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
from tests.support.model_wire import Names, Wire, body_of
from tests.support.stack import ROOT

ASKED: list[Any] = [{"role": "user", "content": "Pay what is owed."}]
REQUEST: dict[str, Any] = {"model": "scripted-1", "max_tokens": 100}
PAID = says("It is paid.")
AT_ONCE = {"retry-after-ms": "1"}


@pytest.fixture
def till(live_api: str) -> Till:
    return open_till(live_api)


@pytest.fixture
def closed_till(scripted):
    """A till where nothing may be asked of the ledger and nothing may be paid."""
    till = Till(url=scripted.url, token="none")
    yield till
    assert (scripted.said, till.paid) == ([], [])


def client_of(model: ModelServer, **more) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=model.url, api_key="none", **more)


def run(model: ModelServer, tools: Toolbox, said=ASKED, **more):
    client, request = client_of(model), REQUEST | more
    return messages.run_loop(client, tools, conversation=CONVERSATION, messages=said, **request)


# A turn that goes well


@pytest.mark.django_db(transaction=True)
def test_parallel_calls_of_one_response_are_claimed_in_their_places_and_told(till):
    first = wants(PAY, PAY, ("find_order", {"number": 7}), text="I will pay.")
    with till.tools() as tools, model_server(first, PAID) as model:
        result = run(model, tools)
    assert (result.stop, till.paid) == (Stop.ANSWERED, [1200, 1200])
    assert [(c.position, c.ordinal, c.state) for c in till.claims()] == [
        (0, 0, ClaimState.COMPLETED),
        (1, 1, ClaimState.COMPLETED),
    ]
    again = model.requests[1]
    assert [told["status"] for told in again.results] == ["completed"] * 3
    assert again.results[2]["result"] == {"number": 7, "owed": 1200}
    assert again.said[1]["content"][0] == {"type": "text", "text": "I will pay."}
    assert [block["id"] for block in again.said[1]["content"][1:]] == [
        block["tool_use_id"] for block in again.said[2]["content"]
    ]
    assert result.messages[-1]["content"] == [{"type": "text", "text": "It is paid."}]
    assert model.requests[0].tools == ["send_payment", "find_order", "tool_call_status"]


@pytest.mark.django_db(transaction=True)
def test_turns_are_counted_tries_of_the_sdk_are_seen_and_responses_are_recorded(till):
    cut = wants(PAY).but(cut_after=b"partial_json", cut_nth=2)
    script = (cut, refuses(529, **AT_ONCE), wants(PAY), wants(PAY), PAID)
    with till.tools(records=True) as tools, model_server(*script) as model:
        assert run(model, tools).stop is Stop.DIED
        assert run(model, tools).stop is Stop.ANSWERED
    assert sorted((claim.turn_index, claim.state) for claim in till.claims()) == [
        (0, ClaimState.COMPLETED),
        (1, ClaimState.COMPLETED),
    ], "the same call in a later turn is another call"
    assert till.granted("retry_count") == {(0, 0): 1, (1, 0): 0}
    streams = Stream.objects.filter(workspace=till.workspace).order_by("id")
    assert [(s.turn_index, s.terminal, s.calls.count()) for s in streams] == [
        (0, Terminal.CUT, 1),
        (0, Terminal.SUCCESS, 1),
        (1, Terminal.SUCCESS, 1),
        (2, Terminal.SUCCESS, 0),
    ]


@pytest.mark.django_db(transaction=True)
def test_the_loop_says_that_its_responses_were_received_in_this_process_just_now() -> None:
    """So that a tool that opted in may be sent while the ledger is away."""
    loop = Loop(messages.hearing, CONVERSATION, ASKED, turns_max=1, first_turn=0, request={})
    heard: Any = SimpleNamespace(retry_count=None)
    before = elapsed_clock_seconds()
    said = loop.turn(heard, read_stream(Protocol.ANTHROPIC, b""))
    assert said["received"].here
    assert before <= said["received"].at <= elapsed_clock_seconds()


def test_a_call_that_is_wrong_is_told_and_costs_the_others_nothing(till):
    wrong = ("send_payment", {"amount": "12"})
    said = wants(wrong, ("nothing", {}), PAY, ("find_order", {"number": -1}))
    with till.tools() as tools, model_server(said, PAID) as model:
        run(model, tools)
    told = model.requests[1].results
    assert [each["status"] for each in told] == ["refused", "refused", "completed", "failed"]
    assert "amount: Input should be a valid integer" in told[0]["detail"]
    assert "hunter2" not in str(told)
    marked = [block.get("is_error") for block in model.requests[1].said[2]["content"]]
    assert marked == [True, True, None, None]
    assert (till.paid, [claim.position for claim in till.claims()]) == ([1200], [2])


# Where the stream dies


@pytest.mark.parametrize("end", [End.CLEAN, End.UNFINISHED, End.RESET])
def test_a_response_that_is_cut_inside_the_arguments_runs_nothing(closed_till, end):
    cut = wants(("send_payment", {"amount": 1000})).but(
        piece_characters=13, cut_after=b'"partial_json": "{\\"amount\\": 10"}}\n\n', end=end
    )
    with closed_till.tools() as tools, model_server(cut) as model:
        result = run(model, tools)
    assert (result.stop, result.death.advice) == (Stop.DIED, Advice.REISSUE)
    assert result.messages == ASKED
    assert result.recovery
    assert [step.advice for step in result.recovery.calls] == ["not_run"]
    assert (result.error is None) == (end is End.CLEAN)


@pytest.mark.parametrize(
    "cut_after", [b"content_block_start", b"content_block_stop", b"message_delta"]
)
def test_a_message_without_its_own_end_runs_nothing_however_whole_its_calls_are(
    closed_till, cut_after
):
    cut = wants(PAY).but(cut_after=cut_after, whole_event=True)
    with closed_till.tools() as tools, model_server(cut) as model:
        result = run(model, tools)
    assert (result.stop, result.records[-1].terminal) == (Stop.DIED, Terminal.CUT)


def test_a_connection_that_breaks_behind_the_last_event_takes_nothing_back(closed_till):
    with closed_till.tools() as tools, model_server(PAID.but(end=End.UNFINISHED)) as model:
        result = run(model, tools)
    assert (result.stop, result.error) == (Stop.ANSWERED, None)


def test_an_error_event_after_status_200_is_an_error_event_and_runs_nothing(closed_till):
    died = wants(PAY).but(
        cut_after=b"content_block_stop", whole_event=True, error="overloaded_error"
    )
    with closed_till.tools() as tools, model_server(died) as model:
        result = run(model, tools)
    (record,) = result.records
    assert (record.terminal, record.error_type) == (Terminal.ERROR_EVENT, "overloaded_error")
    assert isinstance(result.error, anthropic.APIStatusError)
    assert result.stop is Stop.DIED


def test_a_response_that_reached_its_limit_runs_nothing(closed_till):
    with closed_till.tools() as tools, model_server(wants(PAY).but(limited=True)) as model:
        result = run(model, tools)
    assert (result.stop, result.death.advice) == (Stop.DIED, Advice.LARGER_BUDGET)


def test_a_model_that_cannot_be_reached_is_told_and_a_wrong_request_is_raised(closed_till):
    away = [refuses(503, "api_error", **AT_ONCE)] * 3
    with closed_till.tools() as tools, model_server(*away) as model:
        result = run(model, tools)
        assert isinstance(result.error, anthropic.APIStatusError)
        assert (result.stop, result.death.advice) == (Stop.DIED, Advice.REISSUE)
        with pytest.raises(TypeError, match="wrong_name"):
            run(model, tools, wrong_name=1)
        with pytest.raises(ValueError, match="stream is not for it"):
            run(model, tools, stream=True)


def test_what_the_sdk_does_not_know_yet_is_read_without_a_warning():
    reader = StreamReader(Protocol.ANTHROPIC, from_events=True)
    block = {"type": "brand_new", "said": 1}
    event: Any = construct_type(
        type_=anthropic.types.RawMessageStreamEvent,
        value={"type": "content_block_start", "index": 0, "content_block": block},
    )
    reader.feed_event(event)
    assert reader.close().calls == ()


def test_a_guard_turns_the_end_of_a_broken_stream_into_an_error():
    kept: list[StreamRecord] = []
    cut = wants(PAY).but(cut_after=b"content_block_stop", whole_event=True)
    with model_server(cut, says("Whole.")) as model:
        guarded = anthropic.DefaultHttpxClient(transport=Guard(on_record=kept.append))
        client: Any = client_of(model, http_client=guarded)
        for _ in range(2):
            stream = client.messages.create(stream=True, messages=ASKED, **REQUEST)
            if kept:
                assert [event.type for event in stream][-1] == "message_stop"
                continue
            with pytest.raises(Exception, match="not whole"):
                list(stream)
    assert [record.terminal for record in kept] == [Terminal.CUT, Terminal.SUCCESS]
    assert model.requests[0].headers["accept-encoding"] == "identity"


# Asked again


@pytest.mark.django_db(transaction=True)
def test_a_call_that_was_dispatched_before_the_cut_has_one_effect(till):
    both = wants(PAY, PAY_MORE)
    cut = both.but(cut_after=b"partial_json", cut_nth=6)
    with till.tools() as tools, model_server(cut, both, PAID) as model:
        # A loop of one's own that runs what has ended, although the message did not.
        reader = StreamReader(Protocol.ANTHROPIC, from_events=True)
        offered = messages.tool_definitions(tools)
        with client_of(model).messages.stream(messages=ASKED, tools=offered, **REQUEST) as stream:
            for event in stream:
                reader.feed_event(event)
        record = reader.close(Ending.CLEAN)
        turn = tools.ledger.turn(CONVERSATION, messages.turn_index(ASKED))
        ran = tools.run_calls(record, turn)
        assert [one.effect and one.effect.status for one in ran] == ["completed", None]
        assert dispatched(ran) == {0: Dispatched.RETURNED, 1: Dispatched.NOT_STARTED}
        assert record.where_it_died(dispatched(ran)).advice is Advice.REISSUE_KEYED
        assert len(messages.tool_results(ran)[0]["content"]) == 1

        result = run(model, tools)
    assert (result.stop, till.paid) == (Stop.ANSWERED, [1200, 7])
    assert [told["status"] for told in model.requests[2].results] == ["completed"] * 2


@pytest.mark.django_db(transaction=True)
def test_the_same_turn_in_two_workers_is_one_effect(till):
    def work(_):
        with till.tools() as tools:
            return run(model, tools)

    with model_server(by_turn(wants(PAY, PAY_MORE), PAID)) as model, ThreadPoolExecutor(2) as pool:
        results = list(pool.map(work, range(2)))
    assert sorted(till.paid) == [7, 1200]
    assert {result.stop for result in results} == {Stop.ANSWERED}
    told = {one.effect.status for result in results for one in result.ran if one.effect}
    assert told <= {"completed", "in_flight"}


# Outcomes that nobody knows


@pytest.mark.django_db(transaction=True)
def test_an_unknown_outcome_is_told_as_unknown_and_the_loop_goes_on(till):
    till.send = lose_the_answer
    with till.tools() as tools, model_server(by_turn(wants(PAY), PAID)) as model:
        result = run(model, tools)
        (told,) = model.requests[1].results
        assert (result.stop, told["status"]) == (Stop.ANSWERED, "unknown")
        assert told["next_step"].startswith("Do not call this tool again")
        assert "is_error" not in str(model.requests[1].said)
        assert dispatched(result.ran) == {0: Dispatched.IN_FLIGHT}
        # The model asks the status tool, which says the same as the call did.
        asks = [("tool_call_status", {"claim": claim}) for claim in (told["claim"], "x")]
        with model_server(wants(*asks), PAID) as later:
            run(later, tools, [*ASKED, {"role": "assistant", "content": "I will see."}, *ASKED])
        assert later.requests[1].results[0] == told
        assert later.requests[1].results[1]["status"] == "claim_not_found"
        # And the turn that is asked again does not run it again.
        run(model, tools)
    assert till.paid == [1200]


@pytest.mark.django_db(transaction=True)
def test_a_task_that_is_cancelled_while_its_tools_run_leaves_them_unknown(till):
    till.send = never_answer

    async def cancelled() -> None:
        async with till.async_tools() as tools:
            client = anthropic.AsyncAnthropic(base_url=model.url, api_key="none")
            work = messages.run_loop_async(
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


@pytest.mark.django_db(transaction=True)
def test_an_agent_that_is_stopped_gives_back_what_it_had_not_begun(till):
    def stop(_) -> None:
        raise KeyboardInterrupt

    till.send = stop
    with (
        till.tools() as tools,
        model_server(wants(PAY, PAY_MORE)) as model,
        pytest.raises(KeyboardInterrupt),
    ):
        run(model, tools)
    assert [claim.state for claim in till.claims()] == [ClaimState.UNKNOWN, ClaimState.NOT_EXECUTED]
    assert till.paid == [1200]


@pytest.mark.django_db(transaction=True)
def test_grants_that_came_before_the_agent_stopped_are_given_back(till, monkeypatch):
    monkeypatch.setattr(toolbox, "CLAIMS_PER_BATCH_MAX", 1)

    async def stopped() -> None:
        async with till.async_tools() as tools:
            begin_all = tools.ledger.begin_all
            asked: list[Any] = []

            async def begin_once(calls):
                if asked:
                    raise asyncio.CancelledError
                asked.extend(calls)
                return await begin_all(calls)

            monkeypatch.setattr(tools.ledger, "begin_all", begin_once)
            body = body_of(Wire.ANTHROPIC, wants(PAY, PAY_MORE), Names(), streamed=True)
            record = read_stream(Protocol.ANTHROPIC, body)
            with pytest.raises(asyncio.CancelledError):
                await tools.run_calls(record, tools.ledger.turn(CONVERSATION, 0))

    awaited(stopped())
    assert [claim.state for claim in till.claims()] == [ClaimState.NOT_EXECUTED]
    assert till.paid == []


@pytest.mark.django_db(transaction=True)
def test_a_call_whose_time_went_by_behind_a_slow_one_is_not_sent(till, monkeypatch):
    def an_hour_goes_by(_) -> None:
        later = elapsed_clock_seconds() + 3600
        monkeypatch.setattr("effects.client.call.elapsed_clock_seconds", lambda: later)

    till.send = an_hour_goes_by
    with till.tools() as tools, model_server(wants(PAY, PAY_MORE), PAID) as model:
        result = run(model, tools)
    ended = [one.effect and one.effect.status for one in result.ran]
    assert ended == ["completed", "not_executed"]
    assert till.paid == [1200]


# The documented example


@pytest.mark.django_db(transaction=True)
def test_two_processes_of_the_example_pay_once(till, capfd):
    program = [sys.executable, str(ROOT / "docs" / "examples" / "anthropic_loop.py")]
    with (
        faulty(answers(200, b'{"id": "pi_1"}')) as provider,
        model_server(by_turn(wants(PAY), PAID)) as model,
    ):
        env = till.example_env(model, provider.url)
        inherited = {**os.environ, "PYTHONPATH": str(ROOT)}
        other = subprocess.Popen([*program, CONVERSATION, "Pay."], env=inherited | env)
        while not model.requests and other.poll() is None:
            time.sleep(0.001)
        run_example("anthropic_loop.py", env)
        assert other.wait(timeout=60) == 0
    said = capfd.readouterr().out
    assert (said.count("send_payment "), said.count("It is paid.")) == (2, 2)
    (sent,) = provider.requests
    assert b"idempotency-key: " in sent.lower()
    assert [claim.state for claim in till.claims()] == [ClaimState.COMPLETED]
