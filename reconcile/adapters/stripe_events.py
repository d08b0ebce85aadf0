"""What one of Stripe's events says, read out of its bytes. Pure.

An event is a snapshot: it holds the object as it was when the event was made, and its ``created``
has seconds only. Events come in any order and more than once
(https://docs.stripe.com/webhooks#event-ordering), so nothing here depends on when they arrive.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

THIN: Final = "v2.core.event"


class NotAnEvent(ValueError):
    """The bytes are no event that can be read here; the message says what they are instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StripeEvent:
    """One event. `account` is empty for the endpoint's own account, `key` where the event was not
    caused by a request with one."""

    id: str
    type: str
    object: Mapping[str, Any]
    livemode: bool
    account: str
    key: str
    said_at: datetime | None

    @property
    def noun(self) -> str:
        """Stripe's own word for the kind of object: "payment_intent"."""
        return str(self.object.get("object") or "")

    @property
    def object_id(self) -> str:
        return str(self.object.get("id") or "")

    @property
    def metadata(self) -> Mapping[str, Any]:
        metadata = self.object.get("metadata")
        return metadata if isinstance(metadata, dict) else {}


def read_event(body: bytes) -> StripeEvent:
    """The event in these bytes. Raises `NotAnEvent`."""
    try:
        raw = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise NotAnEvent(f"The body is not JSON: {error}.") from None
    if not isinstance(raw, dict):
        raise NotAnEvent("The body is JSON, but no object.")
    if raw.get("object") == THIN:
        raise NotAnEvent(
            "It is a thin event, which does not hold the object. Have snapshot events sent to this "
            "address."
        )
    item = raw.get("data", {}).get("object") if isinstance(raw.get("data"), dict) else None
    if raw.get("object") != "event" or not isinstance(item, dict) or not _is_text(raw.get("id")):
        raise NotAnEvent("The body is JSON, but no event of Stripe's: it holds no data.object.")
    request = raw.get("request")
    return StripeEvent(
        id=raw["id"],
        type=str(raw.get("type") or ""),
        object=item,
        livemode=raw.get("livemode") is True,
        account=str(raw.get("account") or ""),
        key=str(request.get("idempotency_key") or "") if isinstance(request, dict) else "",
        said_at=_instant(raw.get("created")),
    )


def _is_text(value: object) -> bool:
    return isinstance(value, str) and value != ""


def _instant(seconds: object) -> datetime | None:
    if isinstance(seconds, bool) or not isinstance(seconds, int) or not 0 <= seconds < 10**11:
        return None
    return datetime.fromtimestamp(seconds, UTC)
