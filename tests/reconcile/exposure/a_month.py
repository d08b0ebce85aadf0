"""A month of sums as the rolling of days would have kept them, the same every time.

The figures of charge_card are those of the chapter that the arithmetic comes from: a tool of 820 ms
and a gap of 240 ms, 0.6 % of responses that fail, and 11 % of those in the window.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from effects.models import Tool, Workspace
from ledger import queries
from reconcile.exposure.measuring import bin_of
from reconcile.models import Backlog, RolledDay, StreamDay, ToolDay, ToolSlot, UnsureCall

DAYS = 30
RESPONSES_A_DAY = 1000
FAILURES = 180  # 0.6 % of 30,000
IN_WINDOW = 20  # 11 % of 180


def a_month(shop: Workspace, charge: Tool, voucher: Tool) -> None:
    now = queries.clock()
    today = now.astimezone(UTC).date()
    for number in range(DAYS):
        day = today - timedelta(days=DAYS - 1 - number)
        begins = datetime(day.year, day.month, day.day, 12, tzinfo=UTC)
        failed = FAILURES // DAYS
        RolledDay.objects.update_or_create(day=day, defaults={"rolled_at": now})
        StreamDay.objects.create(
            workspace=shop,
            day=day,
            success=RESPONSES_A_DAY - failed,
            cut=failed,
            cancelled=3,
            in_window=int(number < IN_WINDOW),
        )
        for tool, latency, gap in ((charge, 0.82, 0.24), (voucher, 0.41, 0.24)):
            slowly = latency * (1.9 if number % 3 == 0 else 1.0)
            ToolDay.objects.create(
                workspace=shop,
                tool=tool,
                day=day,
                responses=210,
                in_window=int(number < IN_WINDOW and tool is charge),
                latency={str(bin_of(latency)): 180, str(bin_of(slowly)): 30},
                gap={str(bin_of(gap)): 200, str(bin_of(gap * 2)): 10},
                wire_same=12 if tool is charge else 0,
            )
            for hour, calls in ((9, 120), (15, 90)):
                ToolSlot.objects.create(
                    workspace=shop,
                    tool=tool,
                    day=day,
                    at=begins.replace(hour=hour),
                    calls=calls,
                    unknown=(number * (3 if tool is charge else 7)) % 5,
                )
        for call in range(number % 4):
            unknown_at = begins + timedelta(minutes=7 * call)
            took = timedelta(minutes=20 + 37 * ((number + call) % 9))
            window = unknown_at + timedelta(hours=4)
            late = (number + call) % 8 == 7
            UnsureCall.objects.create(
                claim_id=UUID(int=number * 100 + call + 1),
                workspace=shop,
                tool=charge,
                day=day,
                unknown_at=unknown_at,
                ended_at=unknown_at + took,
                by="person" if call % 2 else "rule",
                window_until=window,
                race_at=min(window, unknown_at + took),
                contradicted_at=unknown_at + timedelta(days=1) if late else None,
            )
        for hour in (0, 8, 16):
            Backlog.objects.create(
                workspace=shop, at=begins.replace(hour=hour), calls=4 + (number * 5 + hour) % 11
            )
