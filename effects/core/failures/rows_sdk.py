"""The rows of the providers' own SDKs: stripe, openai, anthropic, grpc and botocore."""

from __future__ import annotations

from typing import Final

from effects.core.failures.row import Client, Row, answered, by_cause, by_stage, silent, unsent

__all__ = ["SDKS"]


def _stainless(package: str) -> tuple[Row, ...]:
    """Rows that the SDKs of openai and anthropic share: they come from one generator."""
    return (
        by_cause(f"{package}.APIConnectionError", "no answer, for the reason that caused it"),
        by_cause(f"{package}.APITimeoutError", "not in time: connecting, a free place, the answer"),
        answered(f"{package}.APIStatusError", "an error status, or an error inside a stream"),
    )


_STRIPE: Final = (
    by_cause("stripe.APIConnectionError", "no answer, for the reason that caused it"),
    answered("stripe.StripeError", 'every answered error, by the contract "stripe.v1"'),
)

_STRIPE_NOTES: Final = """
- `stripe.StripeClient` does not repeat by default, `stripe.X.create` repeats twice. An answer does
  not say which request it answers, so where the SDK may have repeated it proves nothing, unless it
  is the replayed one.
- `stripe.IdempotencyError` (400) speaks of a key that was used before; a key in use is a plain
  `stripe.APIError` with 409. Both are unknown.
- 429 is refused on a first request and unknown on a later one: the limiter answers before the key
  is looked at.
"""

_OPENAI: Final = (
    *_stainless("openai"),
    silent("openai.APIError", "an error inside a stream that had begun with status 200"),
)

_REPEATS_TWICE: Final = """
- The SDK repeats twice by default, on 408, 409, 429, 5xx and broken connections. How often it did
  is read from `x-stainless-retry-count` and from the traceback, whichever says more; any repeat
  makes the outcome unknown. Use `max_retries=0` in a tool that changes something."""

_OPENAI_NOTES: Final = f"""{_REPEATS_TWICE}
- An `error` event of the Responses stream is handed out as an event and not raised: the stream's
  record says how it ended, not an exception.
"""

_ANTHROPIC_NOTES: Final = f"""{_REPEATS_TWICE}
- A stream that breaks raises a bare `httpx2.RemoteProtocolError` or `httpx2.ReadError`, which is no
  exception of the SDK. An error inside a stream carries the status 200 that it began with. Both are
  unknown.
- 503 with `change_outcome_unknown` says that some of the request's changes may have been saved. The
  SDK repeats it like any 5xx.
- With a middleware an earlier request cannot be excluded: unknown.
"""

_GRPC: Final = (
    by_stage("grpc.FutureTimeoutError", "the channel was not ready in time, or a call"),
    answered("grpc.RpcError", "a status: the server's, or the client's own"),
)

_GRPC_NOTES: Final = """
- A channel may repeat a call by its service config, and a status does not show it: without the
  contract "grpc" every status is unknown. Choosing it says that the channel has no retry policy.
  Then INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED and UNAUTHENTICATED of a unary call without an
  interceptor are refused, and every other status stays unknown.
- UNAVAILABLE is never proof, although its text may say that connecting failed: a server passes on
  the same status with the same text from one behind it. To know that nothing was sent, wait for the
  channel first: `grpc.channel_ready_future(channel).result(timeout=2)`, or
  `await channel.channel_ready()`.
- RESOURCE_EXHAUSTED is unknown: the client itself raises it for an answer that is too large, after
  the server has done the work. UNIMPLEMENTED and INTERNAL likewise.
"""

_BOTOCORE: Final = (
    unsent("botocore.EndpointConnectionError", "the connection was refused, or no such name"),
    unsent("botocore.ConnectTimeoutError", "the connection was not ready in time"),
    unsent("botocore.ParamValidationError", "the parameters do not fit the operation"),
    unsent("botocore.NoCredentialsError", "there is nothing to sign the request with"),
    by_cause("botocore.SSLError", "a TLS error, at the handshake or later"),
    by_cause("botocore.ProxyConnectionError", "the proxy was not reached"),
    by_cause("botocore.ConnectionClosedError", "the connection was broken"),
    silent("botocore.ReadTimeoutError", "the answer did not come in time"),
    answered("botocore.ClientError", "an answered error, also as a service's own class"),
)

_BOTOCORE_NOTES: Final = """
- It repeats by default, twice in the mode `standard` and four times in `legacy`. `RetryAttempts` of
  the answer and the traceback say how often it did; any repeat makes the outcome unknown.
- A body that is cut is not noticed: the call returns an answer that lacks its fields. Look for the
  field that you need before you say that the effect is complete.
"""

SDKS: Final = (
    Client("stripe", _STRIPE, _STRIPE_NOTES),
    Client("openai", _OPENAI, _OPENAI_NOTES),
    Client("anthropic", _stainless("anthropic"), _ANTHROPIC_NOTES),
    Client("grpc", _GRPC, _GRPC_NOTES),
    Client("botocore", _BOTOCORE, _BOTOCORE_NOTES),
)
