"""PayPal: a key that is known gives back the object as it is now, and is forgotten after six hours.

Source: https://developer.paypal.com/reference/guidelines/idempotency (the latest status of the
previous request; of two at once the second may fail), https://developer.paypal.com/api/orders/v2
(keys are kept for 6 hours, ``ORDER_ALREADY_CAPTURED``), 409 ``PREVIOUS_REQUEST_IN_PROGRESS`` of
https://developer.paypal.com/api/payments/v2, and https://developer.paypal.com/api/transaction-search
(up to three hours until a transaction is listed, at most 31 days at once, ``account_number``). A
failure keeps no key, and another body under the same key is not noticed.

Tokens come from ``POST /v1/oauth2/token`` for ``<merchant>:<anything>``; a merchant id has thirteen
characters and begins with L for live. Payers approve at once; an order with a ``payment_source`` is
captured when it is made.
"""

import base64
import binascii
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, ClassVar, Final, override

from reconcile.sandbox.provider.clock import iso
from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.dialects import Call, Dialect, Execute, endpoint
from reconcile.sandbox.provider.messages import Answer, Json, Request
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

KEY_LIFETIME_SECONDS: Final = 6 * 60 * 60
REPORT_LAG_SECONDS: Final = 3 * 60 * 60
TOKEN_SECONDS: Final = 32_400
REPORT_SECONDS_MAX: Final = 31 * 24 * 60 * 60
PAGE_SIZE_USUAL: Final = 100
PAGE_SIZE_MAX: Final = 500
_MERCHANT = re.compile(r"[A-Z0-9]{13}")
_TOKEN = re.compile(r"Bearer A21AA([A-Z0-9]{13})\.(\d+)")
_CODES: Final = {
    400: "INVALID_REQUEST",
    401: "AUTHENTICATION_FAILURE",
    404: "RESOURCE_NOT_FOUND",
    409: "RESOURCE_CONFLICT",
    422: "UNPROCESSABLE_ENTITY",
    429: "RATE_LIMIT_REACHED",
    500: "INTERNAL_SERVER_ERROR",
}


