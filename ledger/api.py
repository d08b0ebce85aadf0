"""The door for agents: `/api/v1`. Each endpoint says who asks, reads, does one thing, answers.

What is written goes through `ledger.claiming` and `ledger.append`, what is read comes from
`ledger.queries`, and every refusal is made in `ledger.refusals`. No endpoint opens a transaction:
a claim and a report are one statement and one commit each, in the database.
"""

from __future__ import annotations

import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Final
from uuid import UUID

import ninja.errors
from django.db import connection
from django.http import HttpRequest, HttpResponse
from ninja import NinjaAPI, Query

from effects.core.messages import (
    WAIT_SECONDS_MAX,
    ClaimAnswer,
    ClaimRequest,
    Complete,
    Fail,
    Heartbeat,
    HeartbeatAnswer,
    Sent,
    Settle,
    Unknown,
)
from effects.core.references import as_claim_id, not_found
from effects.core.status import is_news, status_answer
from effects.core.vocabulary import Outcome, TokenScope
from ledger import (
    api_batch,
    api_ingest,
    api_offline,
    api_recover,
    api_turns,
    append,
    claiming,
    queries,
    redacting,
)
from ledger.bearer import BearerToken, bearer_of, workspace_of
from ledger.openapi import ANSWERS, CLAIM_ANSWERS, reads
from ledger.reading import read_claim, read_report
from ledger.refusals import (
    answer_response,
    answered,
    input_invalid,
    on_exception,
    refused,
)
from ledger.waiting import WATCH, Busy

if TYPE_CHECKING:
    from ledger.models import Claim

RETRY_AFTER_BUSY_SECONDS: Final = 5


MAY_CLAIM: Final = BearerToken(TokenScope.CLAIM)
# For what is one statement, which asks about the token too.
MAY_CLAIM_AT_ONCE: Final = BearerToken(TokenScope.CLAIM, by_statement=True)
# Whoever may make a claim may also ask what became of it.
MAY_READ: Final = BearerToken(TokenScope.READ, TokenScope.CLAIM)

api = NinjaAPI(
    title="Counterfoil", version="1", urls_namespace="api-v1", docs_url=None, openapi_url=None
)
api.add_exception_handler(Exception, on_exception)


@api.exception_handler(ninja.errors.ValidationError)
def _on_bad_parameters(
    _request: HttpRequest, error: ninja.errors.ValidationError | type[ninja.errors.ValidationError]
) -> HttpResponse:
    assert isinstance(error, ninja.errors.ValidationError)
    # The first part of a place says "query" or "path", the second what Python calls the argument.
    return refused(
        input_invalid([{"at": str(e["loc"][-1]), "says": str(e["msg"])} for e in error.errors])
    )


@api.post(
    "claims", auth=MAY_CLAIM_AT_ONCE, openapi_extra=reads(ClaimRequest), response=CLAIM_ANSWERS
)
def claim(request: HttpRequest) -> HttpResponse:
    """Ask for the right to run one tool call, before it runs.

    `granted` and `granted_again` permit one send, within `send_within_seconds`, with the `key` and
    the `marker` of the answer. Every other code permits none.
    """
    bearer = bearer_of(request)
    asked = read_claim(request)
    told = claiming.claim(bearer.workspace_id, asked, token=bearer.unasked)
    return answered(redacting.for_agent(bearer.workspace_id, told))


@api.get("claims", auth=MAY_READ, response=ANSWERS)
def claim_with_key(request: HttpRequest, key: str) -> HttpResponse:
    """What became of a claim, asked by any key, also one that an address cannot hold."""
    return _told(queries.claim_by_key(workspace_of(request), key))


@api.post("claims/{claim_id}/sent", auth=MAY_CLAIM, openapi_extra=reads(Sent), response={204: None})
def sent(request: HttpRequest, claim_id: str) -> HttpResponse:
    """Say that the request is about to leave. It dates the send; its absence proves nothing."""
    report = read_report(request, Sent)
    append.sent(workspace_of(request), _id(claim_id), report.fence)
    return HttpResponse(status=HTTPStatus.NO_CONTENT)


@api.post(
    "claims/{claim_id}/heartbeat",
    auth=MAY_CLAIM,
    openapi_extra=reads(Heartbeat),
    response=HeartbeatAnswer,
)
def heartbeat(request: HttpRequest, claim_id: str) -> HttpResponse:
    """Extend the lease of a running attempt. `stop`: the attempt is no longer the one that counts;
    it must not send, and if it has sent it reports what it knows."""
    report = read_report(request, Heartbeat)
    word = append.heartbeat(workspace_of(request), _id(claim_id), report.fence)
    return HttpResponse(word.model_dump_json(), content_type="application/json")


