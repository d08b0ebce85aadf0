"""The stages of the generic HTTP adapter: by key, by reference, and lists."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, override

from reconcile.lookups import LOOKUPS
from tests.reconcile.adapters.conformance import (
    ACCOUNT,
    Answer,
    Asked,
    Dialect,
    Prop,
    Shown,
    page_of,
)

WORDS = {"done": "found", "running": "pending", "void": "found_different"}
STATUS = {"there": "done", "pending": "running", "unheard_of": "unconfirmed"}
READING: Mapping[str, Any] = {
    "map": WORDS,
    "amount": "amount",
    "currency": "currency",
    "live": "livemode",
    "delay_class": "none",
}


def as_json(shown: Shown) -> dict[str, Any]:
    return {
        "id": shown.id,
        "reference": shown.marker,
        "key": shown.key,
        "status": STATUS[shown.said],
        "amount": shown.amount,
        "currency": "eur",
        "livemode": shown.live,
    }


def answered(body: Any, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    return Answer(body=json.dumps(body).encode(), status=status, headers=headers or {})


class ByKey(Dialect):
    """``GET /payments/{key}``: one object, or a 404 that says that there is none."""

    name = "http by key"
    lookup = LOOKUPS["http"]
    config = {
        **READING,
        "url": "/payments/{key}",
        "reference": "key",
        "account": "account",
        "absent_when": {"http_status": 404, "body": f"code == 'none' && account == '{ACCOUNT}'"},
    }
    cannot = {
        Prop.PAGES: "an address that names one object has no pages",
        Prop.TWO_OBJECTS: "an address that names one object shows one",
        Prop.OTHERS: "an address that names one object shows nobody else's",
    }

    @override
    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        key = asked.path.rpartition("/")[2]
        found = next((one for one in shown if one.key == key), None)
        if found is None:
            return answered({"code": "none", "account": account}, status=404)
        return answered({**as_json(found), "account": account})


class ByReference(Dialect):
    """``GET /payments?reference=…``: a filtered list, whose next page is an address."""

    name = "http by reference"
    lookup = LOOKUPS["http"]
    config = {
        **READING,
        "url": "/payments?reference={reference}",
        "reference_field": "reference",
        "items": "payments",
        "account": "account",
        "pages": {"by": "link", "at": "next"},
        "absent_when": {"empty": True},
    }
    page_size = 1
    cannot = {Prop.OTHERS: "what is filtered by reference shows nobody else's"}

    @override
    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        reference = asked.params["reference"]
        found = [one for one in shown if one.marker == reference]
        page, after = page_of(found, asked.params.get("after"), self.page_size)
        link = f"/payments?reference={reference}&after={after}" if after else None
        payments = [as_json(one) for one in page]
        return answered({"payments": payments, "next": link, "account": account})


class InList(Dialect):
    """``GET /payments?since=…``: everything of the time in question, page after page."""

    lookup = LOOKUPS["http.list"]

    def __init__(self, by: str) -> None:
        self.by = by
        self.name = f"http list by {by}"
        pages: dict[str, Any] = {
            "cursor": {"by": "cursor", "at": "after", "parameter": "after"},
            "header": {"by": "header"},
            "number": {"by": "number", "parameter": "page"},
        }[by]
        self.config = {
            **READING,
            "url": "/payments?since={since}",
            "items": "payments",
            "reference_field": "reference",
            "account": "account",
            "pages": pages,
        }

    @override
    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        after = asked.params.get("after")
        if self.by == "number":
            after = str((int(asked.params["page"]) - 1) * self.page_size)
        page, following = page_of(shown, after, self.page_size)
        since = asked.params["since"]
        body = {"payments": [as_json(one) for one in page], "account": account}
        if self.by == "cursor":
            body["after"] = following
        link = f'</payments?since={since}&after={following}>; rel="next"'
        named = self.by == "header" and following
        return answered(body, headers={"Link": link} if named else {})


DIALECTS = (ByKey(), ByReference(), InList("cursor"), InList("header"), InList("number"))
