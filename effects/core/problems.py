"""What can go wrong between an agent and the ledger: a stable code, an HTTP status, a sentence.

The API raises these and writes them as problem details (RFC 9457, `effects.core.messages.Problem`);
the client reads those back into the same exceptions. Codes are for machines and never change; a
sentence says what happened, to what, and what to do.

A claim that is not granted is no problem of this kind: its answer travels as a `ClaimAnswer`.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from effects.core.canonical import ARGUMENTS_BYTES_MAX, Refused
from effects.core.messages import Problem

__all__ = [
    "ArgumentsRefused",
    "BadRequest",
    "ClaimNotFound",
    "LedgerBehind",
    "LedgerProblem",
    "LedgerUnavailable",
    "LimitExceeded",
    "NoIdentity",
    "NotOffered",
    "ScopeMissing",
    "Stale",
    "StaleFence",
    "TokenRefused",
    "problem_from_message",
    "problem_of_refusal",
]


class LedgerProblem(Exception):
    """The ledger could not do what it was asked. Read the detail."""

    code: ClassVar[str] = "problem"
    status: ClassVar[int] = 500

    def __init__(self, detail: str | None = None, **facts: Any) -> None:
        """`facts` are further members of the problem document, JSON values by name."""
        self.detail = detail or self.sentence()
        self.facts = facts
        super().__init__(self.detail)

    @classmethod
    def sentence(cls) -> str:
        """What happened and what to do, when nothing more exact is known."""
        return " ".join((cls.__doc__ or "").split())

    def to_message(self) -> Problem:
        """The problem document: `title` is the kind, `detail` this very case."""
        return Problem(
            title=type(self).sentence(),
            status=self.status,
            detail=self.detail,
            code=self.code,
            **self.facts,
        )


class LedgerUnavailable(LedgerProblem):
    """The ledger cannot be asked now. Nothing was granted, so nothing may be sent; ask later."""

    code, status = "ledger_unavailable", 503


class LedgerBehind(LedgerUnavailable):
    """The ledger may have forgotten claims (it was restored to an earlier time), so it grants
    nothing until a person has looked at it. Nothing may be sent; ask later."""

    code = "ledger_behind"


class BadRequest(LedgerProblem):
    """The request is not well formed. Nothing was granted; correct the request."""

    code, status = "bad_request", 400


class NoIdentity(BadRequest):
    """The request names neither a conversation with its turn nor a key of the caller's own, so a
    repeat could not be recognised. Send `conversation` and `turn_index`, or `caller_key`."""

    code = "no_identity"


class ArgumentsRefused(BadRequest):
    """The arguments cannot be compared safely with another request's. Correct them: `refusal` is
    the stable word for what is wrong, `at` the offset in characters where it is known."""

    code, status = "arguments_refused", 422

    def __init__(
        self, detail: str | None = None, *, refusal: str = "", at: int | None = None, **facts: Any
    ) -> None:
        super().__init__(detail, refusal=refusal, at=at, **facts)


class LimitExceeded(BadRequest):
    """The request is larger than a limit allows. `limit` names it, `value` is how much it allows;
    send less."""

    code, status = "limit_exceeded", 413

    def __init__(
        self, detail: str | None = None, *, limit: str, value: int | None = None, **facts: Any
    ) -> None:
        if detail is None:
            much = "" if value is None else f" ({value})"
            detail = f"The request exceeds the limit {limit}{much}. Send less."
        super().__init__(detail, limit=limit, value=value, **facts)


class ClaimNotFound(LedgerProblem):
    """No claim with this id or key is in this workspace. That proves nothing about the world: ask
    with the id or key that a claim's answer gave."""

    code, status = "claim_not_found", 404


class StaleFence(LedgerProblem):
    """This claim has no attempt with this fence. Report with the fence that the grant gave."""

    code, status = "stale_fence", 409


class Stale(LedgerProblem):
    """The claim has changed since it was shown. Read it again, then decide."""

    code, status = "stale", 409


class NotOffered(LedgerProblem):
    """This action is not offered for this claim now. The detail says why."""

    code, status = "not_offered", 409


class TokenRefused(LedgerProblem):
    """The bearer token is missing, unknown or revoked. Nothing was granted; use a valid token."""

    code, status = "token_refused", 401


class ScopeMissing(LedgerProblem):
    """The token is valid but may not do this. Nothing was granted; use a token with the scope that
    the detail names."""

    code, status = "scope_missing", 403


KINDS: Final[tuple[type[LedgerProblem], ...]] = (
    LedgerUnavailable,
    LedgerBehind,
    BadRequest,
    NoIdentity,
    ArgumentsRefused,
    LimitExceeded,
    ClaimNotFound,
    StaleFence,
    Stale,
    NotOffered,
    TokenRefused,
    ScopeMissing,
)

_BY_CODE: Final = {kind.code: kind for kind in KINDS}


def problem_from_message(message: Problem) -> LedgerProblem:
    """The exception that a problem document stands for.

    An unknown code becomes the most general kind of its status, so that an older client still
    knows whether its request or the ledger is at fault.
    """
    facts = dict(message.model_extra or {})
    kind = _BY_CODE.get(message.code)
    if kind is LimitExceeded:
        facts.setdefault("limit", "unnamed")
    if kind is None:
        kind = _kind_of(message.status)
        facts["unknown_code"] = message.code
    return kind(message.detail, **facts)


def problem_of_refusal(refusal: Refused) -> LedgerProblem:
    """What an agent is told where its call cannot be compared."""
    code = str(refusal.code)
    if code == "no_identity":
        return NoIdentity(str(refusal))
    if code == "too_long":
        return LimitExceeded(str(refusal), limit="ARGUMENTS_BYTES_MAX", value=ARGUMENTS_BYTES_MAX)
    if code.startswith("key_"):
        return BadRequest(str(refusal), refusal=code, at=refusal.at)
    return ArgumentsRefused(str(refusal), refusal=code, at=refusal.at)


def _kind_of(status: int) -> type[LedgerProblem]:
    if status == TokenRefused.status:
        return TokenRefused
    if status == ScopeMissing.status:
        return ScopeMissing
    if status in {408, 429}:  # A gateway's word for "not now"; the request itself may be right.
        return LedgerUnavailable
    if 400 <= status < 500:
        return BadRequest
    return LedgerUnavailable
