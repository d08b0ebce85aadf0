"""What each queue says about a delivery, as one count."""

from typing import Any

import pytest

from effects.client import ToolCall
from effects.core.delivery import Delivered, delivery_of, retries_of

SQS = {"MessageId": "m", "Attributes": {"ApproximateReceiveCount": "3", "SentTimestamp": "1"}}
LAMBDA = {"messageId": "m", "attributes": {"ApproximateReceiveCount": "2"}}
CELERY = {"id": "t", "retries": 1, "hostname": "w@1", "delivery_info": {"redelivered": True}}

SAID: list[tuple[dict[str, Any], Delivered]] = [
    (SQS, Delivered(delivery_count=3)),
    (LAMBDA, Delivered(delivery_count=2)),
    ({"MessageId": "m", "Attributes": {}}, Delivered()),
    ({"redelivered": False}, Delivered(delivery_count=1)),
    ({"redelivered": True}, Delivered(delivery_count=2)),
    ({"redelivered": True, "headers": {"x-delivery-count": 4}}, Delivered(delivery_count=5)),
    ({"headers": {"x-delivery-count": 0}}, Delivered(delivery_count=1)),
    ({"headers": {"x-death": [{"count": 7}]}}, Delivered()),
    ({"headers": {"redelivered": True}}, Delivered(delivery_count=2)),
    (CELERY, Delivered(delivery_count=2, retry_count=1, worker="w@1")),
    ({"delivery_count": 9, "worker": "w"}, Delivered(delivery_count=9, worker="w")),
    ({"delivery_count": True}, Delivered()),
    ({"delivery_count": -1, "retries": "1.5"}, Delivered()),
    ({"Attributes": "none", "delivery_info": None, "headers": 7}, Delivered()),
    ({"delivery_count": "9" * 300}, Delivered()),
]


@pytest.mark.parametrize(("said", "means"), SAID)
def test_a_queues_own_words_become_one_count(said: dict[str, Any], means: Delivered) -> None:
    assert delivery_of(said) == means


@pytest.mark.parametrize(
    ("headers", "count"),
    [({"X-Stainless-Retry-Count": "2"}, 2), ({"x-stainless-retry-count": 0}, 0), ({}, None),
     ({"x-stainless-retry-count": "many"}, None)],
)  # fmt: skip
def test_a_library_says_in_its_request_how_often_it_was_sent(
    headers: dict[str, Any], count: int | None
) -> None:
    assert retries_of(headers) == count


def test_the_parts_go_into_a_tool_call_as_they_are() -> None:
    at = ToolCall(conversation="c", turn_index=1, **delivery_of(CELERY).parts)
    assert (at.delivery_count, at.retry_count, at.worker) == (2, 1, "w@1")
