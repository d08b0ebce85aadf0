"""The recovery decision from what an agent has: real SDKs, cut streams, and the ledger's word."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import anthropic
import openai
import pytest
from pydantic import ValidationError

from effects.client import AsyncLedger, Effect, Ledger
from effects.client.effect_result import effect_of
from effects.client.recovering import recovery_request
from effects.core.messages import ClaimAnswer
from effects.core.problems import ClaimNotFound, LedgerUnavailable
from effects.core.recovery import ENDPOINTS, EndpointContract, RecoveryRecord
from effects.core.recovery_messages import (
    Budget,
    CallFacts,
    Concurrent,
    KeyedSend,
    Mechanism,
    Received,
    RecoveryReason,
    RecoveryStep,
    ReplayContract,
)
from effects.core.streams import ArgumentsState, Dispatched, Ending, Protocol, StreamReader
from effects.core.streams import StreamRecord as Stream
from effects.core.vocabulary import ClaimState, EffectClass, Outcome, Terminal
from tests.effects.client.scripted_ledger import CLAIM, QUICK, state
from tests.effects.faulty_server import closed_port
from tests.effects.streams.wire import message_start, piece, sse, tool_block
from tests.support.awaiting import awaited
from tests.support.model_server import End, ModelServer, Reply, model_server, refuses, wants

Step, Why, M = RecoveryStep, RecoveryReason, Mechanism
ANTHROPIC, CHAT, RESPONSES = Protocol
PAYS = wants(("pay", {"amount": 1200, "currency": "eur", "invoice": "I-1"}))
ASKED: Any = [{"role": "user", "content": "Pay it."}]
REFRESHES = EndpointContract(supports_refresh=True)


def ask(protocol: Protocol, model: ModelServer, repeats: int) -> Any:
    """The events of one response, as the real SDK hands them out."""
    if protocol is ANTHROPIC:
        claude = anthropic.Anthropic(base_url=model.url, api_key="none", max_retries=repeats)
        return claude.messages.create(model="m", max_tokens=99, messages=ASKED, stream=True)
    gpt = openai.OpenAI(base_url=model.openai_url, api_key="none", max_retries=repeats)
    if protocol is CHAT:
        return gpt.chat.completions.create(model="m", messages=ASKED, stream=True)
    return gpt.responses.create(model="m", input="Pay it.", stream=True)


def received(
    protocol: Protocol, model: ModelServer, repeats: int = 0
) -> tuple[Stream, Exception | None]:
    reader, error = StreamReader(protocol, from_events=True), None
    try:
        with ask(protocol, model, repeats) as events:
            for event in events:
                reader.feed_event(event)
    except Exception as raised:  # noqa: BLE001 - whatever the SDK makes of it
        error = raised
    return reader.close(), error


class Silent:
    """A transport that knows what each claim came to, and counts who asked."""

    def __init__(self, *answers: ClaimAnswer | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def status(self, claim: str) -> ClaimAnswer:
        self.asked.append(claim)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


@pytest.fixture
def ledger_that() -> Callable[..., Ledger]:
    def knows(*answers: ClaimAnswer | Exception) -> Ledger:
        return Ledger(transport=Silent(*answers), patience=QUICK)  # type: ignore[arg-type] # it is asked nothing else

    return knows


@pytest.fixture
def ledger(ledger_that: Callable[..., Ledger]) -> Ledger:
    return ledger_that()


# What real SDKs give


@pytest.mark.parametrize(
    ("protocol", "reply", "contract", "step", "reason"),
    [
        pytest.param(
            ANTHROPIC,
            PAYS.but(cut_after=b"partial_json"),
            None,
            Step.PRESERVE,
            Why.INTERRUPTED,
            id="anthropic: the iterator simply ends",
        ),
        pytest.param(
            ANTHROPIC,
            PAYS.but(cut_after=b"partial_json", end=End.UNFINISHED),
            None,
            Step.PRESERVE,
            Why.INTERRUPTED,
            id="anthropic: the line is cut",
        ),
        pytest.param(
            ANTHROPIC,
            PAYS.but(cut_after=b"partial_json", whole_event=True, error="overloaded_error"),
            None,
            Step.PRESERVE,
            Why.FAILED_IN_STREAM,
            id="anthropic: an error event is raised with status 200",
        ),
        pytest.param(
            CHAT,
            PAYS.but(cut_after=b"tool_calls", whole_event=True, error="server_error"),
            None,
            Step.PRESERVE,
            Why.FAILED_IN_STREAM,
            id="chat: an error event is raised without a status",
        ),
        pytest.param(
            RESPONSES,
            PAYS.but(cut_after=b"arguments.delta", whole_event=True, error="server_error"),
            None,
            Step.PRESERVE,
            Why.FAILED_IN_STREAM,
            id="responses: an error event is only yielded",
        ),
        pytest.param(
            RESPONSES,
            PAYS.but(cut_after=b"arguments.delta", end=End.UNFINISHED),
            None,
            Step.PRESERVE,
            Why.INTERRUPTED,
            id="responses: the line is cut",
        ),
        pytest.param(
            CHAT, PAYS, None, Step.SETTLE, Why.SUCCESS_RECORDED, id="chat: it ends, as far as seen"
        ),
        pytest.param(
            ANTHROPIC,
            refuses(401, "authentication_error"),
            REFRESHES,
            Step.REFRESH,
            Why.CREDENTIALS_REJECTED,
            id="anthropic: 401",
        ),
        pytest.param(
            CHAT, refuses(401, "authentication_error"), None, Step.PRESERVE,
            Why.RECONNECTION_REQUIRED, id="chat: 401 of an API key",
        ),
        pytest.param(
            RESPONSES, refuses(429, "rate_limited"), None, Step.SEND, Why.TURNED_AWAY, id="429"
        ),
        pytest.param(CHAT, refuses(529), None, Step.PRESERVE, Why.NO_ANSWER, id="529"),
    ],
)  # fmt: skip
def test_what_an_sdk_gives_is_judged_as_what_it_is(ledger, protocol, reply, contract, step, reason):
    with model_server(reply) as model:
        stream, error = received(protocol, model)
    known = RecoveryRecord(result_recorded=True)
    decision = ledger.recover(stream, error, known=known, contract=contract)
    assert (decision.step, decision.reason) == (step, reason)


def test_a_refused_connection_is_sent_again_and_what_the_sdk_repeated_counts(ledger):
    class Nowhere(ModelServer):
        def __init__(self) -> None:
            super().__init__(lambda _: Reply())
            self.url = f"http://127.0.0.1:{closed_port()}"

    stream, error = received(ANTHROPIC, Nowhere())
    assert ledger.recover(stream, error).step is Step.SEND
    assert ledger.recover(None, error).step is Step.SEND

    with model_server(refuses(500), refuses(500), refuses(500)) as model:
        stream, error = received(CHAT, model, repeats=2)
    assert len(model.requests) == 3
    assert recovery_request(stream, error).record.sends.made == 3


def test_a_resume_follows_what_was_applied_and_not_what_the_sdk_has_read(ledger):
    with model_server(PAYS.but(cut_after=b"arguments.delta", cut_nth=3)) as model:
        stream, error = received(RESPONSES, model)
    assert stream.cursor is not None
    known = RecoveryRecord(
        background=True,
        stored=True,
        cursor=stream.cursor - 1,
        last_event_at=datetime.now(UTC) - timedelta(seconds=5),
    )
    decision = ledger.recover(stream, error, known=known, contract=ENDPOINTS[RESPONSES])
    assert (decision.step, decision.mechanism) == (Step.RESUME, M.RESUME)
    assert (decision.operation_id, decision.cursor) == (stream.response_id, stream.cursor - 1)

    closed = known.model_copy(update={"background": False})
    decision = ledger.recover(stream, error, known=closed, contract=ENDPOINTS[RESPONSES])
    assert decision.step is Step.PRESERVE


def test_bytes_and_events_of_one_response_are_judged_alike(ledger):
    events = (message_start(), tool_block(0), piece(0, '{"amount": 12'))
    by_bytes, by_events = StreamReader(ANTHROPIC), StreamReader(ANTHROPIC, from_events=True)
    by_bytes.feed(sse(*events))
    for event in events:
        by_events.feed_event(event)
    first, second = ledger.recover(by_bytes.close()), ledger.recover(by_events.close())
    assert first == second
    assert (first.mechanism, first.calls[0].advice) == (M.CONTINUE, "not_run")


# What became of the calls


def cut_with_a_call() -> Stream:
    reader = StreamReader(ANTHROPIC)
    reader.feed(sse(message_start(), tool_block(0), piece(0, '{"amount":1}')))
    return reader.close(Ending.RESET)


def an_effect(word: ClaimState, **more: Any) -> Effect:
    return effect_of(state(word, **more))


@pytest.mark.parametrize(
    ("told", "answers", "step", "advice"),
    [
        pytest.param(Dispatched.IN_FLIGHT, [], Step.RECONCILE, "reconcile", id="under way"),
        pytest.param(Dispatched.RETURNED, [], Step.PRESERVE, "settled", id="returned"),
        pytest.param(Outcome.UNKNOWN, [], Step.RECONCILE, "reconcile", id="unknown"),
        pytest.param(Outcome.NOT_SENT, [], Step.PRESERVE, "not_run", id="not sent"),
        pytest.param(
            an_effect(ClaimState.COMPLETED), [], Step.PRESERVE, "settled", id="it happened"
        ),
        pytest.param(
            an_effect(ClaimState.NOT_EXECUTED), [], Step.PRESERVE, "not_run", id="it did not"
        ),
        pytest.param(
            an_effect(ClaimState.UNKNOWN),
            [state(ClaimState.COMPLETED)],
            Step.PRESERVE,
            "settled",
            id="unknown then, known by now",
        ),
        pytest.param(
            an_effect(ClaimState.IN_FLIGHT),
            [state(ClaimState.IN_FLIGHT)],
            Step.RECONCILE,
            "reconcile",
            id="still under way",
        ),
        pytest.param(
            an_effect(ClaimState.CLOSED), [], Step.RECONCILE, "reconcile", id="closed, unknown"
        ),
        pytest.param(
            CLAIM, [state(ClaimState.COMPLETED)], Step.PRESERVE, "settled", id="by its claim's id"
        ),
        pytest.param(
            "cfk_1", [ClaimNotFound()], Step.RECONCILE, "reconcile", id="a key nobody knows"
        ),
        pytest.param(
            "cfk_1", [LedgerUnavailable()], Step.RECONCILE, "reconcile", id="the ledger is away"
        ),
        pytest.param(
            Effect(status="ledger_unavailable", for_model={}, nothing_sent=True),
            [],
            Step.PRESERVE,
            "not_run",
            id="never claimed, never sent",
        ),
        pytest.param(
            Effect(status="held", for_model={}),
            [],
            Step.RECONCILE,
            "reconcile",
            id="an earlier one with the same content is open",
        ),
    ],
)
def test_what_became_of_a_call_is_asked_of_the_ledger_before_the_model(
    ledger_that, told, answers, step, advice
):
    decision = ledger_that(*answers).recover(cut_with_a_call(), calls={0: told})
    assert (decision.step, decision.calls[0].advice) == (step, advice)


def test_a_call_that_the_stream_did_not_announce_counts_as_well(ledger):
    decision = ledger.recover(cut_with_a_call(), calls={7: Outcome.UNKNOWN})
    assert decision.step is Step.RECONCILE
    assert [(call.position, call.advice) for call in decision.calls] == [
        (0, "not_run"),
        (7, "reconcile"),
    ]


def test_what_the_caller_knows_of_a_call_is_kept(ledger):
    read = CallFacts(position=0, effect_class=EffectClass.READ, arguments=ArgumentsState.PARTIAL)
    known = RecoveryRecord(calls=(read,), sends=Budget(made=1, limit=1))
    decision = ledger.recover(cut_with_a_call(), known=known, calls={0: Dispatched.IN_FLIGHT})
    assert (decision.step, decision.mechanism) == (Step.PRESERVE, M.NONE)
    assert decision.calls[0].tool == "pay"


@pytest.mark.parametrize(
    ("told", "advice"),
    [(Outcome.UNKNOWN, "retry_with_same_key"), (an_effect(ClaimState.CLOSED), "reconcile")],
)
def test_nothing_is_sent_around_the_ledger_that_holds_the_claim(ledger, told, advice):
    own = CallFacts(
        position=0,
        arguments=ArgumentsState.COMPLETE,
        contract=ReplayContract(window_seconds=3_600, concurrent=Concurrent.REFUSED),
        keyed=KeyedSend(key="k", sent_digest="d", digest="d", first_sent_at=datetime.now(UTC)),
    )
    known = RecoveryRecord(calls=(own,))
    assert ledger.recover(None, known=known, calls={0: told}).calls[0].advice == advice


def test_what_the_ledger_says_now_replaces_what_was_said_before(ledger_that):
    said = CallFacts(
        position=0, arguments=ArgumentsState.COMPLETE, outcome=Outcome.NOT_SENT, tool="pay"
    )
    known = RecoveryRecord(calls=(said,))
    ledger = ledger_that(state(ClaimState.IN_FLIGHT))
    assert ledger.recover(None, known=known, calls={0: CLAIM}).step is Step.RECONCILE


def test_an_error_event_that_came_first_is_no_refusal_and_no_silence(ledger):
    with model_server(PAYS.but(cut_at=0, error="overloaded_error")) as model:
        stream, error = received(ANTHROPIC, model)
    for seen in (stream, None):
        decision = ledger.recover(seen, error)
        assert (decision.step, decision.reason) == (Step.PRESERVE, Why.FAILED_IN_STREAM)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), SystemExit()])
def test_an_interruption_by_hand_is_a_cancellation(ledger, error):
    decision = ledger.recover(cut_with_a_call(), error)
    assert (decision.reason, decision.mechanism) == (Why.CANCELLED, M.NONE)


def test_a_success_with_holes_is_not_a_recorded_one(ledger):
    whole = Stream(terminal=Terminal.SUCCESS, response_id="resp_1", cursor=9)
    known = RecoveryRecord(result_recorded=True)
    assert ledger.recover(whole, known=known).step is Step.SETTLE
    holes = Stream(terminal=Terminal.SUCCESS, response_id="resp_1", cursor=9, gaps=((3, 4),))
    assert ledger.recover(holes, known=known).reason is Why.SUCCESS_NOT_RECORDED


def test_the_caller_may_know_that_text_came(ledger):
    nothing = Stream(terminal=Terminal.CUT, response_id="msg_1")
    assert ledger.recover(nothing).mechanism is M.NONE
    known = RecoveryRecord(received=Received.PARTIAL)
    assert ledger.recover(nothing, known=known).mechanism is M.CONTINUE


def test_more_calls_than_a_decision_takes_are_refused_and_not_dropped():
    with pytest.raises(ValidationError):
        recovery_request(None, None, calls=dict.fromkeys(range(257), Outcome.COMPLETED))


def test_the_awaited_client_decides_the_same():
    async def decided() -> Any:
        transport: Any = Silent(state(ClaimState.COMPLETED))
        async with AsyncLedger(transport=transport, patience=QUICK) as ledger:
            transport.close = lambda: None
            return await ledger.recover(cut_with_a_call(), calls={0: CLAIM})

    assert awaited(decided()).calls[0].advice == "settled"
