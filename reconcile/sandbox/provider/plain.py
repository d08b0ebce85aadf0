"""A provider without idempotency keys: transfers that can be looked up, letters that cannot.

Bearer token ``plain_<account>``. ``POST /plain/transfers`` executes every request that it gets;
``GET /plain/transfers?reference=...`` lists what carries a reference, at once and whole.
``POST /plain/letters`` has no look-up at all.
"""

import json
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qs

from reconcile.sandbox.faults import Asked, ChosenFault, Fault
from reconcile.sandbox.provider.clock import iso
from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.messages import Answer, Json, Refused, Request
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

PLAIN_TRUTH: Final = "plain"
TOKEN: Final = re.compile(r"^Bearer plain_([a-z0-9]{1,64})$")
TEXT_LENGTH_MAX: Final = 500
AMOUNT_MAX: Final = 99_999_999
METADATA_ENTRIES_MAX: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One authenticated request."""

    account: str
    request: Request
    request_id: str | None
    cause: str


type _Execute = Callable[[World, Batch], Answer]


def describe(request: Request) -> Asked:
    """What the fault plan may know about this request."""
    body = _body_or_empty(request)
    reference = body.get("reference") or _reference_asked(request)
    return Asked(
        operation=_operation(request),
        is_write=request.method == "POST",
        reference=str(reference) if reference else None,
        marker=str(reference) if reference else None,
    )


def answer(world: World, request: Request, fault: ChosenFault, *, cause: str) -> Answer:
    """Answer one request. Blocks for the length of a delay, without holding a lock."""
    request_id = new_id("preq")
    try:
        given = _answer(world, request, fault, request_id, cause)
    except Refused as refusal:
        given = refusal.answer
    return Answer(
        status=given.status, body=given.body, headers={"X-Request-Id": request_id, **given.headers}
    )


def commit_late(world: World, request: Request, batch: Batch) -> None:
    """Apply a request that was answered with a 500 before. Nobody hears about it."""
    execute = _check(_call(request, None, "late_commit"))
    execute(world, batch)


def _answer(
    world: World, request: Request, fault: ChosenFault, request_id: str, cause: str
) -> Answer:
    call = _call(request, request_id, cause)
    if fault.kind is Fault.RATE_LIMIT_429:
        return _problem(429, "rate_limited", "Too many requests. Try again later.")
    execute = _check(call)
    if fault.kind is Fault.DELAY:
        time.sleep(fault.seconds)
    if fault.kind is Fault.REFUSE_402:
        return _problem(402, "insufficient_funds", "The account's balance does not cover this.")
    with world.store.batch() as batch:
        if fault.kind is Fault.ERROR_500_THEN_LATE_COMMIT:
            world.commit_later(batch, seconds=fault.seconds, request=request)
        if fault.kind in {Fault.ERROR_500, Fault.ERROR_500_THEN_LATE_COMMIT}:
            return _problem(500, "internal_error", "Something went wrong on our side.")
        return execute(world, batch)


def _call(request: Request, request_id: str | None, cause: str) -> _Call:
    match = TOKEN.match(request.headers.get("authorization", ""))
    if match is None:
        raise _refusal(401, "unauthorized", "Send Authorization: Bearer plain_<account>.")
    return _Call(account=match[1], request=request, request_id=request_id, cause=cause)


def _check(call: _Call) -> _Execute:
    """Find the endpoint and read its parameters. Raises Refused."""
    match _operation(call.request):
        case "plain.transfers.create":
            return _create_transfer(call)
        case "plain.transfers.list":
            return _list_transfers(call)
        case "plain.letters.create":
            return _create_letter(call)
        case _:
            raise _refusal(404, "not_found", f"No {call.request.method} {call.request.path} here.")


def _operation(request: Request) -> str:
    names = {
        ("POST", "/plain/transfers"): "plain.transfers.create",
        ("GET", "/plain/transfers"): "plain.transfers.list",
        ("POST", "/plain/letters"): "plain.letters.create",
    }
    return names.get((request.method, request.path), "unknown")


def _create_transfer(call: _Call) -> _Execute:
    body = _body(call.request)
    amount = body.get("amount")
    if isinstance(amount, bool) or not isinstance(amount, int) or not 0 < amount <= AMOUNT_MAX:
        raise _refusal(422, "invalid", f"amount must be a whole number from 1 to {AMOUNT_MAX}")
    fields = {
        "amount": amount,
        "currency": _text(body, "currency"),
        "destination": _text(body, "destination"),
        "metadata": _metadata(body),
        "reference": _text(body, "reference"),
    }

    def execute(world: World, batch: Batch) -> Answer:
        transfer = {"id": new_id("trf"), **fields, "status": "settled"}
        return _enter(world, batch, call, "transfer", transfer, status=201)

    return execute


def _create_letter(call: _Call) -> _Execute:
    body = _body(call.request)
    fields = {
        "body": _text(body, "body", required=False),
        "metadata": _metadata(body),
        "reference": _text(body, "reference", required=False),
        "subject": _text(body, "subject"),
        "to": _text(body, "to"),
    }

    def execute(world: World, batch: Batch) -> Answer:
        letter = {"id": new_id("ltr"), **fields, "status": "posted"}
        return _enter(world, batch, call, "letter", letter, status=202)

    return execute


def _list_transfers(call: _Call) -> _Execute:
    reference = _reference_asked(call.request)
    if not reference:
        raise _refusal(422, "invalid", "Ask with ?reference=...")

    def execute(world: World, _batch: Batch) -> Answer:
        rows = world.store.table(_table(call, "transfer")).values()
        found = [row for row in rows if row["reference"] == reference]
        return Answer(status=200, body={"count": len(found), "transfers": found})

    return execute


def _enter(world: World, batch: Batch, call: _Call, kind: str, row: Json, *, status: int) -> Answer:
    at = iso(world.clock.now())
    row = {**row, "created_at": at}
    batch.put(_table(call, kind), row["id"], row)
    effect = {
        "at": at,
        "provider": "plain",
        "scope": call.account,
        "kind": kind,
        "object_id": row["id"],
        "amount": row.get("amount"),
        "currency": row.get("currency"),
        "marker": row["reference"],
        "metadata": row["metadata"],
        "reference": row["reference"],
        "idempotency_key": None,
        "request_id": call.request_id,
        "cause": call.cause,
    }
    batch.effect(PLAIN_TRUTH, effect)
    return Answer(status=status, body=row)


def _table(call: _Call, kind: str) -> str:
    return f"plain/{call.account}/{kind}"


def _reference_asked(request: Request) -> str | None:
    asked = parse_qs(request.query).get("reference")
    return asked[-1] if asked else None


def _body(request: Request) -> Json:
    try:
        body = json.loads(request.body)
    except ValueError:
        raise _refusal(400, "invalid_json", "The body is not JSON.") from None
    if not isinstance(body, dict):
        raise _refusal(400, "invalid_json", "The body is a JSON object.")
    return body


def _body_or_empty(request: Request) -> Json:
    try:
        return _body(request)
    except Refused:
        return {}


def _text(body: Json, name: str, *, required: bool = True) -> str | None:
    value: Any = body.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not 0 < len(value) <= TEXT_LENGTH_MAX:
        raise _refusal(422, "invalid", f"{name} must be 1 to {TEXT_LENGTH_MAX} characters of text")
    return value


def _metadata(body: Json) -> dict[str, str]:
    metadata = body.get("metadata", {})
    if not isinstance(metadata, dict) or len(metadata) > METADATA_ENTRIES_MAX:
        raise _refusal(422, "invalid", f"metadata is an object of {METADATA_ENTRIES_MAX} at most")
    return {name: _text(metadata, name) or "" for name in metadata}


def _problem(status: int, code: str, message: str) -> Answer:
    return Answer(status=status, body={"error": {"code": code, "message": message}})


def _refusal(status: int, code: str, message: str) -> Refused:
    return Refused(_problem(status, code, message), stored=False)
