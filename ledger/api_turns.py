"""The turn, for programs: what was streamed, called, tried, seen and decided, in one answer."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any, Final

from django.http import HttpRequest, HttpResponse
from ninja import Query, Router

import ledger.paths  # noqa: F401 - it names the converter of the address below
from effects.core.vocabulary import TokenScope
from ledger import queries
from ledger.bearer import BearerToken, workspace_of
from ledger.turns import turn as read_turn

MAY_READ: Final = BearerToken(TokenScope.READ, TokenScope.CLAIM)

router = Router()


@router.get("turns/{any:conversation}/{int:index}", auth=MAY_READ, response={200: dict[str, Any]})
def turn(
    request: HttpRequest,
    conversation: str,
    index: int,
    lines_from: Annotated[int, Query(ge=0)] = 0,
) -> HttpResponse:
    """One turn of a conversation: its streams, its calls with `dispatched` (yes, no, cannot_tell),
    and one table of everything in time order. A turn that nobody told of is empty, which proves
    nothing about the world. The conversation is percent-encoded. At most 2,000 lines come in one
    answer: where `lines_total` is more, ask again with `lines_from`. An `orphan` was announced
    whole and no result went back; `goes_back` says what does."""
    found = read_turn(
        workspace_of(request), conversation, index, now=queries.clock(), lines_from=lines_from
    )
    response = HttpResponse(json.dumps(asdict(found), default=str), content_type="application/json")
    response["Cache-Control"] = "no-store"
    return response