@api.post(
    "claims/{claim_id}/complete",
    auth=MAY_CLAIM_AT_ONCE,
    openapi_extra=reads(Complete),
    response=ANSWERS,
)
def complete(request: HttpRequest, claim_id: str) -> HttpResponse:
    """The effect happened. A late report is kept too: nothing that a provider did is forgotten."""
    return _reported(request, claim_id, Outcome.COMPLETED, read_report(request, Complete))


@api.post(
    "claims/{claim_id}/fail", auth=MAY_CLAIM_AT_ONCE, openapi_extra=reads(Fail), response=ANSWERS
)
def fail(request: HttpRequest, claim_id: str) -> HttpResponse:
    """The effect provably did not happen in this attempt. Without a proof, report `unknown`."""
    report = read_report(request, Fail)
    return _reported(request, claim_id, report.proof, report)


@api.post(
    "claims/{claim_id}/unknown",
    auth=MAY_CLAIM_AT_ONCE,
    openapi_extra=reads(Unknown),
    response=ANSWERS,
)
def unknown(request: HttpRequest, claim_id: str) -> HttpResponse:
    """Nobody can say what became of this attempt. The ledger finds out; nothing is retried."""
    return _reported(request, claim_id, Outcome.UNKNOWN, read_report(request, Unknown))


@api.get("claims/{path:reference}/wait", auth=MAY_READ, response=ANSWERS)
def wait(
    request: HttpRequest,
    reference: str,
    seconds: Annotated[int, Query(ge=0)] = WAIT_SECONDS_MAX,
    version: Annotated[int | None, Query(ge=0)] = None,
) -> HttpResponse:
    """Wait until there is news of a claim, at most `seconds` (60 at most), and tell the claim.

    News are: it is neither in flight nor unknown, a decision took effect, or, where `version` is
    given, the claim has another version. `version` is the number in an earlier answer's `ETag`.
    """
    workspace_id = workspace_of(request)
    until = time.monotonic() + min(seconds, WAIT_SECONDS_MAX)
    found = queries.claim_by_key(workspace_id, reference)
    first = told = queries.status(found, now=(now := queries.clock()))
    while time.monotonic() < until and not _is_news(told, first, found.version, version):
        give_connection_back()
        try:
            WATCH.wait(found.pk, queries.moment(found, now=now), until=until)
        except Busy:
            told = told.model_copy(update={"retry_after_seconds": RETRY_AFTER_BUSY_SECONDS})
            break
        found = queries.claim(workspace_id, found.pk)
        told = queries.status(found, now=(now := queries.clock()))
    told = redacting.for_agent(workspace_id, told)
    return _with_version(answer_response(told), found.version)


@api.get("claims/{path:reference}", auth=MAY_READ, response=ANSWERS)
def claim_status(request: HttpRequest, reference: str) -> HttpResponse:
    """What became of a claim, asked by its id, its marker, the key that was forwarded to the
    provider (with or without its generation), or the key that the caller brought."""
    return _told(queries.claim_by_key(workspace_of(request), reference))


def give_connection_back() -> None:
    """Let go of this thread's database connection, unless a transaction around us is open."""
    if not connection.in_atomic_block:
        connection.close()


def _is_news(told: ClaimAnswer, first: ClaimAnswer, version: int, seen: int | None) -> bool:
    return (seen is not None and version != seen) or is_news(told, first)


def _reported(
    request: HttpRequest, claim_id: str, outcome: Outcome, report: Settle
) -> HttpResponse:
    bearer = bearer_of(request)
    shown, version = append.reported(
        bearer.workspace_id, _id(claim_id), outcome, report, token=bearer.unasked
    )
    told = redacting.for_agent(bearer.workspace_id, status_answer(shown))
    return _with_version(answer_response(told), version)


def _told(found: Claim) -> HttpResponse:
    told = queries.status(found, now=queries.clock())
    told = redacting.for_agent(found.workspace_id, told)
    return _with_version(answer_response(told), found.version)


def _with_version(response: HttpResponse, version: int) -> HttpResponse:
    response["ETag"] = f'"{version}"'
    return response


def _id(text: str) -> UUID:
    claim_id = as_claim_id(text)
    if claim_id is None:
        raise not_found(text)
    return claim_id


api.add_router("", api_batch.router)
api.add_router("", api_offline.router)
api.add_router("", api_ingest.router)
api.add_router("", api_turns.router)
api.add_router("", api_recover.router)
