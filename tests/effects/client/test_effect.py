"""A decorated tool: what it is given, what is reported, what comes back."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from uuid import UUID

import httpx
import httpx2
import pytest
import stripe

from effects.client import (
    ArgumentsRefused,
    BadRequest,
    Call,
    Effect,
    Ledger,
    NotSent,
    SendTooLate,
    Tool,
    ToolCall,
    effect,
)
from effects.client.call import _state_after
from effects.client.clock import elapsed_clock_seconds
from effects.core.messages import ClaimAnswer, ClaimRequest, Complete, Fail, Sent, Unknown
from effects.core.vocabulary import AnswerCode, ClaimState, EffectClass, Outcome
from tests.effects.client.scripted_ledger import CLAIM, GRANT, KEY, MARKER, client_of, state
from tests.effects.faulty_server import (
    answers,
    close_after_reading,
    closed_port,
    faulty,
    in_turn,
    reset_after_reading,
    stall,
)

TURN = ToolCall(conversation="c-1", turn_index=3, call_id="toolu_01WkP9QmXyZ01234")


@dataclass
class Ran:
    """Counts how often a tool's function ran."""

    times: int = 0


@pytest.fixture
def ran() -> Ran:
    return Ran()


@pytest.fixture
def payment(ledger, ran):
    """A keyed tool that pays, and says what it paid."""

    @effect(ledger, effect_class="keyed_write", tool="send_payment", object_from="id")
    def send_payment(call: Call, *, amount: int, note: str = "") -> dict[str, object]:
        ran.times += 1
        return {"id": "pi_1", "amount": amount, "key": call.key, **call.marker_metadata}

    return send_payment


# The good way


def test_a_granted_call_runs_once_is_reported_and_returns_its_result(payment, scripted, ran):
    done = payment(TURN, amount=1200)
    assert ran.times == 1
    assert scripted.words == ["claims", "complete"]
    assert done.status == "completed"
    assert done.happened
    assert done.reported
    assert done.result == {"id": "pi_1", "amount": 1200, "key": KEY, "counterfoil": MARKER}
    assert done.value == done.result
    assert done.for_model["result"] == done.result
    assert done.claim_id == CLAIM
    assert scripted.told(Complete)[0].provider_object == "pi_1"


def test_the_claim_says_which_call_it_is(payment, scripted):
    earlier = UUID("0192f3a4-0000-7000-8000-00000000000f")
    at = ToolCall(
        conversation="c-1",
        turn_index=3,
        position=2,
        ordinal=1,
        response_id="msg_1",
        call_id="toolu_1",
        caller_key="refund-7",
        repeat_of=earlier,
        worker="w-1",
        delivery_count=2,
        retry_count=1,
    )
    payment(at, amount=1200, note="thanks")
    asked = scripted.told(ClaimRequest)[0]
    assert asked == ClaimRequest(
        tool="send_payment",
        effect_class=EffectClass.KEYED_WRITE,
        arguments='{"amount": 1200, "note": "thanks"}',
        conversation="c-1",
        turn_index=3,
        position=2,
        ordinal=1,
        response_id="msg_1",
        call_id="toolu_1",
        caller_key="refund-7",
        repeat_of=earlier,
        worker="w-1",
        delivery_count=2,
        retry_count=1,
        nonce=asked.nonce,
    )


def test_each_call_has_a_nonce_of_its_own(payment, scripted):
    payment(TURN, amount=1200)
    payment(TURN, amount=1200)
    first, second = (asked.nonce for asked in scripted.told(ClaimRequest))
    assert first != second


def test_arguments_travel_as_the_model_wrote_them(payment, scripted):
    written = '{"amount": 1200, "note": "10.00\\u20ac" }'
    payment.run(TURN, written)
    assert scripted.told(ClaimRequest)[0].arguments == written


def test_a_tool_may_name_itself_and_the_client_introduces_itself(payment, scripted):
    payment(TURN, amount=1)
    assert scripted.told(ClaimRequest)[0].tool == "send_payment"
    assert payment.__name__ == "send_payment"
    assert scripted.tokens[0] == "Bearer a-token"
    assert scripted.agents[0].startswith("counterfoil-client/")


