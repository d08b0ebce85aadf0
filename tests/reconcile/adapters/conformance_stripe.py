"""The stages of the Stripe adapter: lists of three kinds of objects, as Stripe pages them."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any, override

from reconcile.adapters.stripe import forget_accounts
from reconcile.lookups import LOOKUPS
from tests.reconcile.adapters.conformance import Answer, Asked, Dialect, Prop, Shown, page_of
from tests.reconcile.adapters.conformance_http import answered

_STATUS = {
    "payment_intents": {"there": "succeeded", "pending": "processing"},
    "refunds": {"there": "succeeded", "pending": "pending"},
    "payouts": {"there": "paid", "pending": "in_transit"},
}
_OBJECT = {
    "payment_intents": "payment_intent",
    "refunds": "refund",
    "payouts": "payout",
}


class StripeList(Dialect):
    """``GET /v1/<kind>`` by the time of creation, and ``GET /v1/account``."""

    secret = "rk_test_halden_secret"
    config = {"marker_in_every_request": True}

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.name = f"stripe {kind}"
        self.lookup = LOOKUPS[f"stripe.{kind}"]
        if kind == "refunds":
            self.cannot = {Prop.MODE: "a refund does not say its mode"}

    @override
    def error(self, said: str) -> bytes:
        return json.dumps({"error": {"type": "invalid_request_error", "message": said}}).encode()

    @override
    def forget(self) -> None:
        forget_accounts()

    @override
    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        if asked.path == "/v1/account":
            return answered({"id": account, "object": "account"})
        if asked.path == "/v1/events":
            return answered({"object": "list", "data": [], "has_more": False, "url": "/v1/events"})
        ids = [one.id for one in shown]
        before = asked.params.get("starting_after")
        at = str(ids.index(before) + 1) if before else None
        page, after = page_of(shown, at, self.page_size)
        return answered(
            {
                "object": "list",
                "url": asked.path,
                "data": [self._as_json(one) for one in page],
                "has_more": bool(after),
            }
        )

    def _as_json(self, shown: Shown) -> dict[str, Any]:
        item = {
            "id": shown.id,
            "object": _OBJECT[self.kind],
            "status": _STATUS[self.kind].get(shown.said, "unheard_of"),
            "amount": shown.amount,
            "currency": "eur",
            "created": int(time.time()),
            "metadata": {"counterfoil": shown.marker},
        }
        if self.kind == "payment_intents":
            item["amount_received"] = shown.amount
        return item if self.kind == "refunds" else {**item, "livemode": shown.live}


DIALECTS = tuple(StripeList(kind) for kind in _STATUS)
