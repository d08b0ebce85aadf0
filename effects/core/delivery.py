"""How often a job was handed out, read from what each queue says about it. Pure.

Queues say it differently, and some only say "perhaps". What comes out is one count, 1 for a first
delivery, to be passed with a claim::

    at = ToolCall(conversation=..., turn_index=..., **delivery_of(message).parts)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

COUNT_MAX = 1_000_000
"""The most that a claim can say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """None: the queue did not say it. `retry_count` is the job's own, where it counts retries apart
    from deliveries."""

    delivery_count: int | None = None
    retry_count: int | None = None
    worker: str | None = None

    @property
    def parts(self) -> dict[str, Any]:
        """As members of a `ToolCall`."""
        return {
            "delivery_count": self.delivery_count,
            "retry_count": self.retry_count,
            "worker": self.worker,
        }


def delivery_of(said: Mapping[str, Any]) -> Delivered:
    """What a message, or a task's request, says of its delivery.

    Amazon SQS: ``Attributes.ApproximateReceiveCount`` (it must be asked for, and it counts
    deliveries to workers that never began, too). RabbitMQ: the header ``x-delivery-count`` of a
    quorum queue counts earlier deliveries; ``redelivered`` says that there may have been one, which
    is read as two; ``x-death`` counts something else and is not read. Celery: the same flag in
    ``delivery_info`` or ``headers``, and ``retries``. ``delivery_count`` and ``worker`` are taken
    as they are.
    """
    attributes = _mapping(said, "Attributes") or _mapping(said, "attributes")
    headers = _mapping(said, "headers")
    before = _count(headers.get("x-delivery-count"))
    exact = (
        _count(said.get("delivery_count")),
        _count(attributes.get("ApproximateReceiveCount")),
        None if before is None else before + 1,
    )
    return Delivered(
        delivery_count=next((one for one in exact if one is not None), _flagged(said, headers)),
        retry_count=_first_count(said.get("retry_count"), said.get("retries")),
        worker=_text(said.get("worker")) or _text(said.get("hostname")),
    )


RETRY_HEADER = "x-stainless-retry-count"
"""How often the SDKs of OpenAI and Anthropic sent a request before, as they say in the request."""


def retries_of(headers: Mapping[str, Any]) -> int | None:
    """The library's own count in the headers of a request; None where it says none."""
    said = {str(name).lower(): value for name, value in headers.items()}
    return _count(said.get(RETRY_HEADER))


def _flagged(said: Mapping[str, Any], headers: Mapping[str, Any]) -> int | None:
    flags = (
        said.get("redelivered"),
        _mapping(said, "delivery_info").get("redelivered"),
        headers.get("redelivered"),
    )
    known = [flag for flag in flags if isinstance(flag, bool)]
    if not known:
        return None
    return 2 if any(known) else 1


def _mapping(said: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = said.get(name)
    return found if isinstance(found, Mapping) else {}


def _first_count(*values: Any) -> int | None:
    return next((one for one in map(_count, values) if one is not None), None)


def _count(value: Any) -> int | None:
    """A count as number or digits. Anything else says nothing."""
    if isinstance(value, bool):
        return None
    if (
        isinstance(value, str)
        and value.isascii()
        and value.isdigit()
        and len(value) <= len("9" * 7)
    ):
        value = int(value)
    return value if isinstance(value, int) and 0 <= value <= COUNT_MAX else None


def _text(value: Any) -> str | None:
    return value[:255] if isinstance(value, str) and value else None