def test_the_tool_may_complete_itself_and_its_return_value_changes_nothing(ledger, scripted):
    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        call.complete({"id": "pi_1"}, provider_object="pi_1", replayed=True)
        return "something else"

    done = send_payment(TURN)
    assert done.result == {"id": "pi_1"}
    (report,) = scripted.told(Complete)
    assert (report.provider_object, report.replayed) == ("pi_1", True)


def test_an_exception_after_completing_does_not_undo_it(ledger, scripted):
    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        call.complete({"id": "pi_1"})
        raise KeyError

    assert send_payment(TURN).status == "completed"
    assert scripted.words == ["claims", "complete"]


# Results


class Opaque:
    pass


@pytest.mark.parametrize(
    ("returned", "kept"),
    [
        pytest.param(None, "null", id="nothing"),
        pytest.param({"ü": [1, 2.5, True]}, '{"ü": [1, 2.5, true]}', id="plain"),
        pytest.param({"due": date(2026, 11, 30)}, '{"due": "2026-11-30"}', id="a date"),
        pytest.param({"amount": Decimal("10.00")}, '{"amount": "10.00"}', id="a decimal"),
        pytest.param(Ran(times=2), '{"times": 2}', id="a dataclass"),
        pytest.param(Sent(fence=3), '{"fence": 3}', id="a pydantic model"),
        pytest.param(Opaque(), None, id="an object"),
        pytest.param({"x": float("nan")}, None, id="not a number"),
        pytest.param({"x": "\ud800"}, None, id="half a character"),
        pytest.param("x" * (1024 * 1024), None, id="too large"),
    ],
)
def test_a_result_is_kept_as_json_or_said_to_be_missing(ledger, scripted, returned, kept):
    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        return returned

    done = send_payment(TURN)
    (report,) = scripted.told(Complete)
    assert (report.result, report.result_stored) == (kept, kept is not None)
    assert done.status == "completed"
    assert done.value is returned


def test_an_object_of_the_stripe_sdk_is_kept_whole_with_its_id_and_whether_it_is_a_replay(
    ledger, scripted
):
    intent = (
        b'{"id": "pi_9", "object": "payment_intent", "amount": 1200,'
        b' "metadata": {"counterfoil": "' + MARKER.encode() + b'"}}'
    )
    with faulty(answers(200, intent, idempotent_replayed="true")) as provider:
        http_client = stripe.RequestsClient(timeout=2)
        client = stripe.StripeClient(
            "sk_test_not_real", base_addresses={"api": provider.url}, http_client=http_client
        )

        @effect(ledger, effect_class="keyed_write", object_from="id")
        def send_payment(call, *, amount):
            return client.v1.payment_intents.create(
                {"amount": amount, "currency": "eur", "metadata": call.marker_metadata},
                {"idempotency_key": call.key},
            )

        done = send_payment(TURN, amount=1200)
        http_client.close()
        assert f"idempotency-key: {KEY}" in provider.requests[0].decode().lower()
    (report,) = scripted.told(Complete)
    assert (report.provider_object, report.replayed, report.marker_sent) == ("pi_9", True, True)
    assert done.result["amount"] == 1200


@pytest.mark.parametrize(
    ("object_from", "found"),
    [
        pytest.param(None, None, id="not declared"),
        pytest.param("id", "pi_1", id="a member"),
        pytest.param("data.ref", "r-1", id="a path"),
        pytest.param(lambda result: result["data"]["ref"], "r-1", id="a function"),
        pytest.param("missing", None, id="a wrong path"),
        pytest.param(lambda _: 1 / 0, None, id="a function that fails"),
        pytest.param("number", None, id="not a text"),
    ],
)
def test_the_tool_says_where_its_result_names_the_object(ledger, scripted, object_from, found):
    @effect(ledger, effect_class="keyed_write", object_from=object_from)
    def send_payment(call):
        return {"id": "pi_1", "data": {"ref": "r-1"}, "number": 7}

    assert send_payment(TURN).status == "completed"
    assert scripted.told(Complete)[0].provider_object == found


# What is not granted does not run


NOT_PERMITTED = [
    code for code in AnswerCode if code not in {AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN}
]


@pytest.mark.parametrize("code", NOT_PERMITTED)
def test_nothing_runs_unless_the_ledger_granted_it(payment, scripted, ran, code):
    scripted.answers("claims", ClaimAnswer(code=code, claim_id=CLAIM, tool="send_payment"))
    told = payment(TURN, amount=1200)
    assert ran.times == 0
    assert scripted.words == ["claims"]
    assert told.status == told.for_model["status"]
    assert told.error is None


