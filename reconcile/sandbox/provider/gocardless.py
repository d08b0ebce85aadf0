"""GoCardless: a key that made something is answered with 409 and the id of what it made.

Source: https://developer.gocardless.com/api-reference (idempotency keys, cursor pagination, rate
limiting, errors) and GoCardless's own SDKs, which retrieve ``links.conflicting_resource_id`` of a
409 ``idempotent_creation_conflict``. The body is not compared, a failure is not kept, and how long
a key is kept is not published: here for ever. What a second request gets while the first is at work
is not published either: here it waits.

Bearer token ``sandbox_<organisation>`` or ``live_<organisation>``; each organisation has the one
creditor ``CR<ORGANISATION>``, in live mode ``CRLIVE<ORGANISATION>``.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import ClassVar, Final, override

from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.dialects import (
    RETRY_AFTER_SECONDS,
    Call,
    Dialect,
    Execute,
    endpoint,
)
from reconcile.sandbox.provider.messages import Answer, Json, Request
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

API_VERSION: Final = "2015-07-06"
LIMIT_DEFAULT: Final = 50
LIMIT_MAX: Final = 500
METADATA_ENTRIES_MAX: Final = 3
_TOKEN = re.compile(r"Bearer (sandbox|live)_([a-z0-9]{1,40})")
_MODES: Final = {"sandbox": "test", "live": "live"}
_TYPES: Final = {401: "invalid_api_usage", 409: "invalid_state", 422: "validation_failed"}


class GoCardless(Dialect):
    name: ClassVar = "gocardless"
    key_header: ClassVar = "idempotency-key"

    def __init__(self) -> None:
        self.endpoints = (
            endpoint("GET", "/creditors/{id}", "creditors.retrieve", self._retrieve_creditor),
            endpoint("POST", "/payments", "payments.create", self._create_payment),
            endpoint("GET", "/payments", "payments.list", self._list("payments")),
            endpoint("GET", "/payments/{id}", "payments.retrieve", self._retrieve("payments")),
            endpoint("POST", "/refunds", "refunds.create", self._create_refund),
            endpoint("GET", "/refunds", "refunds.list", self._list("refunds")),
            endpoint("GET", "/refunds/{id}", "refunds.retrieve", self._retrieve("refunds")),
        )

    @override
    def scope_of(self, world: World, request: Request) -> str:
        match = _TOKEN.fullmatch(request.headers.get("authorization", ""))
        if match is None:
            raise self.refusal(401, "access_token_not_found", "No access token was found.")
        if request.headers.get("gocardless-version") != API_VERSION:
            raise self.refusal(400, "version_header_missing", "Send GoCardless-Version.")
        return f"{match[2]}/{_MODES[match[1]]}"

    @override
    def problem(self, status: int, code: str, message: str) -> Answer:
        kind = "gocardless" if status >= 500 else _TYPES.get(status, "invalid_api_usage")
        error = {
            "code": status,
            "errors": [{"message": message, "reason": code}],
            "message": message,
            "type": kind,
        }
        return Answer(status=status, body={"error": error})

    @override
    def too_many(self) -> Answer:
        # The header names the instant at which the next minute's allowance begins.
        until = datetime.fromtimestamp(datetime.now(UTC).timestamp() + RETRY_AFTER_SECONDS, UTC)
        refused = self.problem(429, "rate_limit_exceeded", "Rate limit exceeded.")
        reset = {"RateLimit-Reset": format_datetime(until, usegmt=True)}
        return Answer(status=429, body=refused.body, headers=reset)

    @override
    def marker_of(self, request: Request, body: Json) -> str | None:
        (inside,) = body.values() if len(body) == 1 else ({},)
        metadata = inside.get("metadata") if isinstance(inside, dict) else None
        marker = metadata.get("counterfoil") if isinstance(metadata, dict) else None
        return str(marker) if marker else None

    @override
    def known(self, world: World, call: Call) -> Answer | None:
        made = self.rows(world, call, "keys").get(call.key or "")
        if made is None:
            return None
        message = "A resource has already been created with this idempotency key"
        answer = self.problem(409, "idempotent_creation_conflict", message)
        answer.body["error"]["errors"][0]["links"] = {"conflicting_resource_id": made["object_id"]}
        return answer

    @override
    def keep(self, batch: Batch, call: Call, answer: Answer) -> None:
        if answer.status == 201 and call.key:
            (made,) = answer.body.values()
            batch.put(self.table(call, "keys"), call.key, {"object_id": made["id"]})

    # Endpoints

    def _retrieve_creditor(self, call: Call) -> Execute:
        return lambda _world, _batch: Answer(status=200, body={"creditors": self._creditor(call)})

    def _creditor(self, call: Call) -> Json:
        if call.ids[0] != _creditor_id(call):
            raise self.refusal(404, "resource_not_found", "Resource not found")
        return {"id": call.ids[0], "name": call.account}

    def _create_payment(self, call: Call) -> Execute:
        said = self.members(call.body, "payments")
        links = self.members(said, "links")
        fields = {
            "amount": self.minor(said),
            "amount_refunded": 0,
            "currency": self.text(said, "currency"),
            "description": self.text(said, "description", required=False),
            "links": {"creditor": _creditor_id(call), "mandate": self.text(links, "mandate")},
            "metadata": self._metadata(said),
        }
        return self._make(call, "payments", "PM", {**fields, "status": "pending_submission"})

    def _create_refund(self, call: Call) -> Execute:
        said = self.members(call.body, "refunds")
        payment_id = str(self.text(self.members(said, "links"), "payment"))
        amount, metadata = self.minor(said), self._metadata(said)

        def execute(world: World, batch: Batch) -> Answer:
            payment = self.row(world, call, "payments", payment_id)
            if payment["amount_refunded"] + amount > payment["amount"]:
                message = "The refund is larger than what is left of the payment"
                raise self.refusal(422, "total_amount_confirmation_invalid", message)
            refunded = {**payment, "amount_refunded": payment["amount_refunded"] + amount}
            self.put(batch, call, "payments", refunded)
            fields = {
                "amount": amount,
                "currency": payment["currency"],
                "links": {"payment": payment_id, "mandate": payment["links"]["mandate"]},
                "metadata": metadata,
                "status": "created",
            }
            return self._make(call, "refunds", "RF", fields)(world, batch)

        return execute

    def _make(self, call: Call, kind: str, prefix: str, fields: Json) -> Execute:
        def execute(_world: World, batch: Batch) -> Answer:
            if call.declined:
                raise self.refusal(422, "mandate_is_inactive", "The mandate is not active.")
            row = {"id": new_id(prefix).replace("_", "").upper(), "created_at": call.at, **fields}
            self.put(batch, call, kind, row)
            self.effect(
                batch,
                call,
                kind=kind.removesuffix("s"),
                object_id=row["id"],
                amount=row["amount"],
                currency=row["currency"],
                metadata=row["metadata"],
            )
            return Answer(status=201, body={kind: row})

        return execute

    def _retrieve(self, kind: str) -> Callable[[Call], Execute]:
        def check(call: Call) -> Execute:
            return lambda world, _batch: Answer(
                status=200, body={kind: self.row(world, call, kind, call.ids[0])}
            )

        return check

    def _list(self, kind: str) -> Callable[[Call], Execute]:
        def check(call: Call) -> Execute:
            limit = self.whole(call.query, "limit", most=LIMIT_MAX, usual=LIMIT_DEFAULT)
            keep = self._filter(call)

            def execute(world: World, _batch: Batch) -> Answer:
                rows = [row for row in self.rows(world, call, kind).values() if keep(row)][::-1]
                after = call.query.get("after")
                if after is not None:
                    ids = [row["id"] for row in rows]
                    rows = rows[ids.index(after) + 1 :] if after in ids else []
                page, more = rows[:limit], len(rows) > limit
                cursors = {"after": page[-1]["id"] if more else None, "before": after}
                meta = {"cursors": cursors, "limit": limit}
                return Answer(status=200, body={kind: page, "meta": meta})

            return execute

        return check

    def _filter(self, call: Call) -> Callable[[Json], bool]:
        tests: list[Callable[[Json], bool]] = []
        for name, value in call.query.items():
            match name:
                case "created_at[gte]":
                    tests.append(_created(self._instant(value), least=True))
                case "created_at[lte]":
                    tests.append(_created(self._instant(value), least=False))
                case "creditor" | "mandate" | "payment":
                    tests.append(_linked(name, value))
                case "limit" | "after":
                    continue
                case _:
                    raise self.refusal(400, "bad_request", f"Unknown parameter {name}")
        return lambda row: all(test(row) for test in tests)

    def _instant(self, text: str) -> float:
        try:
            return datetime.fromisoformat(text).timestamp()
        except ValueError:
            raise self.refusal(422, "invalid", f"{text} is no date-time") from None

    def _metadata(self, said: Json) -> Json:
        metadata = self.members(said, "metadata")
        if len(metadata) > METADATA_ENTRIES_MAX:
            raise self.refusal(422, "invalid", f"metadata has at most {METADATA_ENTRIES_MAX} keys")
        for name in metadata:
            self.text(metadata, name)
        return metadata


def _creditor_id(call: Call) -> str:
    live = "LIVE" if call.scope.endswith("/live") else ""
    return f"CR{live}{call.account.upper()}"


def _created(bound: float, *, least: bool) -> Callable[[Json], bool]:
    def test(row: Json) -> bool:
        at = datetime.fromisoformat(row["created_at"]).timestamp()
        return at >= bound if least else at <= bound

    return test


def _linked(name: str, value: str) -> Callable[[Json], bool]:
    return lambda row: row["links"].get(name) == value
