"""botocore: it repeats by itself, and says how often."""

from __future__ import annotations

import pytest

from effects.core.failures import sends_in_result
from tests.effects.failing import NOT_SENT, REFUSED, UNKNOWN, Case, every_case, failure_of
from tests.effects.faulty_server import (
    Behaviour,
    answers,
    close_after_reading,
    closed_port,
    closing_the_port,
    faulty,
    in_turn,
)
from tests.effects.sdk_senders import aws_queue, botocore_sender


def sent(behaviour: Behaviour, retries: int = 0) -> object:
    with faulty(behaviour) as server:
        return botocore_sender(retries)(server.url)


def with_a_parameter_too_many() -> object:
    return aws_queue("http://127.0.0.1:1").send_message(Queue="wrong")


def without_credentials() -> object:
    client = aws_queue("http://127.0.0.1:1", aws_access_key_id=None, aws_secret_access_key=None)
    return client.send_message(QueueUrl="http://127.0.0.1:1/q", MessageBody="refund")


def through_a_proxy() -> object:
    proxy = {"proxies": {"http": f"http://127.0.0.1:{closed_port()}"}}
    return botocore_sender(config=proxy)("http://pay.invalid")


def error(code: str) -> bytes:
    return f'{{"__type": "{code}", "message": "said so"}}'.encode()


CASES = [
    Case("botocore.ParamValidationError", NOT_SENT, with_a_parameter_too_many),
    Case("botocore.NoCredentialsError", NOT_SENT, without_credentials),
    Case("botocore.ProxyConnectionError", NOT_SENT, through_a_proxy),
    Case("botocore.ClientError", UNKNOWN, lambda: sent(answers(409))),
]


@pytest.fixture(autouse=True)
def no_credentials_around(monkeypatch):
    """Neither the environment nor a machine's own service has any."""
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, "/nowhere/at/all")
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


@every_case(CASES)
def test_each_is_sorted_by_what_happened(case):
    case.check()


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (400, "QueueDoesNotExist", REFUSED),
        (400, "ThrottlingException", REFUSED),
        (400, "TransactionInProgressException", UNKNOWN),
        (400, "IdempotentParameterMismatch", UNKNOWN),
        (400, "RequestTimeout", UNKNOWN),
        (400, "ConditionalCheckFailedException", UNKNOWN),
        (400, "ResourceInUseException", UNKNOWN),
        (503, "ServiceUnavailable", UNKNOWN),
    ],
)
def test_the_code_outranks_the_status(status, code, outcome):
    failure = failure_of(lambda: sent(answers(status, error(code))))
    assert (failure.outcome, failure.provider_code) == (outcome, code)


def test_an_exception_of_a_services_own_is_an_answer_too():
    failure = failure_of(lambda: sent(answers(400, error("QueueDoesNotExist"))))
    assert failure.error.startswith("botocore.QueueDoesNotExist")
    assert (failure.outcome, failure.http_status) == (REFUSED, 400)


def test_an_answer_after_a_repeat_is_unknown_and_counted():
    with faulty(in_turn(answers(500), answers(400, error("ThrottlingException")))) as server:
        failure = failure_of(lambda: botocore_sender(1)(server.url))
        assert len(server.requests) == 2
    assert (failure.outcome, failure.http_status, failure.sends_seen) == (UNKNOWN, 400, 2)


def test_the_last_refused_connection_proves_nothing_after_a_request_that_was_read():
    with faulty(closing_the_port(close_after_reading)) as server:
        failure = failure_of(lambda: botocore_sender(1)(server.url))
        assert len(server.requests) == 1
    assert (failure.outcome, failure.sends_seen) == (UNKNOWN, 2)


def test_a_result_says_how_often_it_was_asked_for():
    behaviour = in_turn(answers(500), answers(200, b'{"MessageId": "m-1"}'))
    with faulty(behaviour) as server:
        queue = aws_queue(server.url, retries=1)
        told = queue.send_message(QueueUrl=f"{server.url}/q", MessageBody="refund")
    assert (told["MessageId"], sends_in_result(told)) == ("m-1", 2)
