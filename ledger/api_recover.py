"""The recovery decision, for agents that are not written in Python: `POST /api/v1/recover`."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse
from ninja import Router

from effects.core.recovery import recover as decide
from effects.core.recovery_messages import RecoveryDecision, RecoveryRequest
from effects.core.vocabulary import TokenScope
from ledger import queries
from ledger.bearer import BearerToken
from ledger.openapi import reads
from ledger.reading import read_recovery

MAY_READ: Final = BearerToken(TokenScope.READ, TokenScope.CLAIM)

router = Router()


@router.post(
    "recover", auth=MAY_READ, openapi_extra=reads(RecoveryRequest), response=RecoveryDecision
)
def recover(request: HttpRequest) -> HttpResponse:
    """Ask what may be done about a turn that broke off: one step, its mechanism, its reason, and
    the observations it rests on.

    The decision is made from this request alone, by the database's clock, and nothing is recorded.
    A call whose claim the ledger holds is looked up there first (`GET claims/{reference}`).
    """
    asked = read_recovery(request)
    decision = decide(asked.record, asked.failure, asked.contract, queries.clock())
    response = HttpResponse(
        decision.model_dump_json(exclude_none=True), content_type="application/json"
    )
    response["Cache-Control"] = "no-store"
    return response
