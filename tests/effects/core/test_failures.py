"""The rules of sorting: what a chain of exceptions proves, whatever library raised it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable

import httpx
import httpx2
import pytest
import requests
import stripe

from effects.core.failures import CHAIN_LENGTH_MAX, NotSent, SendTooLate, classify_exception
from effects.core.vocabulary import Outcome
from tests.effects.failing import failure_of
from tests.effects.faulty_server import close_after_reading, closed_port, faulty

# What a tool may say


@pytest.mark.parametrize("error", [NotSent("said so"), SendTooLate("said so")])
def test_the_tools_own_word_is_a_proof(error):
    assert classify_exception(error).outcome is Outcome.NOT_SENT


# What nobody can say


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


def test_sorting_imports_nothing():
    program = """
import sys
from effects.core.failures import classify_exception
from tests.effects.failing import error_of
from tests.effects.faulty_server import answers, closed_port, faulty
from tests.effects.senders import SENDERS

errors = [error_of(lambda: SENDERS[name](f"http://127.0.0.1:{closed_port()}")) for name in SENDERS]
with faulty(answers(400, b'{"error": {"code": "x"}}')) as server:
    for name in ("httpx", "httpx2", "requests", "stripe"):
        errors.append(error_of(lambda: SENDERS[name](server.url)))
before = set(sys.modules)
sorted_out = [classify_exception(error).outcome.value for error in errors]
print(sorted(set(sys.modules) - before), sorted(set(sorted_out)))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.stdout.strip() == "[] ['not_sent', 'refused']", ran.stderr
