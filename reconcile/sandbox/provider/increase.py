"""Increase: a key belongs to one object for good, and every list can be asked for it.

Source: https://increase.com/documentation/idempotency-keys.md (the same request again is answered
with the object and ``Idempotent-Replayed: true``, another one with 409
``idempotency_key_already_used_error`` and ``resource_id``) and
https://increase.com/documentation/api/ach-transfers (``idempotency_key``, ``cursor`` and ``limit``
of the list, the statuses). What a request gets while the first with its key is at work is not
published: here it waits. No adapter of its own asks here, but the one for any provider, by key.

Bearer token ``sandbox_key_<group>`` or ``production_key_<group>``. Our marker stands in
``individual_id``, which is the caller's own.
"""

import re
from typing import ClassVar, Final, override

from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.dialects import Call, Dialect, Execute, endpoint
from reconcile.sandbox.provider.messages import Answer, Json, Request
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

LIMIT_MAX: Final = 100
_TOKEN = re.compile(r"Bearer (sandbox|production)_key_([a-z0-9]{1,40})")


class Increase(Dialect):
    name: ClassVar = "increase"
    key_header: ClassVar = "idempotency-key"

    def __init__(self) -> None:
        self.endpoints = (
            endpoint("POST", "/ach_transfers", "ach_transfers.create", self._create),
            endpoint("GET", "/ach_transfers", "ach_transfers.list", self._list),
            endpoint("GET", "/ach_transfers/{id}", "ach_transfers.retrieve", self._retrieve),
        )

    @override
    def scope_of(self, world: World, request: Request) -> str:
        match = _TOKEN.fullmatch(request.headers.get("authorization", ""))
        if match is None:
            raise self.refusal(401, "invalid_api_key_error", "The API key is invalid.")
        return f"{match[2]}/{'test' if match[1] == 'sandbox' else 'live'}"

    @override
    def problem(self, status: int, code: str, message: str) -> Answer:
        body = {"type": code, "title": message, "detail": None, "status": status}
        return Answer(status=status, body=body)

    @override
    def marker_of(self, request: Request, body: Json) -> str | None:
        marker = body.get("individual_id")
        return str(marker) if marker else None

    @override
    def known(self, world: World, call: Call) -> Answer | None:
        kept = self.rows(world, call, "keys").get(call.key or "")
        if kept is None:
            return None
        if kept["body"] == call.body:
            transfer = self.row(world, call, "ach_transfers", kept["object_id"])
            return Answer(status=200, body=transfer, headers={"Idempotent-Replayed": "true"})
        message = "The idempotency key was used for another request."
        answer = self.problem(409, "idempotency_key_already_used_error", message)
        answer.body["resource_id"] = kept["object_id"]
        return answer

    @override
    def keep(self, batch: Batch, call: Call, answer: Answer) -> None:
        if answer.status == 200 and call.key:
            kept = {"object_id": answer.body["id"], "body": call.body}
            batch.put(self.table(call, "keys"), call.key, kept)

    # Endpoints

    def _create(self, call: Call) -> Execute:
        fields = {
            "account_id": self.text(call.body, "account_id"),
            "amount": self.minor(call.body),
            "currency": "USD",
            "idempotency_key": call.key,
            "individual_id": self.text(call.body, "individual_id", required=False),
            "statement_descriptor": self.text(call.body, "statement_descriptor"),
        }

        def execute(_world: World, batch: Batch) -> Answer:
            if call.declined:
                raise self.refusal(400, "insufficient_funds_error", "The balance is too low.")
            transfer: Json = {
                "id": new_id("ach_transfer"),
                "created_at": call.at,
                "status": "submitted",
                "type": "ach_transfer",
                **fields,
            }
            self.put(batch, call, "ach_transfers", transfer)
            self.effect(
                batch,
                call,
                kind="ach_transfer",
                object_id=transfer["id"],
                amount=transfer["amount"],
                currency="USD",
            )
            return Answer(status=200, body=transfer)

        return execute

    def _retrieve(self, call: Call) -> Execute:
        return lambda world, _batch: Answer(
            status=200, body=self.row(world, call, "ach_transfers", call.ids[0])
        )

    def _list(self, call: Call) -> Execute:
        limit = self.whole(call.query, "limit", most=LIMIT_MAX, usual=LIMIT_MAX)
        begin = self.whole(call.query, "cursor", most=10**9, usual=0)
        key = call.query.get("idempotency_key")

        def execute(world: World, _batch: Batch) -> Answer:
            rows = list(self.rows(world, call, "ach_transfers").values())[::-1]
            found = [row for row in rows if key is None or row["idempotency_key"] == key]
            more = len(found) > begin + limit
            cursor = str(begin + limit) if more else None
            body = {"data": found[begin : begin + limit], "next_cursor": cursor}
            return Answer(status=200, body=body)

        return execute