def test_a_repeat_gets_the_stored_result(payment, scripted, ran):
    replayed = ClaimAnswer(
        code=AnswerCode.REPLAYED,
        claim_id=CLAIM,
        state=ClaimState.COMPLETED,
        tool="send_payment",
        result='{"id": "pi_1", "amount": 1200}',
        result_stored=True,
    )
    scripted.answers("claims", replayed)
    told = payment(TURN, amount=1200)
    assert (told.status, told.result) == ("completed", {"id": "pi_1", "amount": 1200})
    assert (told.value, ran.times) == (None, 0)


def test_the_servers_own_words_for_the_model_are_passed_on(payment, scripted):
    words = {"status": "held", "detail": "In the ledger's words.", "next_step": "Wait."}
    scripted.answers("claims", ClaimAnswer(code=AnswerCode.HELD, for_model=words))
    told = payment(TURN, amount=1200)
    assert told.for_model == words
    assert (
        told.text == '{"status": "held", "detail": "In the ledger\'s words.", "next_step": "Wait."}'
    )


# The ledger is away


@pytest.mark.parametrize(
    "away",
    [
        pytest.param(close_after_reading, id="hangs up"),
        pytest.param(reset_after_reading, id="resets"),
        pytest.param(stall, id="stalls"),
        pytest.param(answers(500, b"<html>"), id="answers 500"),
        pytest.param(answers(502), id="answers 502"),
        pytest.param(answers(429, b"slow down"), id="sits behind a limiter"),
        pytest.param(answers(302, location="http://127.0.0.1:1/"), id="redirects"),
        pytest.param(answers(201, b"{}"[:1]), id="answers half"),
        pytest.param(answers(201, b'{"code": "granted"}'), id="grants without a claim"),
        pytest.param(answers(201, b'{"code": "sure"}'), id="speaks other words"),
    ],
)
def test_nothing_runs_while_the_ledger_is_away(scripted, ran, away):
    scripted.answers("claims", away)
    with client_of(scripted.url, answer_seconds=0.2) as ledger:

        @effect(ledger, effect_class="unkeyed_write")
        def send_payment(call):
            ran.times += 1

        told = send_payment(TURN)
    assert ran.times == 0
    assert (told.status, told.may_call_again) == ("ledger_unavailable", True)
    assert "nothing was sent" in told.for_model["detail"]
    assert scripted.words == ["claims"] * 3, "asked again, but not for ever"
    assert len({asked.nonce for asked in scripted.told(ClaimRequest)}) == 1


def test_nothing_runs_while_nobody_listens(ran):
    with client_of(f"http://127.0.0.1:{closed_port()}") as ledger:

        @effect(ledger, effect_class="unkeyed_write")
        def send_payment(call):
            ran.times += 1

        assert send_payment(TURN).status == "ledger_unavailable"
    assert ran.times == 0


def test_a_ledger_that_may_have_forgotten_is_not_asked_again(payment, scripted, ran):
    body = b'{"title": "", "status": 503, "detail": "Restored.", "code": "ledger_behind"}'
    scripted.answers("claims", answers(503, body))
    assert payment(TURN, amount=1).status == "ledger_unavailable"
    assert (scripted.words, ran.times) == (["claims"], 0)


def test_a_lost_grant_is_given_again_to_the_same_nonce(payment, scripted, ran):
    again = GRANT.model_copy(update={"code": AnswerCode.GRANTED_AGAIN, "send_within_seconds": 15.0})
    scripted.answers("claims", close_after_reading, again)
    assert payment(TURN, amount=1200).status == "completed"
    assert (ran.times, scripted.words) == (1, ["claims", "claims", "complete"])
    first, second = (asked.nonce for asked in scripted.told(ClaimRequest))
    assert first == second


# Too late to send


def test_a_grant_whose_time_is_over_runs_nothing_and_is_reported_not_sent(payment, scripted, ran):
    scripted.answers("claims", GRANT.model_copy(update={"send_within_seconds": 0.0}))
    told = payment(TURN, amount=1200)
    assert ran.times == 0
    assert scripted.told(Fail)[0].proof is Outcome.NOT_SENT
    assert told.status == "not_executed"
    assert isinstance(told.error, SendTooLate)


