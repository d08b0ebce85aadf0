"""The ledger's own surface: the block, the way back, tokens, threads, forks."""

import os
import threading
import time

import httpx
import pytest

from effects.client import (
    Call,
    ClaimNotFound,
    EffectClass,
    HttpTransport,
    Ledger,
    NotGranted,
    NotSent,
    ScopeMissing,
    TokenRefused,
    ToolCall,
    effect,
)
from effects.client.clock import elapsed_clock_seconds
from effects.core.messages import ClaimAnswer, Complete
from effects.core.vocabulary import AnswerCode, ClaimState
from tests.effects.client.scripted_ledger import (
    CLAIM,
    GRANT,
    KEY,
    QUICK,
    client_of,
    state,
)
from tests.effects.faulty_server import answers, close_after_reading, closed_port

TURN = ToolCall(conversation="c-1", turn_index=3)
REFUSED = answers(
    401, b'{"title": "", "status": 401, "detail": "Revoked.", "code": "token_refused"}'
)


# The block


def test_a_block_runs_when_it_is_granted_and_says_how_it_ended(ledger, scripted):
    with ledger.attempt("send_email", {"to": "ada"}, TURN) as call:
        assert call.key == KEY
        call.complete({"id": "m-1"}, provider_object="m-1")
    assert call.effect.status == "completed"
    assert scripted.told(Complete)[0].provider_object == "m-1"


def test_a_block_that_is_not_granted_does_not_run(ledger, scripted):
    scripted.answers("claims", ClaimAnswer(code=AnswerCode.UNKNOWN, claim_id=CLAIM))
    with (
        pytest.raises(NotGranted) as refused,
        ledger.attempt("send_email", {}, TURN),
    ):
        pytest.fail("the block ran")
    assert refused.value.effect.status == "unknown"
    assert scripted.words == ["claims"]


def test_a_block_does_not_run_while_the_ledger_is_away():
    with (
        client_of(f"http://127.0.0.1:{closed_port()}") as ledger,
        pytest.raises(NotGranted) as refused,
        ledger.attempt("send_email", {}, TURN),
    ):
        pytest.fail("the block ran")
    assert refused.value.effect.status == "ledger_unavailable"


def test_a_block_that_ends_without_a_word_is_unknown_and_never_a_success(ledger, scripted):
    with ledger.attempt("send_email", "{}", TURN) as call:
        pass
    assert call.effect.status == "unknown"
    assert scripted.words == ["claims", "unknown"]


def test_an_exception_in_a_block_is_sorted_reported_and_raised_again(ledger, scripted):
    with (
        pytest.raises(httpx.ConnectError),
        ledger.attempt("send_email", "{}", TURN) as call,
    ):
        httpx.post(f"http://127.0.0.1:{closed_port()}")
    assert call.effect.status == "not_executed"
    assert scripted.words == ["claims", "fail"]


def test_what_was_being_handled_before_a_block_is_not_of_this_attempt(ledger, scripted):
    def again_in_a_block() -> None:
        with ledger.attempt("send_email", "{}", TURN):
            httpx.post(f"http://127.0.0.1:{closed_port()}")

    def an_earlier_call() -> None:
        raise TimeoutError

    def agent() -> None:
        try:
            an_earlier_call()
        except TimeoutError:
            again_in_a_block()

    with pytest.raises(httpx.ConnectError):
        agent()
    assert scripted.words == ["claims", "fail"]


def test_a_running_attempt_has_no_effect_yet(ledger):
    with ledger.attempt("send_email", "{}", TURN) as call:
        with pytest.raises(RuntimeError, match="has not ended"):
            _ = call.effect
        call.complete(None)


def test_a_grant_without_a_key_stops_the_tool_that_needs_one(ledger, scripted):
    scripted.answers("claims", GRANT.model_copy(update={"key": None, "marker": None}))
    for name in ("key", "marker", "marker_metadata"):
        with pytest.raises(NotSent), ledger.attempt("send_email", "{}", TURN) as call:
            getattr(call, name)
        assert call.effect.status == "not_executed"


# The way back


def test_a_status_question_returns_the_exact_result_to_feed(ledger, scripted):
    scripted.answers("status", state(ClaimState.COMPLETED, result='{"id": "pi_1"}'))
    for asked in (CLAIM, str(CLAIM), "cf1-a key/with? odd & characters"):
        told = ledger.status(asked)
        assert (told.status, told.result) == ("completed", {"id": "pi_1"})
    assert scripted.paths[-1] == "/api/v1/claims?key=cf1-a%20key%2Fwith%3F%20odd%20%26%20characters"


def test_a_claim_that_nobody_knows_is_an_error(ledger, scripted):
    body = b'{"title": "", "status": 404, "detail": "None.", "code": "claim_not_found"}'
    scripted.answers("status", answers(404, body))
    with pytest.raises(ClaimNotFound):
        ledger.status(CLAIM)


def test_a_status_question_that_nobody_answers_never_says_that_nothing_happened(ledger, scripted):
    scripted.answers("status", answers(503))
    told = ledger.status(CLAIM)
    assert told.status == "ledger_unavailable"
    assert "still not known" in told.for_model["detail"]
    assert not told.may_call_again, "a status question proves nothing about the call"


