"""Real exceptions of real libraries, raised by a real loopback server that misbehaves."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable
from functools import partial

import httpx
import httpx2
import pytest
import requests
import stripe
import urllib3
from requests.adapters import HTTPAdapter

from effects.core.failures import (
    CHAIN_LENGTH_MAX,
    Contract,
    Failure,
    NotSent,
    SendTooLate,
    classify_exception,
)
from effects.core.vocabulary import Outcome
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closed_port,
    cut_the_body,
    deaf_port,
    faulty,
    in_turn,
    plain_text_to_a_tls_client,
    reset_after_reading,
    reset_at_once,
    reset_before_reading,
    reset_in_the_body,
    stall,
    talk_nonsense,
)
from tests.effects.senders import (
    ANSWERED,
    SENDERS,
    TIMEOUT_SECONDS,
    by_stripe,
    by_stripe_over_httpx,
    by_stripe_with_retries,
)


def failure_of(send: Callable[[], object], **how) -> Failure:
    """How the exception of a send is sorted; a send that succeeds fails the test."""
    try:
        send()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is sorted
        return classify_exception(error, **how)
    pytest.fail("nothing was raised")


every_library = pytest.mark.parametrize("send", SENDERS.values(), ids=SENDERS.keys())
every_answered = pytest.mark.parametrize("send", ANSWERED.values(), ids=ANSWERED.keys())


# What is provably not sent


@every_library
def test_a_refused_connection_is_not_sent(send):
    url = f"http://127.0.0.1:{closed_port()}"
    assert failure_of(lambda: send(url)).outcome is Outcome.NOT_SENT


@every_library
def test_a_name_that_does_not_resolve_is_not_sent(send):
    assert failure_of(lambda: send("http://nowhere.invalid")).outcome is Outcome.NOT_SENT


@every_library
def test_a_connection_that_is_not_ready_in_time_is_not_sent(send):
    with deaf_port() as port:
        failure = failure_of(lambda: send(f"http://127.0.0.1:{port}"))
    assert failure.outcome is Outcome.NOT_SENT


@every_library
def test_a_certificate_that_we_refuse_is_not_sent(send):
    with faulty(answers(200), tls=True) as server:
        failure = failure_of(lambda: send(server.url))
        assert server.requests == []
    assert failure.outcome is Outcome.NOT_SENT


@every_library
def test_a_server_that_speaks_no_tls_is_not_sent(send):
    with faulty(plain_text_to_a_tls_client) as server:
        failure = failure_of(lambda: send(server.url.replace("http:", "https:")))
        assert server.requests == []
    assert failure.outcome is Outcome.NOT_SENT


@pytest.mark.parametrize("library", [httpx, httpx2], ids=["httpx", "httpx2"])
def test_no_free_connection_is_not_sent(library):
    with (
        faulty(stall) as server,
        library.Client(
            limits=library.Limits(max_connections=1),
            timeout=library.Timeout(5, pool=TIMEOUT_SECONDS),
        ) as client,
    ):

        def occupy() -> None:
            with pytest.raises(library.TransportError):
                client.post(server.url)

        occupied = threading.Thread(target=occupy)
        occupied.start()
        while not server.requests:
            pass
        failure = failure_of(lambda: client.post(server.url))
        server.over.set()
        occupied.join()
        assert len(server.requests) == 1
    assert failure.outcome is Outcome.NOT_SENT


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(lambda: httpx.post("ftp://127.0.0.1/"), id="httpx, a scheme of its own"),
        pytest.param(lambda: httpx2.post("ftp://127.0.0.1/"), id="httpx2, a scheme of its own"),
        pytest.param(lambda: httpx2.post("http://" + "a" * 70_000), id="httpx2, far too long"),
        pytest.param(lambda: requests.post("127.0.0.1/v1", timeout=1), id="requests, no scheme"),
        pytest.param(
            lambda: requests.post("http://127.0.0.1/", headers={"x": "a\nb"}, timeout=1),
            id="requests, a header in two lines",
        ),
    ],
)
def test_an_address_that_cannot_be_asked_is_not_sent(send):
    assert failure_of(send).outcome is Outcome.NOT_SENT


@pytest.mark.parametrize("error", [NotSent("said so"), SendTooLate("said so")])
def test_the_tools_own_word_is_a_proof(error):
    assert classify_exception(error).outcome is Outcome.NOT_SENT


# What nobody can say


@every_library
@pytest.mark.parametrize(
    "fault",
    [
        reset_before_reading,
        reset_after_reading,
        close_after_reading,
        stall,
        cut_the_body,
        reset_in_the_body,
        talk_nonsense,
    ],
    ids=lambda fault: fault.__name__,
)
def test_after_the_send_began_nobody_can_say(send, fault):
    with faulty(fault) as server:
        failure = failure_of(lambda: send(server.url))
    assert failure.outcome is Outcome.UNKNOWN


@every_library
def test_a_reset_during_the_tls_handshake_is_at_least_never_called_refused(send):
    with faulty(reset_at_once) as server:
        failure = failure_of(lambda: send(server.url.replace("http:", "https:")))
    # No request was written, but not every library lets us see that.
    assert failure.outcome in {Outcome.NOT_SENT, Outcome.UNKNOWN}


def made_by_stripe(text: str) -> stripe.APIConnectionError:
    error: stripe.APIConnectionError = stripe.APIConnectionError(text)
    return error


@pytest.mark.parametrize(
    "error",
    [
        pytest.param(ValueError("a bug of the tool"), id="a bug of the tool"),
        pytest.param(TimeoutError(), id="a bare timeout"),
        pytest.param(ConnectionResetError(), id="a bare reset"),
        pytest.param(BrokenPipeError(), id="a broken pipe"),
        pytest.param(OSError(113, "No route to host"), id="no route, perhaps in mid-stream"),
        pytest.param(asyncio.CancelledError(), id="a cancelled task"),
        pytest.param(KeyboardInterrupt(), id="control-c"),
        pytest.param(SystemExit(), id="an exit"),
        pytest.param(httpx.ConnectError("made up"), id="an exception that was never raised"),
        pytest.param(made_by_stripe("no cause"), id="the SDK's without a cause"),
        pytest.param(httpx2.LocalProtocolError("cut short"), id="httpx2 sent half of it"),
    ],
)
def test_a_bare_exception_proves_nothing(error):
    assert classify_exception(error).outcome is Outcome.UNKNOWN


class MadeByTheTool(Exception):
    pass


class NamedLikeALibrarys(httpx.ConnectError):
    pass


def refused_connection() -> None:
    httpx.post(f"http://127.0.0.1:{closed_port()}")


def wrapped() -> None:
    try:
        refused_connection()
    except httpx.ConnectError as error:
        raise MadeByTheTool from error


def second_choice() -> None:
    with faulty(close_after_reading) as server:
        try:
            httpx.post(server.url)
        except httpx.RemoteProtocolError:
            refused_connection()


def subclassed() -> None:
    try:
        refused_connection()
    except httpx.ConnectError as error:
        raise NamedLikeALibrarys("who knows") from error


@pytest.mark.parametrize("send", [wrapped, second_choice, subclassed], ids=lambda s: s.__name__)
def test_a_proof_within_something_else_is_no_proof(send):
    assert failure_of(send).outcome is Outcome.UNKNOWN


def test_what_was_being_handled_outside_is_not_of_this_attempt():
    def raised_before() -> None:
        raise MadeByTheTool

    with_it = without_it = None
    try:
        raised_before()
    except MadeByTheTool as outside:
        with_it = failure_of(refused_connection)
        without_it = failure_of(refused_connection, outside=outside)
    assert with_it
    assert without_it
    assert (with_it.outcome, without_it.outcome) == (Outcome.UNKNOWN, Outcome.NOT_SENT)


def test_a_group_is_not_sent_only_if_all_of_it_is():
    def caught(send: Callable[[], object]) -> Exception:
        try:
            send()
        except Exception as error:  # noqa: BLE001 - it goes into the group
            return error
        pytest.fail("nothing was raised")

    def together(*sends: Callable[[], object]) -> None:
        raise ExceptionGroup("two sends", [caught(send) for send in sends])

    assert failure_of(lambda: together(refused_connection)).outcome is Outcome.NOT_SENT
    half = lambda: together(refused_connection, wrapped)  # noqa: E731
    assert failure_of(half).outcome is Outcome.UNKNOWN


def test_a_chain_that_is_too_long_to_be_read_proves_nothing():
    def deeper(levels: int) -> None:
        if levels == 0:
            refused_connection()
        try:
            deeper(levels - 1)
        except Exception as error:
            raise requests.ConnectionError from error

    assert failure_of(lambda: deeper(3)).outcome is Outcome.NOT_SENT
    assert failure_of(lambda: deeper(CHAIN_LENGTH_MAX)).outcome is Outcome.UNKNOWN


# An earlier request of the same attempt


def then_closed(behaviour: Callable[[str], Behaviour], send: Callable[[str], object]) -> Failure:
    """A first request is answered by `behaviour` with the address of a closed port, and a library
    that goes there meets a refused connection."""
    with faulty(behaviour(f"http://127.0.0.1:{closed_port()}/")) as server:
        failure = failure_of(lambda: send(server.url))
        assert server.requests, "the first request arrived"
    return failure


def following(url: str) -> Behaviour:
    return answers(307, location=url)


@pytest.mark.parametrize(
    "send",
    [
        pytest.param(lambda u: httpx.post(u, follow_redirects=True), id="httpx"),
        pytest.param(lambda u: httpx2.post(u, follow_redirects=True), id="httpx2"),
        pytest.param(lambda u: requests.post(u, timeout=1), id="requests"),
        pytest.param(lambda u: urllib3.request("POST", u, timeout=1), id="urllib3"),
    ],
)
def test_a_refused_connection_behind_a_redirect_proves_nothing(send):
    assert then_closed(following, send).outcome is Outcome.UNKNOWN


def test_urllib_after_a_redirect_proves_nothing():
    def to_a_get(url: str) -> Behaviour:
        return answers(302, location=url)  # urllib repeats a POST as a GET, for 302 only.

    assert then_closed(to_a_get, SENDERS["urllib"]).outcome is Outcome.UNKNOWN


@pytest.mark.parametrize("library", [httpx, httpx2, requests], ids=lambda lib: lib.__name__)
def test_an_error_status_behind_a_redirect_proves_nothing(library):
    redirects = {} if library is requests else {"follow_redirects": True}
    with (
        faulty(answers(404)) as second,
        faulty(answers(303, location=second.url)) as first,
    ):
        failure = failure_of(
            lambda: library.post(first.url, timeout=2, **redirects).raise_for_status()
        )
    assert (failure.outcome, failure.http_status) == (Outcome.UNKNOWN, 404)


def closing_after(*behaviours: Behaviour, send: Callable[[str], object]) -> Failure:
    """Runs `send` against a server that goes away after its last behaviour."""

    def last(server, connection):
        # Closing alone would leave the socket listening as long as somebody waits in accept.
        server.listener.shutdown(socket.SHUT_RDWR)
        server.listener.close()
        behaviours[-1](server, connection)

    with faulty(in_turn(*behaviours[:-1], last)) as server:
        failure = failure_of(lambda: send(server.url))
    assert "Connection refused" in failure.error
    assert "earlier request" in failure.why
    return failure


def test_the_stripe_sdk_that_repeated_proves_nothing_by_its_last_refused_connection():
    failure = closing_after(close_after_reading, send=by_stripe_with_retries)
    assert failure.outcome is Outcome.UNKNOWN


def test_requests_that_repeated_proves_nothing_by_its_last_refused_connection():
    def send(url: str) -> object:
        retry = urllib3.Retry(2, allowed_methods=None, backoff_factor=0.01)
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=retry))
            return session.post(url, timeout=TIMEOUT_SECONDS)

    assert closing_after(close_after_reading, send=send).outcome is Outcome.UNKNOWN


def test_an_answer_to_a_request_that_may_be_the_second_proves_nothing():
    refusal = b'{"error": {"type": "invalid_request_error", "code": "parameter_missing"}}'
    with faulty(in_turn(close_after_reading, answers(400, refusal))) as server:
        failure = failure_of(lambda: by_stripe_with_retries(server.url))
        assert len(server.requests) == 2
    assert failure.outcome is Outcome.UNKNOWN


def test_requests_that_repeated_by_status_proves_nothing_by_the_last_one():
    def send(url: str) -> object:
        retry = urllib3.Retry(1, allowed_methods=None, status_forcelist=[500], backoff_factor=0.01)
        with requests.Session() as session:
            session.mount("http://", HTTPAdapter(max_retries=retry))
            response = session.post(url, timeout=TIMEOUT_SECONDS)
            response.raise_for_status()
            return response

    with faulty(in_turn(answers(500), answers(404))) as server:
        failure = failure_of(lambda: send(server.url))
    assert (failure.outcome, failure.http_status) == (Outcome.UNKNOWN, 404)


# Answers


@every_answered
@pytest.mark.parametrize("status", [400, 401, 403, 404, 429])
def test_a_refusal_of_the_first_request_is_refused(send, status):
    body = b'{"error": {"type": "invalid_request_error", "code": "parameter_missing"}}'
    with faulty(answers(status, body, request_id="req_1", retry_after="7")) as server:
        failure = failure_of(lambda: send(server.url))
    assert (failure.outcome, failure.http_status) == (Outcome.REFUSED, status)
    assert (failure.request_id, failure.retry_after_seconds) == ("req_1", 7)


@every_answered
@pytest.mark.parametrize("status", [408, 409, 423, 424, 500, 502, 503, 504])
def test_an_answer_that_may_follow_an_effect_is_unknown(send, status):
    with faulty(answers(status)) as server:
        failure = failure_of(lambda: send(server.url))
    assert (failure.outcome, failure.http_status) == (Outcome.UNKNOWN, status)


@every_answered
def test_a_broken_error_body_still_has_its_status(send):
    with faulty(answers(500, b"<html>")) as server:
        failure = failure_of(lambda: send(server.url))
    assert (failure.outcome, failure.http_status) == (Outcome.UNKNOWN, 500)


CARD = b'{"error": {"type": "card_error", "code": "card_declined", "message": "No."}}'
OTHER_PARAMETERS = b'{"error": {"type": "idempotency_error", "message": "Keys can only ..."}}'


def test_a_declined_card_is_a_stored_refusal():
    with faulty(answers(402, CARD)) as server:
        failure = failure_of(lambda: by_stripe(server.url))
    assert (failure.outcome, failure.provider_code) == (Outcome.REFUSED_STORED, "card_declined")
    assert failure.replayed is False


def test_a_replayed_decline_is_the_stored_refusal_even_of_a_later_request():
    with faulty(answers(402, CARD, idempotent_replayed="true")) as server:
        failure = failure_of(lambda: by_stripe_with_retries(server.url))
    assert (failure.outcome, failure.replayed) == (Outcome.REFUSED_STORED, True)


def test_a_key_that_was_used_for_something_else_proves_nothing():
    with faulty(answers(400, OTHER_PARAMETERS)) as server:
        failures = [failure_of(partial(send, server.url)) for send in ANSWERED.values()]
    of_stripe = failures[-1]
    assert of_stripe.provider_code == "idempotency_error"
    # urllib leaves the body unread, so its 400 is only a 400.
    unread = list(ANSWERED).index("urllib")
    assert {f.outcome for at, f in enumerate(failures) if at != unread} == {Outcome.UNKNOWN}


def test_the_contract_decides_how_an_answer_is_read():
    with faulty(answers(402, CARD)) as server:
        send = lambda: SENDERS["httpx"](server.url)  # noqa: E731
        assert failure_of(send).outcome is Outcome.UNKNOWN
        by_stripe_rules = failure_of(send, contract=Contract.STRIPE_V1)
    assert by_stripe_rules.outcome is Outcome.REFUSED_STORED


def test_the_stripe_module_repeats_by_default_so_its_answer_proves_nothing(monkeypatch):
    refusal = b'{"error": {"type": "invalid_request_error", "code": "parameter_missing"}}'
    with faulty(answers(400, refusal)) as server:
        monkeypatch.setattr(stripe, "api_base", server.url)
        monkeypatch.setattr(stripe, "api_key", "sk_test_not_real")
        client = stripe.RequestsClient(timeout=TIMEOUT_SECONDS)
        monkeypatch.setattr(stripe, "default_http_client", client)
        send = lambda: stripe.PaymentIntent.create(amount=1, currency="eur")  # noqa: E731
        assert failure_of(send).outcome is Outcome.UNKNOWN
        monkeypatch.setattr(stripe, "max_network_retries", 0)
        assert failure_of(send).outcome is Outcome.REFUSED
        client.close()


def test_retries_of_one_request_count_although_the_client_has_none():
    refusal = b'{"error": {"type": "invalid_request_error", "code": "parameter_missing"}}'
    with faulty(answers(400, refusal)) as server:
        http_client = stripe.RequestsClient(timeout=TIMEOUT_SECONDS)
        client = stripe.StripeClient(
            "sk_test_not_real", base_addresses={"api": server.url}, http_client=http_client
        )
        failure = failure_of(
            lambda: client.v1.refunds.create({"charge": "ch_1"}, {"max_network_retries": 2})
        )
        http_client.close()
    assert failure.outcome is Outcome.UNKNOWN


def test_the_stripe_sdk_over_httpx_is_read_the_same():
    with faulty(answers(402, CARD)) as server:
        failure = failure_of(lambda: by_stripe_over_httpx(server.url))
    assert failure.outcome is Outcome.REFUSED_STORED


# What is kept of an exception


def test_the_text_of_an_exception_is_kept_without_credentials_and_not_for_ever():
    error = httpx.ReadError(
        "sk_live_abcdefghijkl and whsec_abcdefghijkl failed at https://me:secret@pay.example/v1"
        "?token=hush with Bearer abcdefgh.ijkl " + "x" * 5000
    )
    kept = classify_exception(error).error
    for secret in ("abcdefgh", "secret@", "hush"):
        assert secret not in kept
    assert kept.startswith("httpx.ReadError: sk_[removed]")
    assert len(kept) == 2000
