"""A turn that broke off in the middle, as an agent's own ledger tells of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from effects.core.vocabulary import EffectClass, SightingWord
from effects.models import Tool, Workspace
from ledger import queries
from ledger.models import Claim
from tests.ledger.mirror import event, tell
from tests.support.desk import a_keyed_tool, see

CONVERSATION = "conv_8fe2"
CHARGE_ID = "toolu_01WkQm8VxYb3nT5aRfLpZc7H"
POINTS_ID = "toolu_01WmT2qXsJd9vK4eHgNrBy6P"
ORDER_ID = "toolu_01Wj8cLzUf5oM2iDtQwEkS3A"
EMAIL_ID = "toolu_01WnR4hGpCv7xB1yJmZuTe9F"


def a_cut_turn(shop: Workspace, index: int = 7, *, ago: timedelta = timedelta(hours=2)) -> Tool:
    """Turn `index` of `CONVERSATION`, begun `ago`: a read that came back, a charge whose answer was
    lost, points that were claimed and perhaps never sent, and a mail that was cut off. Then the
    same turn once more, with the charge under another id. Returns the tool that charges."""
    charge = a_keyed_tool(shop)
    Tool.objects.create(workspace=shop, name="get_order", effect_class=EffectClass.READ)
    Tool.objects.create(workspace=shop, name="add_points", effect_class=EffectClass.UNKEYED_WRITE)
    start = queries.clock() - ago
    tell(shop.pk, *_charge(start, index), *_points(start, index))
    tell(shop.pk, _response(start, index), streams=True)
    claim = Claim.objects.get(workspace=shop, call_id=CHARGE_ID)
    see(charge, claim.pk, SightingWord.ABSENT, data={"strength": "weak"})
    return charge


def _at(start: datetime, seconds: float) -> str:
    return (start + timedelta(seconds=seconds)).isoformat()


def _charge(start: datetime, index: int) -> list[dict[str, Any]]:
    place = {"conversation": CONVERSATION, "turn_index": index, "position": 1}
    named = {"claim": "charge", "attempt": "a1"}
    return [
        event(
            "c-made",
            "claim.made",
            time=_at(start, 4.1),
            claim="charge",
            tool="charge_card",
            effect_class="keyed_write",
            arguments='{"amount": 14900, "currency": "eur", "customer": "cus_Ab12"}',
            call_id=CHARGE_ID,
            key="order-8841-charge",
            **place,
        ),
        event("c-started", "attempt.started", time=_at(start, 4.15), **named),
        event("c-sent", "attempt.sent", time=_at(start, 4.2), **named),
        event("c-lost", "attempt.unknown", time=_at(start, 34.2), error="ReadTimeout", **named),
    ]


def _points(start: datetime, index: int) -> list[dict[str, Any]]:
    made = event(
        "p-made",
        "claim.made",
        time=_at(start, 5.1),
        claim="points",
        tool="add_points",
        effect_class="unkeyed_write",
        arguments='{"customer": "cus_Ab12", "points": 149}',
        conversation=CONVERSATION,
        turn_index=index,
        position=2,
        call_id=POINTS_ID,
    )
    named = {"claim": "points", "attempt": "b1"}
    return [
        made,
        event("p-started", "attempt.started", time=_at(start, 5.15), **named),
        event("p-lost", "attempt.unknown", time=_at(start, 6.4), error="worker died", **named),
    ]


def _response(start: datetime, index: int) -> dict[str, Any]:
    calls = [
        _call(0, "get_order", ORDER_ID, '{"order": "8841"}', _at(start, 1.7)),
        _call(1, "charge_card", CHARGE_ID, '{"amount": 14900}', _at(start, 4.0)),
        _call(2, "add_points", POINTS_ID, '{"points": 149}', _at(start, 5.0)),
        _call(3, "send_email", EMAIL_ID, '{"to": "lena@ex', None),
    ]
    return event(
        f"s{index}-record",
        "stream.recorded",
        time=_at(start, 6.2),
        stream=f"resp_{index}a",
        conversation=CONVERSATION,
        turn_index=index,
        response_id="msg_01Xy",
        model="haven-3-large",
        opened_at=_at(start, 0),
        closed_at=_at(start, 6.2),
        terminal="cut",
        error="connection reset",
        cursor=31,
        calls=calls,
    )


def a_retry(shop: Workspace, index: int = 7, *, ago: timedelta = timedelta(hours=1)) -> None:
    """The same turn asked again: the charge under another id, the points gone, a mail added."""
    start = queries.clock() - ago
    calls = [
        _call(0, "charge_card", f"{CHARGE_ID}x", '{"amount": 14900}', _at(start, 2.0)),
        _call(1, "send_email", EMAIL_ID, '{"to": "lena@example.com"}', _at(start, 3.0)),
    ]
    again = event(
        f"s{index}-again",
        "stream.recorded",
        time=_at(start, 3.5),
        stream=f"resp_{index}b",
        conversation=CONVERSATION,
        turn_index=index,
        model="haven-3-large",
        opened_at=_at(start, 0),
        closed_at=_at(start, 3.5),
        terminal="error_event",
        error="overloaded_error",
        calls=calls,
    )
    tell(shop.pk, again, streams=True)


def _call(
    position: int, tool: str, call_id: str, arguments: str, ended_at: str | None
) -> dict[str, Any]:
    said: dict[str, Any] = {
        "position": position,
        "tool": tool,
        "call_id": call_id,
        "arguments": arguments,
        "complete": ended_at is not None,
    }
    return said if ended_at is None else {**said, "ended_at": ended_at}
