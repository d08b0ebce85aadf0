"""The table as a whole: every row is met for real, and a tool can add rows of its own."""

from __future__ import annotations

from pathlib import Path

import pytest
import requests

from effects.core.failures import (
    ErrorProof,
    ErrorRow,
    ErrorRules,
    NotSent,
    classify_exception,
    error_rules,
)
from effects.core.failures.answered import _READERS
from effects.core.failures.sends import _COUNTERS
from effects.core.failures.table import CLIENTS, LISTED, ROWS_MAX
from tests.effects.core import (
    test_failures_aiohttp,
    test_failures_botocore,
    test_failures_grpc,
    test_failures_httpx,
    test_failures_matrix,
    test_failures_models,
    test_failures_python,
    test_failures_stripe,
    test_failures_urllib3,
)
from tests.effects.failing import ANSWERED_ROWS, NOT_SENT, REFUSED, UNKNOWN, failure_of
from tests.effects.faulty_server import answers, close_after_reading, closed_port, faulty
from tests.effects.senders import by_httpx, by_requests

FILES = [
    test_failures_aiohttp,
    test_failures_botocore,
    test_failures_grpc,
    test_failures_httpx,
    test_failures_models,
    test_failures_python,
    test_failures_stripe,
    test_failures_urllib3,
]


def test_every_row_is_met_for_real():
    met = {row for file in FILES for case in file.CASES for row in case.rows.split()}
    for fault in test_failures_matrix.FAULTS.values():
        met |= {row for rows in fault.rows.values() for row in rows.split()}
    assert set(LISTED) - met == set()


def test_no_exception_has_two_rows_that_disagree():
    rows = {row for client in CLIENTS for row in client.rows}
    assert len(rows) == len(LISTED)


def test_every_answered_row_can_be_read():
    assert set(_READERS) == ANSWERED_ROWS


def test_every_function_that_counts_still_exists_in_the_library_it_counts_in():
    """A library that renames it would make its repeats invisible."""
    site = Path(requests.__file__).parents[1]
    sources: dict[str, str] = {}
    for package, name in _COUNTERS:
        if package not in sources and package != "urllib":
            files = (site / package).rglob("*.py")
            sources[package] = "\n".join(file.read_text(encoding="utf-8") for file in files)
        if package != "urllib":
            assert f"def {name}(" in sources[package], (package, name)


# Rows of a user's own


class QueueClosed(Exception):
    pass


class PaymentFailed(Exception):
    pass


class PaymentFailedLater(PaymentFailed):
    pass


def rules(kind: type[BaseException], proof: ErrorProof, contract: str | None = None) -> ErrorRules:
    row = ErrorRow(exception=kind, proof=proof, why="we wrote it")
    return ErrorRules(contract=contract, rows=(row,))  # type: ignore[arg-type]  # as users write it


def closed() -> object:
    raise QueueClosed


def refused() -> object:
    return by_httpx(f"http://127.0.0.1:{closed_port()}")


def wrapping(send, kind: type[Exception] = PaymentFailed):
    def run() -> object:
        try:
            return send()
        except Exception as error:
            raise kind("it did not work") from error

    return run


def test_a_row_of_ones_own_is_a_proof_and_is_named_where_it_decided():
    assert failure_of(closed).outcome is UNKNOWN
    failure = failure_of(closed, contract=rules(QueueClosed, ErrorProof.UNSENT))
    assert failure.outcome is NOT_SENT
    assert failure.why.endswith("by a row of yours: we wrote it")


def test_it_holds_for_the_class_and_for_no_subclass():
    def raised_later() -> object:
        raise PaymentFailedLater

    own = rules(PaymentFailed, ErrorProof.UNSENT)
    assert failure_of(raised_later, contract=own).outcome is UNKNOWN


