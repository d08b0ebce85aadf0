"""Checkout.com: a key remembers successes alone, for a day; whatever failed is attempted again.

Source: https://www.checkout.com/docs/developer-resources/api/idempotency (a 2xx answer is kept for
24 hours and given again with the same status and body; after 4xx or 5xx nothing is kept and the
payment is attempted anew), https://support.checkout.com/hc/en-us/articles/24570669653010 (409 for a
request whose key is being worked on) and
https://www.checkout.com/docs/payments/manage-payments/get-a-list-of-payments (``reference``,
``limit``, ``skip``, ``total_count``). Whether another body under the same key is noticed is not
published: here it is not. A request that was answered with a 500 and comes to pass later does so
beside the one that was attempted anew: nothing that is published rules it out.

Bearer token ``sk_sbox_<entity>`` or ``sk_<entity>``. A declined payment is an object and a success.
"""

import re
from typing import ClassVar, Final, override

from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.dialects import Call, Dialect, Execute, endpoint
from reconcile.sandbox.provider.messages import Answer, Json, Request
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

KEY_LIFETIME_SECONDS: Final = 24 * 60 * 60
LIMIT_DEFAULT: Final = 10
LIMIT_MAX: Final = 100
_TOKEN = re.compile(r"Bearer sk_(sbox_)?([a-z0-9]{1,40})")
_APPROVED_CODE: Final = "10000"
_DECLINED_CODE: Final = "20051"


class Checkout(Dialect):
    name: ClassVar = "checkout"
    key_header: ClassVar = "cko-idempotency-key"
    late_yields: ClassVar = False

    def __init__(self) -> None:
        self.endpoints = (
            endpoint("POST", "/payments", "payments.create", self._create),
            endpoint("GET", "/payments", "payments.list", self._list),
            endpoint("GET", "/payments/{id}", "payments.retrieve", self._retrieve),
        )

    @override
    def scope_of(self, world: World, request: Request) -> str:
        match = _TOKEN.fullmatch(request.headers.get("authorization", ""))
        if match is None:
            raise self.refusal(401, "unauthorized", "")
        return f"{match[2]}/{'test' if match[1] else 'live'}"

    @override
    def problem(self, status: int, code: str, message: str) -> Answer:
        if status == 422:
            body: Json = {"error_type": "request_invalid", "error_codes": [code]}
        else:
            body = {"error_type": code, "error_codes": []} if status != 401 else {}
        return Answer(status=status, body={"request_id": new_id("cko"), **body})

    @override
    def marker_of(self, request: Request, body: Json) -> str | None:
        reference = body.get("reference")
        return str(reference) if reference else None

    @override
    def busy(self, call: Call) -> Answer | None:
        return self.problem(409, "conflict", "Another request with this key is processed.")

    @override
    def known(self, world: World, call: Call) -> Answer | None:
        kept = self.rows(world, call, "keys").get(call.key or "")
        if kept is None or call.now - kept["received_at"] >= KEY_LIFETIME_SECONDS:
            return None
        return Answer(status=kept["status"], body=kept["body"])

    @override
    def keep(self, batch: Batch, call: Call, answer: Answer) -> None:
        if call.key and 200 <= answer.status < 300:
            kept = {"status": answer.status, "body": answer.body, "received_at": call.now}
            batch.put(self.table(call, "keys"), call.key, kept)

    # Endpoints

    def _create(self, call: Call) -> Execute:
        said = call.body
        amount = self.minor(said)
        capture = said.get("capture", True) is not False
        fields = {
            "amount": amount,
            "currency": self.text(said, "currency"),
            "metadata": self.members(said, "metadata"),
            "reference": self.text(said, "reference", required=False),
            "source": {"type": self.text(self.members(said, "source"), "type")},
        }

        def execute(_world: World, batch: Batch) -> Answer:
            status = "Declined" if call.declined else "Captured" if capture else "Authorized"
            payment: Json = {
                "id": new_id("pay"),
                "requested_on": call.at,
                **fields,
                "approved": not call.declined,
                "response_code": _DECLINED_CODE if call.declined else _APPROVED_CODE,
                "status": status,
            }
            self.put(batch, call, "payments", payment)
            if not call.declined:
                self.effect(
                    batch,
                    call,
                    kind="payment",
                    object_id=payment["id"],
                    amount=amount,
                    currency=fields["currency"],
                    metadata=fields["metadata"],
                )
            return Answer(status=201, body=payment)

        return execute

    def _retrieve(self, call: Call) -> Execute:
        return lambda world, _batch: Answer(
            status=200, body=self.row(world, call, "payments", call.ids[0])
        )

    def _list(self, call: Call) -> Execute:
        reference = self.text(dict(call.query), "reference")
        limit = self.whole(call.query, "limit", most=LIMIT_MAX, usual=LIMIT_DEFAULT)
        skip = self.whole(call.query, "skip", most=10**6, usual=0)

        def execute(world: World, _batch: Batch) -> Answer:
            rows = self.rows(world, call, "payments").values()
            found = [row for row in rows if row["reference"] == reference][::-1]
            body = {
                "limit": limit,
                "skip": skip,
                "total_count": len(found),
                "data": found[skip : skip + limit],
            }
            return Answer(status=200, body=body)

        return execute