def test_waiting_ends_with_the_news(ledger, scripted):
    scripted.answers(
        "wait", state(ClaimState.IN_FLIGHT), close_after_reading, state(ClaimState.NOT_EXECUTED)
    )
    told = ledger.wait(CLAIM, 30)
    assert told.status == "not_executed"
    assert scripted.words == ["wait", "wait", "wait"]


def test_waiting_ends_with_its_time(ledger, scripted):
    begun = time.monotonic()
    told = ledger.wait(str(CLAIM), 0.5)
    assert told.status == "unknown"
    assert 0.4 < time.monotonic() - begun < 10
    assert scripted.words[-1] == "status"
    assert len(scripted.words) < 30, "an answer without news is no reason for a storm"


@pytest.mark.parametrize(
    "word",
    [
        ClaimState.COMPLETED,
        ClaimState.NOT_EXECUTED,
        ClaimState.RELEASED,
        ClaimState.CONFLICTED,
        ClaimState.CLOSED,
    ],
)
def test_waiting_ends_with_every_word_but_in_flight_and_unknown(ledger, scripted, word):
    scripted.answers("wait", state(word))
    told = {ClaimState.CLOSED: "unknown_do_not_retry"}.get(word, str(word))
    assert ledger.wait(CLAIM, 30).status == told
    assert scripted.words == ["wait"]


# Tokens


def pay(ledger: Ledger):
    @effect(ledger, effect_class="keyed_write")
    def send_payment(call: Call) -> int:
        return 1

    return send_payment(TURN)


def test_a_refused_token_is_asked_for_again_once(scripted):
    tokens = iter(["old", "new", "never"])
    scripted.answers("claims", REFUSED, GRANT)
    with Ledger(scripted.url, lambda: next(tokens), patience=QUICK) as ledger:
        assert pay(ledger).status == "completed"
    assert scripted.tokens == ["Bearer old", "Bearer new", "Bearer new"]


def test_a_token_that_stays_refused_is_an_error_after_one_refresh(scripted):
    scripted.answers("claims", REFUSED)
    with Ledger(scripted.url, lambda: "old", patience=QUICK) as ledger, pytest.raises(TokenRefused):
        pay(ledger)
    assert scripted.words == ["claims", "claims"]


def test_a_fixed_token_is_not_tried_twice(ledger, scripted):
    scripted.answers("claims", REFUSED)
    with pytest.raises(TokenRefused, match="Revoked"):
        pay(ledger)
    assert scripted.words == ["claims"]


def test_a_gateways_refusal_is_read_by_its_status(ledger, scripted):
    scripted.answers("claims", answers(403, b"<html>Forbidden</html>"))
    with pytest.raises(ScopeMissing, match="Forbidden"):
        pay(ledger)


# Versions, threads, forks


def test_a_newer_ledger_may_say_more(ledger, scripted):
    more = GRANT.model_dump_json()[:-1] + ', "newer": {"than": "this client"}}'
    scripted.answers("claims", answers(201, more.encode()))
    assert pay(ledger).status == "completed"
    held = ClaimAnswer(code=AnswerCode.HELD, claim_id=CLAIM).model_dump_json()[:-1] + ', "new": 1}'
    problem = f'{{"title":"","status":409,"detail":"","code":"held","x":1,"answer":{held}}}'
    scripted.answers("claims", answers(409, problem.encode()))
    assert pay(ledger).status == "held"


def test_one_ledger_serves_several_threads(ledger, scripted):
    ended = []
    threads = [threading.Thread(target=lambda: ended.append(pay(ledger))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [told.status for told in ended] == ["completed"] * 8


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_opens_connections_of_its_own(scripted):
    transport = HttpTransport(scripted.url, "a-token")
    opened = transport._open_transport  # noqa: SLF001 - which connections it uses shows nowhere else
    transport.status("x")
    parents = opened()
    child = os.fork()
    if child == 0:
        os._exit(0 if opened() is not parents else 1)
    _, ended = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(ended) == 0
    assert opened() is parents
    transport.close()


def test_a_closed_ledger_opens_again_when_it_is_asked(ledger):
    ledger.status(CLAIM)
    ledger.close()
    ledger.close()
    assert ledger.status(CLAIM).status == "unknown"


@pytest.mark.parametrize("given", [{}, {"url": "http://x"}, {"token": "t"}])
def test_a_ledger_needs_its_address_and_a_token(given):
    with pytest.raises(ValueError, match="Pass both"):
        Ledger(**given)


def test_the_clock_does_not_go_back():
    first = elapsed_clock_seconds()
    assert elapsed_clock_seconds() >= first


def test_the_class_goes_into_the_claim(ledger, scripted):
    with ledger.attempt("t", "{}", TURN, effect_class=EffectClass.KEYED_WRITE) as call:
        call.complete(1)
    with ledger.attempt("t", "{}", TURN) as call:
        call.complete(1)
    classes = [message.effect_class for _, message in scripted.said[::2]]
    assert classes == [EffectClass.KEYED_WRITE, EffectClass.UNKEYED_WRITE]