def test_the_time_to_send_counts_from_before_the_ledger_was_asked(scripted, ran):
    def slowly(server, connection):
        server.over.wait(0.5)
        connection.sendall(answer_bytes(GRANT.model_copy(update={"send_within_seconds": 0.4})))

    scripted.answers("claims", slowly)
    with client_of(scripted.url) as ledger:

        @effect(ledger, effect_class="keyed_write")
        def send_payment(call):
            ran.times += 1

        assert send_payment(TURN).status == "not_executed"
    assert ran.times == 0


def answer_bytes(answer: ClaimAnswer) -> bytes:
    body = answer.model_dump_json().encode()
    return b"HTTP/1.1 201 X\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b" % (
        len(body),
        body,
    )


@pytest.fixture
def an_hour_passes(monkeypatch) -> Callable[[], None]:
    """Moves the client's clock, as a machine that was asleep finds it moved."""

    def pass_it() -> None:
        later = elapsed_clock_seconds() + 3600
        monkeypatch.setattr("effects.client.call.elapsed_clock_seconds", lambda: later)

    return pass_it


def test_a_check_before_the_write_stops_a_tool_that_took_too_long(ledger, scripted, an_hour_passes):
    written = []

    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        an_hour_passes()
        call.sent()
        call.check_send()
        written.append("a request")

    assert send_payment(TURN).status == "not_executed"
    assert written == []
    assert scripted.told(Fail)[0].proof is Outcome.NOT_SENT


def test_a_second_check_that_fails_says_nothing_about_what_the_first_allowed(
    ledger, scripted, an_hour_passes
):

    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        call.check_send()  # and here a request may have been written
        an_hour_passes()
        call.check_send()

    assert send_payment(TURN).status == "unknown"
    assert scripted.words == ["claims", "unknown"]


# How it failed


def failing(ledger: Ledger, error_or_send: Callable[[Call], object]) -> Tool:
    @effect(ledger, effect_class="keyed_write", tool="send_payment")
    def send_payment(call):
        return error_or_send(call)

    return send_payment


def test_a_connection_that_was_refused_is_reported_not_sent(ledger, scripted):
    told = failing(ledger, lambda _: httpx.post(f"http://127.0.0.1:{closed_port()}"))(TURN)
    (report,) = scripted.told(Fail)
    assert report.proof is Outcome.NOT_SENT
    assert report.error
    assert report.error.startswith("httpx.ConnectError")
    assert told.status == "not_executed"
    assert told.may_call_again
    assert isinstance(told.error, httpx.ConnectError)
    assert told.failure
    assert told.failure.outcome is Outcome.NOT_SENT


def test_a_lost_answer_is_told_as_unknown_with_the_next_step(ledger, scripted):
    with faulty(close_after_reading) as provider:
        send = lambda call: httpx2.post(provider.url, json=call.marker_metadata)  # noqa: E731
        told = failing(ledger, send)(TURN)
    assert scripted.words == ["claims", "unknown"]
    assert not told.may_call_again
    assert told.for_model == {
        "status": "unknown",
        "detail": "It is not known whether send_payment happened: it may have.",
        "next_step": "Do not call this tool again for this; ask the status tool with claim"
        f" {CLAIM}.",
        "claim": str(CLAIM),
    }
    assert scripted.told(Unknown)[0].marker_sent is True


def test_a_refusal_is_reported_with_the_providers_answer(ledger, scripted):
    body = b'{"error": {"type": "invalid_request_error", "code": "amount_too_small"}}'
    with faulty(answers(422, body, request_id="req_7")) as provider:
        send = lambda _: httpx.post(provider.url, json={}).raise_for_status()  # noqa: E731
        told = failing(ledger, send)(TURN)
    (report,) = scripted.told(Fail)
    assert report.proof is Outcome.REFUSED
    assert (report.http_status, report.provider_code) == (422, "amount_too_small")
    assert (report.request_id, report.marker_sent) == ("req_7", False)
    assert told.status == "not_executed"


def test_two_announced_requests_cannot_end_as_not_sent(ledger, scripted):
    def send(call):
        call.sent()
        call.sent()
        httpx.post(f"http://127.0.0.1:{closed_port()}")

    assert failing(ledger, send)(TURN).status == "unknown"
    assert scripted.words == ["claims", "sent", "sent", "unknown"]


