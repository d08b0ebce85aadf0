"""The door for spans: `POST /v1/traces`, as every OpenTelemetry exporter knows it.

An agent with OpenTelemetry and nothing else shows up here: the spans of its tools become attempts
that were observed from outside. Spans of anything else are taken and not kept. A span that did not
come proves nothing, and nothing is made of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from effects.core.problems import LedgerProblem, TokenRefused
from effects.core.vocabulary import ItemState, TokenScope
from ledger import ingest, otlp_http
from ledger.auth import Bearer
from ledger.bearer import BearerToken
from ledger.ingest_framing import INGEST_BODY_BYTES_MAX
from ledger.ingest_json import digest
from ledger.ingest_reading import TRACES, Item, read_item
from ledger.otlp_http import Refused
from ledger.otlp_span import SPAN_TYPE, BadSpan, Span, Undecodable, item_of, source_of
from ledger.refusals import problem_of

MAY_INGEST: Final = BearerToken(TokenScope.INGEST)
ANSWER_SECONDS_MAX: Final = 6
"""After so long nothing more is applied, so that the exporter is answered before it gives up: what
is kept by then is applied by the worker's next ticks, or when it is sent again."""
REASONS_SHOWN_MAX: Final = 10


@csrf_exempt
def traces(request: HttpRequest) -> HttpResponse:
    """Takes one request of an exporter. Every answer is one of OTLP's own messages."""
    try:
        return _taken(request)
    except Refused as refused:
        return otlp_http.refusal(request, refused)
    except Exception as error:  # noqa: BLE001 - whatever went wrong, the exporter reads a Status
        return otlp_http.refusal(request, _refused(problem_of(error)))


def _taken(request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "Spans are sent with POST.", Allow="POST")
    bearer = MAY_INGEST(request)
    raw = otlp_http.read_body(request)
    try:
        found = otlp_http.spans_of_tools(request, raw)
    except Undecodable as fault:
        raise Refused(HTTPStatus.BAD_REQUEST, _kept_unread(bearer, raw, fault)) from None
    taken = take(bearer.workspace_id, bearer.token_id, found)
    return otlp_http.accepted(request, taken.rejected, taken.says)


def _refused(problem: LedgerProblem) -> Refused:
    """A problem of the API as OTLP answers it."""
    headers = {}
    if "retry_after_seconds" in problem.facts:
        headers["Retry_After"] = str(problem.facts["retry_after_seconds"])
    if isinstance(problem, TokenRefused):
        headers["WWW_Authenticate"] = 'Bearer realm="counterfoil"'
    says = problem.detail
    if problem.status == HTTPStatus.SERVICE_UNAVAILABLE:
        says = "The ledger cannot be written now. Send the same spans again; each counts once."
    elif problem.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        says = "The ledger met a fault of its own. What was kept of the spans counts once."
    return Refused(problem.status, says, **headers)


def _kept_unread(bearer: Bearer, raw: bytes, fault: Undecodable) -> str:
    """A body that cannot be taken apart is kept whole, since its exporter sends it only once."""
    says = f"The body cannot be decoded: {fault}."
    if len(raw) > INGEST_BODY_BYTES_MAX:
        return f"{says} It is longer than INGEST_BODY_BYTES_MAX, so it was not kept either."
    item = ingest.keep_unread(bearer.workspace_id, bearer.token_id, TRACES, raw, says)
    return f"{says} It is kept whole as item {item}; no span of it was applied."


# Taking spans


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """How many spans were not taken, and why; or, with none, what their sender should know."""

    rejected: int
    says: str


def take(workspace_id: int, token_id: int | None, spans: Iterable[Span | BadSpan]) -> Taken:
    """Keeps spans of tools and applies them, each by itself.

    Raises Django's OperationalError where the database is lost: the same spans sent again find out.
    """
    until = time.monotonic() + ANSWER_SECONDS_MAX
    kept = ingest.keep(workspace_id, token_id, TRACES, map(_item, spans))
    return _answer(kept, _apply(kept, until=until))


def _item(span: Span | BadSpan) -> Item:
    if isinstance(span, Span):
        return read_item(item_of(span), TRACES)
    return Item(
        raw=span.raw,
        source=source_of(span.trace_id),
        event_id=span.span_id,
        type=SPAN_TYPE,
        digest=digest("raw", span.raw.hex()),
        reason=span.fault.code,
        says=span.fault.says,
        at=span.fault.at,
    )


def _apply(kept: Iterable[ingest.Kept], *, until: float) -> int:
    """Applies what is new, or was kept and not applied; answers how many failed."""
    todo = [one for one in kept if one.word in {"new", "again"} and one.was in ingest.OPEN]
    failed = 0
    for one in todo:
        if time.monotonic() > until:
            break
        failed += ingest.apply(one.id) is ItemState.FAILED
    return failed


def _answer(kept: Iterable[ingest.Kept], failed: int) -> Taken:
    reasons: dict[str, list[str]] = {}
    for one in kept:
        if one.word in {"conflict", "unreadable"}:
            says = one.item.says or "The span came before with other content, which stands."
            reasons.setdefault(says, []).append(one.item.event_id or "without an id")
    rejected = sum(map(len, reasons.values()))
    parts = [
        f"{says} ({len(ids)}, the first is {ids[0]})"
        for says, ids in list(reasons.items())[:REASONS_SHOWN_MAX]
    ]
    if len(reasons) > REASONS_SHOWN_MAX:
        parts.append(f"And {len(reasons) - REASONS_SHOWN_MAX} other reasons.")
    if failed:
        parts.append(f"Applying {failed} failed; they are kept and are tried again.")
    return Taken(rejected=rejected, says=" ".join(parts))
