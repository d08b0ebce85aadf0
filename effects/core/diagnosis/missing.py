"""What would decide a pair that is undecided, as far as nobody has said it yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from effects.core.diagnosis.evidence import Pair
from effects.core.diagnosis.layers import INTENT, LAYERS, RERUN, WIRE, Layer

_Lacks = Callable[[Pair], bool]


def _lacks(member: str) -> _Lacks:
    return lambda pair: None in (getattr(pair.first, member), getattr(pair.second, member))


def _wire_lacks(member: str) -> _Lacks:
    return lambda pair: pair.on_the_wire and _lacks(member)(pair)


def _outcome_unknown(pair: Pair) -> bool:
    return not pair.settled_before


_TELLS: Final[tuple[tuple[str, frozenset[Layer], _Lacks], ...]] = (
    ("delivery_count", frozenset({Layer.QUEUE_REDELIVERY}), lambda p: not p.second.delivery_count),
    ("worker", RERUN, _lacks("worker")),
    ("checkpoint", RERUN, _lacks("checkpoint")),
    ("checkpoint_writes", RERUN, lambda p: p.second.resumed is None),
    ("gateway_log", frozenset({Layer.GATEWAY_RETRY}), lambda p: p.on_the_wire and not p.gateway),
    ("http_requests_sent", WIRE, lambda p: p.on_the_wire and p.requests_sent is None),
    ("retry_count_header", frozenset({Layer.SDK_RETRY}), _wire_lacks("retry_count")),
    ("client_request_id", frozenset({Layer.SDK_RETRY}), _wire_lacks("client_request_id")),
    ("attempts_of_the_application", WIRE, lambda p: p.on_the_wire and None in p.attempts),
    ("tool_call_id", INTENT, _lacks("call_id")),
    ("turn", INTENT, _lacks("turn_index")),
    ("prior_outcome", INTENT, _outcome_unknown),
    ("user_message_between", INTENT, lambda p: p.second.user_spoke is None),
)
"""A kind of evidence, the layers that it speaks about, and when it is missing."""


def missing(pair: Pair, candidates: frozenset[Layer]) -> tuple[str, ...]:
    """The evidence that speaks about some candidates, and that nobody has given."""
    speaks = candidates or LAYERS
    return tuple(name for name, about, lacks in _TELLS if about & speaks and lacks(pair))