def test_the_tools_own_word_that_nothing_was_sent_counts(ledger, scripted):
    def send(call):
        raise NotSent("The customer has no address.")

    assert failing(ledger, send)(TURN).status == "not_executed"
    assert scripted.told(Fail)[0].error == "effects.NotSent: The customer has no address."


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_what_ends_the_process_is_reported_as_unknown_and_goes_on(ledger, scripted, error):
    def send(call):
        raise error

    with pytest.raises(error):
        failing(ledger, send)(TURN)
    assert scripted.words == ["claims", "unknown"]


def test_what_the_agent_was_handling_when_it_called_does_not_spoil_the_proof(ledger, scripted):
    send = failing(ledger, lambda _: httpx.post(f"http://127.0.0.1:{closed_port()}"))
    told = None
    try:
        raise TimeoutError("of another call")  # noqa: TRY301 - the agent is handling this
    except TimeoutError:
        told = send(TURN)
    assert told.status == "not_executed"


@pytest.mark.parametrize(
    ("outcome", "fence", "left"),
    [
        (Outcome.NOT_SENT, 1, ClaimState.NOT_EXECUTED),
        (Outcome.REFUSED, 1, ClaimState.NOT_EXECUTED),
        (Outcome.UNKNOWN, 1, ClaimState.UNKNOWN),
        (Outcome.NOT_SENT, 2, ClaimState.UNKNOWN),
    ],
)
def test_without_the_ledgers_word_one_attempt_does_not_speak_for_earlier_ones(outcome, fence, left):
    assert _state_after(outcome, fence) is left


# The report is lost


def test_a_report_is_repeated_until_it_arrives(payment, scripted):
    done = state(ClaimState.COMPLETED, result='{"id": "pi_1"}')
    scripted.answers("complete", close_after_reading, answers(503), done)
    told = payment(TURN, amount=1200)
    assert (told.status, told.reported) == ("completed", True)
    assert scripted.words == ["claims", "complete", "complete", "complete"]


def test_an_end_that_cannot_be_reported_is_said_so_and_the_result_is_not_lost(payment, scripted):
    scripted.answers("complete", answers(503))
    told = payment(TURN, amount=1200)
    assert (told.status, told.reported) == ("completed", False)
    assert told.result["amount"] == 1200
    assert told.for_model["result"]["amount"] == 1200
    assert scripted.words.count("complete") == 6


def test_a_refused_report_is_not_repeated(payment, scripted):
    body = b'{"title": "", "status": 409, "detail": "No such attempt.", "code": "stale_fence"}'
    scripted.answers("complete", answers(409, body))
    assert payment(TURN, amount=1200).reported is False
    assert scripted.words == ["claims", "complete"]


def test_what_the_ledger_makes_of_a_report_is_what_the_model_is_told(payment, scripted):
    scripted.answers("complete", state(ClaimState.CONFLICTED))
    told = payment(TURN, amount=1200)
    assert (told.status, told.happened) == ("conflicted", False)
    assert told.value["amount"] == 1200


# One refresh


def refreshing(ledger: Ledger, url: str) -> tuple[Tool, list[str]]:
    """A tool that sends with the newest of its tokens, and the tokens that it made."""
    tokens = ["old"]

    @effect(ledger, effect_class="keyed_write", tool="send_payment")
    def send_payment(call: Call) -> object:
        def send() -> object:
            headers = {"authorization": f"Bearer {tokens[-1]}"}
            return httpx.post(url, headers=headers, timeout=1).raise_for_status().json()

        return call.with_one_refresh(send, lambda: tokens.append("new"))

    return send_payment, tokens


@pytest.mark.parametrize(
    ("behaviours", "requests", "status"),
    [
        pytest.param([answers(200)], 1, "completed", id="accepted at once"),
        pytest.param([answers(401), answers(200)], 2, "completed", id="accepted after a refresh"),
        pytest.param([answers(401)], 2, "not_executed", id="refused twice, then no more"),
        pytest.param([answers(401), answers(500)], 2, "unknown", id="lost after a refresh"),
        pytest.param([answers(401), close_after_reading], 2, "unknown", id="cut after a refresh"),
        pytest.param([answers(403)], 1, "not_executed", id="not allowed: no refresh helps"),
        pytest.param([answers(500)], 1, "unknown", id="lost at once: no second request"),
        pytest.param([close_after_reading], 1, "unknown", id="cut at once: no second request"),
    ],
)
def test_refused_credentials_are_refreshed_once_and_then_judged_again(
    ledger, behaviours, requests, status
):
    with faulty(in_turn(*behaviours)) as provider:
        send, tokens = refreshing(ledger, provider.url)
        assert send(TURN).status == status
        assert len(provider.requests) == requests
    assert len(tokens) == requests