def test_a_wrapper_is_read_by_what_it_wraps():
    own = rules(PaymentFailed, ErrorProof.ITS_CAUSE)
    assert failure_of(wrapping(refused)).outcome is UNKNOWN
    assert failure_of(wrapping(refused), contract=own).outcome is NOT_SENT
    assert failure_of(wrapping(closed), contract=own).outcome is UNKNOWN
    with faulty(close_after_reading) as server:
        cut = failure_of(wrapping(lambda: by_httpx(server.url)), contract=own)
    assert cut.outcome is UNKNOWN


def test_an_answer_within_a_wrapper_is_read():
    own = rules(PaymentFailed, ErrorProof.ITS_CAUSE)
    with faulty(answers(404)) as server:
        send = wrapping(lambda: by_requests(server.url))
        failure = failure_of(send, contract=own)
        assert failure_of(send).outcome is UNKNOWN
    assert (failure.outcome, failure.http_status) == (REFUSED, 404)


def test_the_contract_counts_beside_the_rows():
    own = rules(PaymentFailed, ErrorProof.ITS_CAUSE, "stripe.v1")
    with faulty(answers(402, b'{"error": {"code": "card_declined"}}')) as server:
        failure = failure_of(wrapping(lambda: by_requests(server.url)), contract=own)
    assert failure.outcome.value == "refused_stored"


def test_a_listed_class_can_be_narrowed_to_nothing():
    own = rules(requests.HTTPError, ErrorProof.NOTHING)
    with faulty(answers(404)) as server:
        failure = failure_of(lambda: by_requests(server.url), contract=own)
    assert failure.outcome is UNKNOWN
    assert "by a row of yours" in failure.why


def test_an_earlier_request_destroys_the_proof_of_ones_own_row_too():
    def redirected() -> object:
        with faulty(answers(307, location=f"http://127.0.0.1:{closed_port()}")) as server:
            return requests.post(server.url, timeout=1)

    own = rules(PaymentFailed, ErrorProof.ITS_CAUSE)
    failure = failure_of(wrapping(redirected), contract=own)
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)


class Told(NotSent):
    pass


@pytest.mark.parametrize("proof", [ErrorProof.UNSENT, ErrorProof.ITS_CAUSE])
@pytest.mark.parametrize("kind", [TimeoutError, ValueError, Exception, requests.ReadTimeout])
def test_what_the_table_or_python_raises_cannot_be_widened(kind, proof):
    with pytest.raises(ValueError, match="may only say NOTHING"):
        ErrorRow(exception=kind, proof=proof, why="surely")
    ErrorRow(exception=kind, proof=ErrorProof.NOTHING, why="to be safe")


class NotFoundHere(requests.HTTPError):
    pass


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"exception": "acme.Failed"}, "a class of exceptions"),
        ({"exception": int}, "a class of exceptions"),
        ({"proof": "unsent"}, "an ErrorProof"),
        ({"why": " "}, "Say why in 1 to 200"),
        ({"why": "x" * 201}, "Say why in 1 to 200"),
        ({"proof": ErrorProof.ITS_ANSWER}, "cannot be read for an answer"),
        ({"exception": NotFoundHere}, "in the table already"),
    ],
)
def test_a_row_that_cannot_be_a_proof_is_refused(parts, problem):
    whole = {"exception": QueueClosed, "proof": ErrorProof.UNSENT, "why": "we wrote it"}
    with pytest.raises((TypeError, ValueError), match=problem):
        ErrorRow(**{**whole, **parts})


def test_rules_have_limits():
    row = ErrorRow(exception=QueueClosed, proof=ErrorProof.UNSENT, why="we wrote it")
    with pytest.raises(ValueError, match="two rows"):
        ErrorRules(rows=(row, row))
    with pytest.raises(ValueError, match=f"at most {ROWS_MAX}"):
        ErrorRules(rows=(row,) * (ROWS_MAX + 1))
    with pytest.raises(ValueError, match=r"stripe\.v9"):
        error_rules("stripe.v9")


def test_a_tool_that_says_so_itself_needs_no_row():
    assert classify_exception(Told("before the send")).outcome is NOT_SENT
