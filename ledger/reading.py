"""Reading what an agent sends: strictly for a claim, gratefully for a report.

A claim request is judged before anything has run, so a bad one is refused and costs one correction.
A report speaks of something that has already happened: as much of it as can be kept is kept.
"""

from __future__ import annotations

import json
from typing import Any, Final

from django.http import HttpRequest

from effects.core.messages import RESULT_BYTES_MAX, ClaimBatch, ClaimRequest, Complete, Message
from effects.core.problems import LimitExceeded
from ledger.refusals import InputInvalid, LengthRequired, MediaTypeUnsupported, input_invalid

CLAIM_BODY_BYTES_MAX: Final = 1024 * 1024
"""Longest claim request. The longest arguments, written with an escape for every character that
allows one, fit in."""
BATCH_BODY_BYTES_MAX: Final = 8 * 1024 * 1024
"""Longest batch of claim requests."""
REPORT_BODY_BYTES_MAX: Final = 4 * 1024 * 1024
"""Longest report. The longest result fits in, escaped."""

RESULT_DEPTH_MAX: Final = 64
"""Deepest object or array in a result: what every writer and reader on its way can follow."""

NUL_SHOWN: Final = "\N{SYMBOL FOR NULL}"
"""PostgreSQL stores no U+0000. In a report it is replaced by this character that shows it."""


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


def check_claim(claim: ClaimRequest) -> ClaimRequest:
    """The claim, if everything in it can be stored. Raises `InputInvalid`."""
    # The identities' own fields are checked, with better words, where the identities are made.
    if claim.worker is not None and "\x00" in claim.worker:
        says = "it holds U+0000, which the ledger cannot store"
        raise input_invalid([{"at": "worker", "says": says}])
    return claim


def read_report[M: Message](request: HttpRequest, model: type[M]) -> M:
    """The report in the body, fit to be stored. Raises as `read_claim` does.

    A result that is too long, or not JSON, does not cost the report: the effect happened, and that
    is what counts. The result is then not stored, and the answer says so.
    """
    body = _body(request, limit="REPORT_BODY_BYTES_MAX", bytes_max=REPORT_BODY_BYTES_MAX)
    report = model.model_validate_json(body)
    changes: dict[str, Any] = {
        name: text.replace("\x00", NUL_SHOWN)
        for name, text in report
        if isinstance(text, str) and "\x00" in text
    }
    if isinstance(report, Complete) and not storable_result(report.result):
        changes |= {"result": None, "result_stored": False}
    return report.model_copy(update=changes) if changes else report


def storable_result(result: str | None) -> bool:
    if result is None:
        return True
    # Four bytes is the most that one character needs, so most texts need no encoding to be judged.
    if len(result) * 4 > RESULT_BYTES_MAX and len(result.encode()) > RESULT_BYTES_MAX:
        return False
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return False
    brackets = result.count("[") + result.count("{")
    return brackets <= RESULT_DEPTH_MAX or not _deeper_than(value, RESULT_DEPTH_MAX)


def _deeper_than(value: Any, levels: int) -> bool:
    if isinstance(value, dict):
        value = list(value.values())
    if not isinstance(value, list):
        return False
    return levels == 0 or any(_deeper_than(item, levels - 1) for item in value)


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
