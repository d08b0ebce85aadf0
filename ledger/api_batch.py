"""Several claims at once: `POST /api/v1/claims:batch`, for the parallel calls of one turn."""

from __future__ import annotations

import json
from typing import Any, Final

import pydantic
from django.http import HttpRequest, HttpResponse
from ninja import Router

from effects.core.canonical import Refused
from effects.core.claim_rows import check_batch
from effects.core.for_model import for_model
from effects.core.messages import (
    BatchAnswer,
    BatchItem,
    ClaimAnswer,
    ClaimBatch,
    ClaimRequest,
)
from effects.core.vocabulary import TokenScope
from ledger import claiming, redacting
from ledger.bearer import BearerToken, workspace_of
from ledger.openapi import reads
from ledger.reading import check_claim, read_batch
from ledger.refusals import InputInvalid, problem_of

MAY_CLAIM: Final = BearerToken(TokenScope.CLAIM)

router = Router()


@router.post(
    "claims:batch", auth=MAY_CLAIM, openapi_extra=reads(ClaimBatch), response={200: BatchAnswer}
)
def claim_batch(request: HttpRequest) -> HttpResponse:
    """Ask for the parallel calls of one turn at once, in one commit.

    Each is answered as if it had been asked alone, after those before it: with an `answer`, whose
    `code` says whether it may be sent, or with a `problem`, and then nothing of it was recorded.
    One that cannot be read never refuses the others.
    """
    items = read_batch(request)
    check_batch(len(items))
    read = [_read(item) for item in items]
    asked = [claim for claim in read if isinstance(claim, ClaimRequest)]
    workspace_id = workspace_of(request)
    told = iter(
        redacting.for_agent(workspace_id, one) if isinstance(one, ClaimAnswer) else one
        for one in claiming.claim_batch(workspace_id, asked)
    )
    answers = [_item(next(told) if isinstance(claim, ClaimRequest) else claim) for claim in read]
    body = BatchAnswer(answers=tuple(answers)).model_dump_json(exclude_none=True)
    response = HttpResponse(body, content_type="application/json")
    response["Cache-Control"] = "no-store"
    return response


def _read(item: Any) -> ClaimRequest | Exception:
    try:
        return check_claim(ClaimRequest.model_validate_json(json.dumps(item)))
    except (pydantic.ValidationError, InputInvalid) as error:
        return error


def _item(told: ClaimAnswer | Refused | Exception) -> BatchItem:
    if isinstance(told, ClaimAnswer):
        return BatchItem(answer=told.model_copy(update={"for_model": for_model(told)}))
    return BatchItem(problem=problem_of(told).to_message())
