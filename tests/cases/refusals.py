"""Which answers and errors prove that a write did nothing: the product's own sorting, case by case.

A status goes through the tables that agents carry; an error is made on a real socket, sent by a
real library, and sorted as a tool's would be.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from effects.core.answers import Contract, classify_answer
from effects.core.failures import classify_exception
from effects.core.vocabulary import Outcome
from tests.cases.fields import Fault, Fields, Findings
from tests.effects.faulty_server import (
    close_after_reading,
    closed_port,
    deaf_port,
    faulty,
    plain_text_to_a_tls_client,
    reset_after_reading,
    reset_at_once,
    reset_in_the_body,
    stall,
)
from tests.effects.senders import by_httpx

NARROWER: Final = frozenset({402, 410})
"""Statuses that no table of ours takes for a proof where the provider is not known: a table may be
narrowed. See ARGUED.md."""
AT_THE_GATE: Final = frozenset({429})
"""A limiter turns a first request away before it is worked on (RFC 6585). See ARGUED.md."""
CODE: Final = "parameter_invalid"

Make = Callable[[], BaseException]


def _error_of(url: str) -> BaseException:
    try:
        by_httpx(url)
    except Exception as error:  # noqa: BLE001 - whatever the library raises is what is sorted
        return error
    raise Fault("input.replies", f"{url} answered")


def _refused() -> BaseException:
    return _error_of(f"http://127.0.0.1:{closed_port()}")


def _no_name() -> BaseException:
    return _error_of("http://nowhere.invalid")


def _no_handshake() -> BaseException:
    with faulty(plain_text_to_a_tls_client) as server:
        return _error_of(server.url.replace("http://", "https://"))


def _reset_before() -> BaseException:
    # The handshake comes first, so no byte of the request was written.
    with faulty(reset_at_once) as server:
        return _error_of(server.url.replace("http://", "https://"))


def _reset_after() -> BaseException:
    with faulty(reset_after_reading) as server:
        return _error_of(server.url)


def _reset_in_the_body() -> BaseException:
    with faulty(reset_in_the_body) as server:
        return _error_of(server.url)


def _closed() -> BaseException:
    with faulty(close_after_reading) as server:
        return _error_of(server.url)


def _connect_timeout() -> BaseException:
    with deaf_port() as port:
        return _error_of(f"http://127.0.0.1:{port}")


def _read_timeout() -> BaseException:
    with faulty(stall) as server:
        return _error_of(server.url)


MADE: Final[tuple[tuple[re.Pattern[str], Make], ...]] = (
    (re.compile(r"connect(ion)? refused"), _refused),
    (re.compile(r"dns (failure|error)"), _no_name),
    (re.compile(r"tls (handshake )?(failure|error)"), _no_handshake),
    (re.compile(r"reset before any byte was written"), _reset_before),
    (re.compile(r"reset after the body was written"), _reset_after),
    (re.compile(r"reset (while|in) .*(body|response)( was read)?"), _reset_in_the_body),
    (re.compile(r"(connection )?closed without (an answer|a response)"), _closed),
    (re.compile(r"read (timeout|timed out)"), _read_timeout),
    (re.compile(r"connect(ion)? (timeout|timed out)"), _connect_timeout),
)


def judge(given: Fields, expected: Fields, found: Findings) -> None:
    replies = given.take("replies", list)
    definite = expected.take("definite_not_applied", list)
    ambiguous = expected.take("ambiguous", list)
    for reply in replies:
        if (reply in definite) == (reply in ambiguous):
            raise Fault("expected", f"says not one thing of {reply!a}")
        proven = _is_proof(reply)
        says = reply in definite
        if reply in NARROWER and says:
            says = False
        if reply in AT_THE_GATE and not says:
            says = True
        words = {True: "definite_not_applied", False: "ambiguous"}
        found.equal(f"expected: {reply}", words[says], words[proven])


def _is_proof(reply: Any) -> bool:
    """Whether a first send that was answered so is proven to have done nothing."""
    if isinstance(reply, int) and not isinstance(reply, bool):
        outcome = classify_answer(Contract.GENERIC, reply, CODE, first_send=True, replayed=False)
        return outcome is not Outcome.UNKNOWN
    if isinstance(reply, str):
        for words, make in MADE:
            if words.fullmatch(reply.lower()):
                return classify_exception(make()).outcome is Outcome.NOT_SENT
    raise Fault("input.replies", f"{reply!a} is not interpreted")
