"""Reading what an agent sends; `effects.core.storable` says what of it can be stored."""

from __future__ import annotations

from typing import Any, Final

from django.http import HttpRequest

from effects.core.messages import ClaimBatch, ClaimRequest, Message, OfflineCall
from effects.core.problems import LimitExceeded
from effects.core.recovery_messages import RecoveryRequest
from effects.core.storable import fit_report, unstorable_field
from ledger.refusals import InputInvalid, LengthRequired, MediaTypeUnsupported, input_invalid

CLAIM_BODY_BYTES_MAX: Final = 1024 * 1024
"""Longest claim request. The longest arguments, written with an escape for every character that
allows one, fit in."""
BATCH_BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longest batch of claim requests."""
REPORT_BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Longest report. The longest result fits in, escaped."""
OFFLINE_BODY_BYTES_MAX: Final = CLAIM_BODY_BYTES_MAX + REPORT_BODY_BYTES_MAX
"""Longest call that was sent while the ledger was away: a claim and a report in one."""
RECOVERY_BODY_BYTES_MAX: Final = 1024 * 1024
"""Longest question about a turn. As many calls as a turn may have fit in, with usual names."""


def read_claim(request: HttpRequest) -> ClaimRequest:
    """The claim request in the body.

    Raises `MediaTypeUnsupported`, `LengthRequired`, `LimitExceeded` (``CLAIM_BODY_BYTES_MAX``),
    `InputInvalid`, and pydantic's ValidationError, which is answered as `InputInvalid`.
    """
    body = _body(request, limit="CLAIM_BODY_BYTES_MAX", bytes_max=CLAIM_BODY_BYTES_MAX)
    return check_claim(ClaimRequest.model_validate_json(body))


def read_batch(request: HttpRequest) -> tuple[Any, ...]:
    """The claim requests in the body, not yet looked at. Raises as `read_claim` does, with
    ``BATCH_BODY_BYTES_MAX``."""
    body = _body(request, limit="BATCH_BODY_BYTES_MAX", bytes_max=BATCH_BODY_BYTES_MAX)
    return ClaimBatch.model_validate_json(body).claims


def read_recovery(request: HttpRequest) -> RecoveryRequest:
    """The question in the body about a turn that broke off. Raises as `read_claim` does, with
    ``RECOVERY_BODY_BYTES_MAX``."""
    body = _body(request, limit="RECOVERY_BODY_BYTES_MAX", bytes_max=RECOVERY_BODY_BYTES_MAX)
    return RecoveryRequest.model_validate_json(body)


def read_offline(request: HttpRequest) -> OfflineCall:
    """The call in the body that was sent while the ledger was away. Raises as `read_claim` does,
    with ``OFFLINE_BODY_BYTES_MAX``."""
    body = _body(request, limit="OFFLINE_BODY_BYTES_MAX", bytes_max=OFFLINE_BODY_BYTES_MAX)
    return OfflineCall.model_validate_json(body)


def check_claim(claim: ClaimRequest) -> ClaimRequest:
    """The claim, if everything in it can be stored. Raises `InputInvalid`."""
    field = unstorable_field(claim)
    if field is not None:
        says = "it holds U+0000, which the ledger cannot store"
        raise input_invalid([{"at": field, "says": says}])
    return claim


def read_report[M: Message](request: HttpRequest, model: type[M]) -> M:
    """The report in the body, fit to be stored. Raises as `read_claim` does."""
    body = _body(request, limit="REPORT_BODY_BYTES_MAX", bytes_max=REPORT_BODY_BYTES_MAX)
    return fit_report(model.model_validate_json(body))


def _body(request: HttpRequest, *, limit: str, bytes_max: int) -> bytes:
    if request.content_type != "application/json":
        raise MediaTypeUnsupported
    length = request.headers.get("Content-Length", "")
    if not length.isascii() or not length.isdecimal():
        raise LengthRequired
    if int(length) > bytes_max:
        raise LimitExceeded(
            f"The body has {int(length)} bytes; the limit {limit} is {bytes_max}. Send less.",
            limit=limit,
            value=bytes_max,
        )
    # Not `request.body`: its limit is Django's own, which an operator may have set lower.
    body = request.read(bytes_max + 1)
    if len(body) != int(length):
        raise InputInvalid(
            f"The body ended after {len(body)} of {int(length)} bytes. Send it again."
        )
    return body