class PayPal(Dialect):
    name: ClassVar = "paypal"
    key_header: ClassVar = "paypal-request-id"

    def __init__(self) -> None:
        self.endpoints = (
            endpoint("POST", "/v1/oauth2/token", "oauth2.token", self._token),
            endpoint("POST", "/v2/checkout/orders", "orders.create", self._create_order),
            endpoint("GET", "/v2/checkout/orders/{id}", "orders.retrieve", self._show("orders")),
            endpoint(
                "POST", "/v2/checkout/orders/{id}/capture", "orders.capture", self._capture_order
            ),
            endpoint(
                "GET", "/v2/payments/captures/{id}", "captures.retrieve", self._show("captures")
            ),
            endpoint("POST", "/v2/payments/captures/{id}/refund", "captures.refund", self._refund),
            endpoint("GET", "/v2/payments/refunds/{id}", "refunds.retrieve", self._show("refunds")),
            endpoint("GET", "/v1/reporting/transactions", "transactions.list", self._report),
        )

    @override
    def scope_of(self, world: World, request: Request) -> str:
        sent = request.headers.get("authorization", "")
        if request.path.endswith("/v1/oauth2/token"):
            merchant = _merchant_of(sent)
        else:
            match = _TOKEN.fullmatch(sent)
            fresh = match and world.clock.now() - int(match[2]) < TOKEN_SECONDS
            merchant = match[1] if match and fresh else ""
        if not merchant:
            raise self.refusal(401, "invalid_token", "Authentication failed.")
        return f"{merchant}/{'live' if merchant.startswith('L') else 'test'}"

    @override
    def problem(self, status: int, code: str, message: str) -> Answer:
        body = {
            "name": _CODES.get(status, "INTERNAL_SERVER_ERROR"),
            "message": message,
            "debug_id": new_id("d").removeprefix("d_")[:13],
            "details": [{"issue": code, "description": message}],
        }
        return Answer(status=status, body=body)

    @override
    def marker_of(self, request: Request, body: Json) -> str | None:
        units = body.get("purchase_units")
        first = units[0] if isinstance(units, list) and units else body
        marker = first.get("custom_id") if isinstance(first, dict) else None
        return str(marker) if marker else None

    @override
    def busy(self, call: Call) -> Answer | None:
        message = "A previous request on this resource is currently in progress."
        return self.problem(409, "PREVIOUS_REQUEST_IN_PROGRESS", message)

    @override
    def known(self, world: World, call: Call) -> Answer | None:
        kept = self.rows(world, call, "keys").get(f"{call.request.path} {call.key}")
        if kept is None or call.now - kept["received_at"] >= KEY_LIFETIME_SECONDS:
            return None
        return Answer(status=200, body=self.row(world, call, kept["kind"], kept["id"]))

    @override
    def keep(self, batch: Batch, call: Call, answer: Answer) -> None:
        if answer.status == 201:
            made = {"id": answer.body["id"], "received_at": call.now}
            kind = "refunds" if call.request.path.endswith("/refund") else "orders"
            name = f"{call.request.path} {call.key}"
            batch.put(self.table(call, "keys"), name, {**made, "kind": kind})

    # Endpoints

    def _token(self, call: Call) -> Execute:
        body = {
            "access_token": f"A21AA{call.account}.{int(call.now)}",
            "token_type": "Bearer",
            "expires_in": TOKEN_SECONDS,
        }
        return lambda _world, _batch: Answer(status=200, body=body)

    def _create_order(self, call: Call) -> Execute:
        intent = self.text(call.body, "intent")
        units = call.body.get("purchase_units")
        if not isinstance(units, list) or len(units) != 1 or not isinstance(units[0], dict):
            raise self.refusal(400, "INVALID_PARAMETER_VALUE", "One purchase unit is needed.")
        unit = {
            "amount": self._money(units[0]),
            "custom_id": self.text(units[0], "custom_id", required=False),
            "invoice_id": self.text(units[0], "invoice_id", required=False),
            "payee": {"merchant_id": call.account},
        }

        def execute(world: World, batch: Batch) -> Answer:
            order = {
                "id": new_id("").removeprefix("_")[:17].upper(),
                "create_time": call.at,
                "intent": intent,
                "purchase_units": [unit],
                "status": "APPROVED",
            }
            if "payment_source" in call.body:
                return self._capture(world, batch, call, order)
            self.put(batch, call, "orders", order)
            return Answer(status=201, body=order)

        return execute

    def _capture_order(self, call: Call) -> Execute:
        def execute(world: World, batch: Batch) -> Answer:
            order = self.row(world, call, "orders", call.ids[0])
            if order["status"] == "COMPLETED":
                raise self.refusal(422, "ORDER_ALREADY_CAPTURED", "Order already captured.")
            return self._capture(world, batch, call, order)

        return execute

    def _capture(self, world: World, batch: Batch, call: Call, order: Json) -> Answer:
        if call.declined:
            raise self.refusal(422, "INSTRUMENT_DECLINED", "The instrument was declined.")
        (unit,) = order["purchase_units"]
        invoice = unit["invoice_id"]
        captures = self.rows(world, call, "captures").values()
        if invoice is not None and any(one["invoice_id"] == invoice for one in captures):
            raise self.refusal(422, "DUPLICATE_INVOICE_ID", "Duplicate Invoice ID detected.")
        capture = {
            "id": new_id("").removeprefix("_")[:17].upper(),
            "amount": unit["amount"],
            "create_time": call.at,
            "custom_id": unit["custom_id"],
            "final_capture": True,
            "invoice_id": invoice,
            "payee": unit["payee"],
            "status": "COMPLETED",
            "supplementary_data": {"related_ids": {"order_id": order["id"]}},
        }
        paid = {**unit, "payments": {"captures": [capture]}}
        order = {**order, "status": "COMPLETED", "purchase_units": [paid]}
        self.put(batch, call, "captures", capture)
        self.put(batch, call, "orders", order)
        self._moved(batch, call, "capture", capture, reference=order["id"])
        return Answer(status=201, body=order)

    def _refund(self, call: Call) -> Execute:
        custom_id = self.text(call.body, "custom_id", required=False)
        asked = self._money(call.body) if "amount" in call.body else None

        def execute(world: World, batch: Batch) -> Answer:
            if call.declined:
                raise self.refusal(422, "REFUND_FAILED_INSUFFICIENT_FUNDS", "Insufficient funds.")
            capture = self.row(world, call, "captures", call.ids[0])
            order_id = capture["supplementary_data"]["related_ids"]["order_id"]
            order = self.row(world, call, "orders", order_id)
            (unit,) = order["purchase_units"]
            before = unit["payments"].get("refunds", [])
            amount = asked or capture["amount"]
            given = sum(Decimal(one["amount"]["value"]) for one in before)
            left = Decimal(capture["amount"]["value"]) - given - Decimal(amount["value"])
            if left < 0:
                raise self.refusal(422, "REFUND_AMOUNT_EXCEEDED", "More than was captured.")
            refund = {
                "id": new_id("").removeprefix("_")[:17].upper(),
                "amount": amount,
                "create_time": call.at,
                "custom_id": custom_id,
                "status": "COMPLETED",
            }
            status = "PARTIALLY_REFUNDED" if left else "REFUNDED"
            capture = {**capture, "status": status}
            payments = {"captures": [capture], "refunds": [*before, refund]}
            order = {**order, "purchase_units": [{**unit, "payments": payments}]}
            self.put(batch, call, "captures", capture)
            self.put(batch, call, "orders", order)
            self.put(batch, call, "refunds", refund)
            self._moved(batch, call, "refund", refund, reference=capture["id"])
            return Answer(status=201, body=refund)

        return execute

    def _moved(self, batch: Batch, call: Call, kind: str, row: Json, *, reference: str) -> None:
        """Write an effect, and the line in which the report will show it."""
        self.effect(
            batch,
            call,
            kind=kind,
            object_id=row["id"],
            amount=row["amount"]["value"],
            currency=row["amount"]["currency_code"],
            marker=row["custom_id"],
            reference=reference,
        )
        sign = "-" if kind == "refund" else ""
        line = {
            "transaction_id": row["id"],
            "transaction_amount": {**row["amount"], "value": f"{sign}{row['amount']['value']}"},
            "transaction_event_code": "T1107" if kind == "refund" else "T0006",
            "transaction_initiation_date": call.at,
            "transaction_status": "S",
            "custom_field": row["custom_id"],
        }
        batch.put(self.table(call, "report"), row["id"], line)

    def _show(self, kind: str) -> Callable[[Call], Execute]:
        def check(call: Call) -> Execute:
            return lambda world, _batch: Answer(
                status=200, body=self.row(world, call, kind, call.ids[0])
            )

        return check

    def _report(self, call: Call) -> Execute:
        start, end = (self._instant(call, name) for name in ("start_date", "end_date"))
        if not 0 <= end - start <= REPORT_SECONDS_MAX:
            raise self.refusal(400, "INVALID_REQUEST", "Date range is greater than 31 days.")
        size = self.whole(call.query, "page_size", most=PAGE_SIZE_MAX, usual=PAGE_SIZE_USUAL)
        page = self.whole(call.query, "page", most=10**6, usual=1)
        refreshed = call.now - REPORT_LAG_SECONDS

        def execute(world: World, _batch: Batch) -> Answer:
            lines = [
                line
                for line in self.rows(world, call, "report").values()
                if start <= _seconds(line["transaction_initiation_date"]) <= min(end, refreshed)
            ]
            shown = lines[(page - 1) * size : page * size]
            body = {
                "transaction_details": [{"transaction_info": line} for line in shown],
                "account_number": call.account,
                "last_refreshed_datetime": iso(refreshed),
                "page": page,
                "total_items": len(lines),
                "total_pages": -(-len(lines) // size),
            }
            return Answer(status=200, body=body)

        return execute

    def _instant(self, call: Call, name: str) -> float:
        try:
            return _seconds(call.query.get(name, ""))
        except ValueError:
            raise self.refusal(400, "INVALID_REQUEST", f"{name} is no date-time.") from None

    def _money(self, body: Json) -> Json:
        money: Any = self.members(body, "amount")
        try:
            value = Decimal(str(money.get("value")))
        except InvalidOperation:
            raise self.refusal(400, "INVALID_STRING_LENGTH", "amount.value is no number") from None
        return {"currency_code": self.text(money, "currency_code"), "value": f"{value:.2f}"}


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _merchant_of(header: str) -> str:
    """The merchant whose client asks for a token, empty where it is nobody's."""
    try:
        pair = base64.b64decode(header.removeprefix("Basic "), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    merchant = pair.partition(":")[0]
    return merchant if _MERCHANT.fullmatch(merchant) else ""