# Hints


def test_a_lost_hint_is_nobodys_concern(ledger, scripted):
    scripted.answers("sent", answers(500))

    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        call.sent(marker=True)

    assert send_payment(TURN).status == "completed"
    assert scripted.told(Complete)[0].marker_sent is True


def test_a_heartbeat_says_whether_to_go_on(ledger, scripted):
    stop = b'{"word": "stop"}'
    scripted.answers("heartbeat", answers(200, b'{"word": "ok"}'), answers(200, stop), answers(500))
    heard: list[bool] = []

    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        heard.extend(call.heartbeat() for _ in range(3))

    send_payment(TURN)
    assert heard == [True, False, True]


# Before anything is asked


def test_arguments_that_cannot_be_compared_are_refused_before_anything_is_asked(payment, scripted):
    with pytest.raises(ArgumentsRefused) as refused:
        payment.run(TURN, '{"amount": 1, "amount": 2}')
    assert refused.value.facts["refusal"] == "duplicate_member"
    with pytest.raises(ArgumentsRefused):
        payment(TURN, amount=Decimal("10.00"))
    with pytest.raises(ArgumentsRefused):
        payment.run(TURN, "[1]")
    with pytest.raises(TypeError):
        payment(TURN, amounts=1)
    with pytest.raises(TypeError):
        payment.run(TURN, '{"amounts": 1}')
    with pytest.raises(BadRequest):
        payment(ToolCall(conversation="c" * 256, turn_index=0), amount=1)
    assert scripted.words == []


def test_a_wrong_question_is_an_error_not_an_outcome(payment, scripted, ran):
    body = b'{"title": "", "status": 400, "detail": "Say which.", "code": "no_identity"}'
    scripted.answers("claims", answers(400, body))
    with pytest.raises(BadRequest, match="Say which") as refused:
        payment(ToolCall(), amount=1)
    assert refused.value.code == "no_identity"
    assert ran.times == 0


# Reads, and what cannot be a tool


def test_a_read_takes_no_claim(ledger, scripted):
    @effect(ledger, effect_class="read")
    def find_customer(*, name: str) -> dict[str, str]:
        return {"id": f"cus_{name}"}

    found = find_customer(TURN, name="ada")
    assert found.result == {"id": "cus_ada"}
    assert scripted.words == []
    with pytest.raises(TypeError):
        find_customer(TURN)


async def in_the_background(call: Call) -> None:
    pass


def bit_by_bit(call):
    yield


async def bit_by_bit_in_the_background(call):
    yield


def without_a_call(*, amount):
    return None


def by_position(call, amount, /):
    return None


def any_number(call, *amounts):
    return None


@pytest.mark.parametrize(
    "function",
    [
        in_the_background,
        bit_by_bit,
        bit_by_bit_in_the_background,
        without_a_call,
        by_position,
        any_number,
    ],
    ids=lambda function: function.__name__,
)
def test_what_cannot_be_claimed_is_refused_at_the_decoration(ledger, function):
    with pytest.raises(TypeError, match=function.__name__):
        effect(ledger, effect_class="keyed_write")(function)


def test_a_function_that_returns_something_to_run_later_is_unknown(ledger, scripted):
    @effect(ledger, effect_class="keyed_write")
    def send_payment(call):
        return in_the_background(call)

    told = send_payment(TURN)
    assert told.status == "unknown"
    assert isinstance(told.error, TypeError)


def test_an_unknown_class_is_refused_at_the_decoration(ledger):
    with pytest.raises(ValueError, match="dangerous"):
        effect(ledger, effect_class="dangerous")


def test_a_ledger_may_be_found_at_the_call(ledger, scripted):
    @effect(lambda: ledger, effect_class="keyed_write")
    def send_payment(call):
        return 1

    assert send_payment(TURN).status == "completed"


def test_an_effect_is_a_value():
    told = Effect(status="unknown", for_model={"status": "unknown"})
    assert told.claim_id is None
    assert not told.happened
    assert not told.may_call_again
