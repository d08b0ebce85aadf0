"""What a provider's error answer proves about the request that it answers, by contract.

An answer that is not listed proves nothing. Each row says why, because a row that is wrong costs a
second payment: "refused" lets the same call be made again.

Two questions come before the status. Was this the first request of the attempt? A later one may be
refused at the gate while the first one took effect. Is it a replay, that is the stored answer of
this key's one execution? Then it speaks for the first request too.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from effects.core.refusals import AnswerMeaning, RefusalTable, explain_codes
from effects.core.vocabulary import Outcome

__all__ = [
    "TABLES",
    "AnswerMeaning",
    "Contract",
    "classify_answer",
    "explain_answer",
    "explain_grpc_status",
]


class Contract(StrEnum):
    """Which published rules an answer is read by. "grpc" also says that the channel has no retry
    policy, which a status does not show; an HTTP answer is read by it as by "generic"."""

    STRIPE_V1 = "stripe.v1"
    GENERIC = "generic"
    GRPC = "grpc"


GENERIC_REFUSALS: Final[dict[int, str]] = {
    400: "the server could not accept the request as it stood",
    401: "the caller was not authenticated, so nothing was done in its name",
    403: "the caller may not do this, and was told so instead",
    404: "there is nothing at this address that could have acted",
    405: "what is at this address does not take this method",
    422: "the server read the request and found its content invalid",
    429: "a limiter turned the request away before it was worked on",
}
"""The only answers that RFC 9110 (and RFC 6585 for 429) describes as given *instead of* acting.

Left out on purpose: 402 (payment services use it for an execution that failed halfway), 408 (who
timed out is not said), 409 (often "it exists already"), 410 and 412 (may speak of what an earlier
request made), 413 to 415 and 431 (a gateway's word, sometimes given while the body still flows),
423 to 425 (a lock, a dependency, a replayed early request: each may follow a first part).
"""

SPEAKS_OF_EARLIER: Final = (
    "idempoten",
    "already",
    "exists",
    "duplicate",
    "taken",
    "conflict",
    "conditional",
    "precondition",
)
"""Parts of error codes that refuse a request because of an earlier one. A gateway that repeats a
POST passes on the answer to its second copy: "it exists already" then means that ours made it, and
a condition that no longer holds may have been met by it."""

LEAVES_OPEN: Final = (
    "in_use",
    "inuse",
    "in_progress",
    "inprogress",
    "timeout",
    "timed_out",
    "outcome_unknown",
)
"""Parts of error codes that leave open what was or is being done, under whatever status: a
`TransactionInProgressException` and a `RequestTimeout` of AWS both come with 400."""

GRPC_REFUSALS: Final[dict[str, str]] = {
    "INVALID_ARGUMENT": "the server found the request invalid",
    "NOT_FOUND": "the request names something that does not exist",
    "PERMISSION_DENIED": "the caller may not do this, and was told so instead",
    "UNAUTHENTICATED": "the caller was not authenticated, so nothing was done in its name",
}
"""Statuses that mean a refusal whoever gave them (https://grpc.io/docs/guides/status-codes).

Left out on purpose: UNAVAILABLE (also when the connection breaks with the request on its way),
DEADLINE_EXCEEDED and CANCELLED (whatever the server did), RESOURCE_EXHAUSTED (the client's own word
for an answer that is too large), UNIMPLEMENTED and INTERNAL (the client's own word for an answer
that it cannot read), ALREADY_EXISTS, ABORTED and FAILED_PRECONDITION (may speak of what an earlier
request made), OUT_OF_RANGE, DATA_LOSS and UNKNOWN (an operation may have run until then).
"""

STRIPE_REFUSALS: Final[dict[int, str]] = {
    400: "the parameters were refused before the endpoint began",
    401: "the API key was refused before the endpoint began",
    403: "the API key may not do this, refused before the endpoint began",
    404: "the request names an object that does not exist, so nothing could be done with it",
    429: "the rate limiter answers before the idempotency layer",
}
"""https://docs.stripe.com/api/idempotent_requests and https://docs.stripe.com/error-low-level: an
answer is stored once the endpoint begins to execute; these are given before, on a first request."""

STRIPE_STORABLE: Final = frozenset({400, 402, 403, 404})
"""Refusals that an executing endpoint gives, and that are then replayed for the key. 401 and 429
are given before the layer that replays, so a replayed one would contradict itself."""

STRIPE_IN_USE: Final = frozenset({"idempotency_key_in_use", "lock_timeout"})
"""Another execution is in progress, with this key or on this object. Nothing published says
whether the lock is waited for before or after the answer is stored."""


_ONE_OF_EARLIER: Final = "the answer speaks of an earlier request, perhaps this one's first copy"
_LEFT_OPEN: Final = "the answer's code leaves open what was done"
_ANOTHER_RUNS: Final = "another execution is in progress, perhaps of this very request"

GENERIC: Final = RefusalTable(
    name="generic",
    refusals=GENERIC_REFUSALS,
    open_parts={
        **dict.fromkeys(SPEAKS_OF_EARLIER, _ONE_OF_EARLIER),
        **dict.fromkeys(LEAVES_OPEN, _LEFT_OPEN),
    },
)
STRIPE_V1: Final = RefusalTable(
    name="stripe.v1",
    refusals=STRIPE_REFUSALS,
    declines={
        402: "the payment was executed and declined, and the answer is stored under this key"
    },
    storable=STRIPE_STORABLE,
    coded={400: frozenset(), 404: frozenset()},
    open_statuses={
        409: _ANOTHER_RUNS,
        424: "a failed dependency may have acted before it failed",
    },
    open_codes={
        **dict.fromkeys(STRIPE_IN_USE, _ANOTHER_RUNS),
        "idempotency_error": "the key was used before for another request, whose outcome this "
        "answer does not say",
    },
    replay_marker=("idempotent-replayed", "true"),
)
TABLES: Final[dict[Contract, RefusalTable]] = {
    Contract.STRIPE_V1: STRIPE_V1,
    Contract.GENERIC: GENERIC,
    Contract.GRPC: GENERIC,
}
"""What an agent carries. Every other provider's table is one of these, narrowed by its contract."""


def classify_answer(
    contract: Contract | RefusalTable,
    http_status: int,
    provider_code: str | None,
    *,
    first_send: bool,
    replayed: bool,
) -> Outcome:
    """What an answer proves: REFUSED, REFUSED_STORED, or UNKNOWN for everything unproven.

    `provider_code` is the error's code as the provider writes it; for Stripe the type
    "idempotency_error" takes its place where the error is of that type. `first_send` is true only
    if no earlier request of this attempt can have reached the provider; `replayed` only if the
    answer says that it is the stored one (Stripe: header Idempotent-Replayed).
    """
    return explain_answer(
        contract, http_status, provider_code, first_send=first_send, replayed=replayed
    ).outcome


def explain_answer(
    contract: Contract | RefusalTable,
    http_status: int,
    provider_code: str | None,
    *,
    first_send: bool,
    replayed: bool,
) -> AnswerMeaning:
    """The same with its reason."""
    table = contract if isinstance(contract, RefusalTable) else TABLES[contract]
    codes = () if provider_code is None else (provider_code,)
    return explain_codes(table, http_status, codes, first_send=first_send, replayed=replayed)


def explain_grpc_status(
    contract: Contract | RefusalTable, code: str, *, first_send: bool
) -> AnswerMeaning:
    """What a gRPC status proves: REFUSED, or UNKNOWN. `code` is its name, "INVALID_ARGUMENT".

    `first_send` is true only for a unary call in which no interceptor can have repeated it. That
    the channel has not either is what the contract says.
    """
    why = GRPC_REFUSALS.get(code)
    if why is None:
        return _unknown(f"{code} is no proof that nothing was done")
    if contract is not Contract.GRPC:
        return _unknown(
            'the channel may have repeated the call; the contract "grpc" says it cannot'
        )
    if not first_send:
        return _unknown("an earlier request of this attempt may have taken effect")
    return AnswerMeaning(outcome=Outcome.REFUSED, why=why)


def _unknown(why: str) -> AnswerMeaning:
    return AnswerMeaning(outcome=Outcome.UNKNOWN, why=why)
