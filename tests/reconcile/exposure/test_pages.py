"""The pages about exposure say what was measured, and say where nothing was."""

from __future__ import annotations

import csv
import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils.html import escape

from effects.core.vocabulary import Role, SightingWord
from effects.models import AuditEntry, Workspace
from effects.pages.settings import TIMES_IN_SESSION, ZONE_IN_SESSION
from ledger import queries
from reconcile.exposure import levels, rolling, rollup, trends, weekly
from reconcile.exposure.days import last_days, week_of
from reconcile.models import DuplicateAct, DuplicateGroup, ExposureLevel, ToolSlot
from reconcile.views.filters import Filters, Sort, View
from tests.reconcile.exposure.a_month import a_month
from tests.reconcile.exposure.test_rollup import a_response, its_call
from tests.support import desk

pytestmark = pytest.mark.django_db

PAGES = ("/exposure/", "/trends/?days=90", "/weekly-report/?week={week}")
QUERIES_MAX = 15


def signed_in(shop: Workspace, role: Role = Role.ADMIN, zone: str = "") -> Client:
    client = Client()
    client.force_login(desk.a_person(shop, role))
    if zone:
        session = client.session
        session[TIMES_IN_SESSION], session[ZONE_IN_SESSION] = "local", zone
        session.save()
    return client


def text_of(client: Client, address: str) -> str:
    answer = client.get(address)
    assert answer.status_code == 200
    main = answer.content.decode().split('<main id="main"')[1].split("</main>")[0]
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", main))


def rows_of(client: Client, address: str) -> list[dict[str, str]]:
    answer: Any = client.get(address)
    assert answer.status_code == 200
    text = answer.getvalue().decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(text)))


def test_a_desk_without_streams_says_so_and_says_how() -> None:
    shop = desk.a_workspace()
    said = text_of(signed_in(shop), "/exposure/")
    assert "No stream was recorded yet" in said
    assert "record_stream(events, record, at)" in said
    assert "Expected duplicates" not in said
    assert "Nothing is at risk" in said
    assert text_of(signed_in(shop), "/trends/").count("Nothing to measure in these 30 days") == 5
    assert "not measured" in text_of(signed_in(shop), "/weekly-report/")


def test_a_few_streams_are_too_few_to_say() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    its_call(tool, "a")
    a_response(shop, "a", terminal="cut")
    a_response(shop, "b")
    rollup.roll_due()
    said = text_of(signed_in(shop), "/exposure/")
    assert "1 of 2 that ended, at least 100 needed" in said
    assert "1 of 1 failures, at least 10 needed" in said
    assert "2 in 1 day, at least 7 needed" in said
    assert "No write tool has both of its times yet" in said
    assert "1 of at least 20" in said


def test_the_arithmetic_is_shown_with_its_numbers() -> None:
    shop = desk.a_workspace()
    charge, voucher = desk.a_keyed_tool(shop), desk.an_unkeyed_tool(shop)
    a_month(shop, charge, voucher)
    said = text_of(signed_in(shop), "/exposure/")
    assert "How often charge_card would take effect twice" in said  # the slower of the two
    for shown in (
        "180 of 30,000 that ended; 0.52 % to 0.69 % at 95 %",
        "20 of 180 failures",
        "30,000 in 30 days; 6,300 called it",
        "1 response in 1,500",
        "absorbed by the provider's key",
        "360 requests seen with it",
        "only the claim stops it",
        "90 responses that their own reader cancelled",
    ):
        assert shown in said
    assert "Expected duplicates a month 20.0" in said


def test_what_is_at_risk_is_summed_by_currency_and_window_and_leads_to_its_list() -> None:
    shop = desk.a_workspace()
    charge, voucher = desk.a_keyed_tool(shop), desk.an_unkeyed_tool(shop)
    soon = desk.a_keyed_tool(shop, name="book_room", window_seconds=3600)
    for _ in range(2):
        desk.a_lost_call(charge)
    desk.a_lost_call(soon, arguments={"currency": "usd"})
    desk.a_lost_call(voucher, arguments={"amount": 50})
    desk.a_lost_call(desk.an_unkeyed_tool(shop, name="letter", amount_field="", currency_field=""))
    desk.complete(charge, desk.a_call(charge))  # settled: at no risk
    _, found = levels.read_filled(shop.pk)
    listed = [(row.currency, str(row.bucket), row.calls, row.amount) for row in found.rows]
    assert listed == [
        ("", "none", 1, None),
        ("EUR", "open", 2, 298),
        ("EUR", "none", 1, 50),
        ("USD", "soon", 1, 149),
    ]
    page = signed_in(shop).get("/exposure/").content.decode()
    for one in (Filters(view=View.CLOSING), Filters(view=View.UNKEYED), Filters(sort=Sort.AGE)):
        assert f'href="/queue/{escape(one.address())}"' in page
    assert "348.00 <small>EUR</small>" in page
    assert "149.00 USD" in page


def test_a_call_that_somebody_stopped_still_counts() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    claim_id = desk.a_lost_call(tool)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE ledger_claim SET state = 'closed' WHERE id = %s", [claim_id])
    _, found = levels.read_filled(shop.pk)
    assert (found.calls, found.stopped) == (1, 1)


def test_an_undecided_call_is_old_after_a_week() -> None:
    shop = desk.a_workspace()
    desk.a_lost_call(desk.a_keyed_tool(shop))
    assert levels.read_filled(shop.pk)[1].old == 0
    desk.move_clock(timedelta(days=7, minutes=1))
    _, found = levels.read_filled(shop.pk)
    assert found.old == 1
    assert [str(one) for one in found.old_sums()] == ["149.00 EUR"]


def test_the_level_of_an_hour_is_kept_once_and_also_when_it_is_nothing() -> None:
    shop, quiet = desk.a_workspace(), desk.a_workspace("quiet")
    desk.a_lost_call(desk.a_keyed_tool(shop))
    levels.keep_hour()
    levels.read_filled(shop.pk)
    assert levels.keep_hour() == 0
    kept = ExposureLevel.objects.filter(bucket=levels.ALL)
    assert sorted(kept.values_list("workspace_id", "calls")) == sorted(
        [(shop.pk, 1), (quiet.pk, 0)]
    )


def test_days_are_those_of_the_persons_zone() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    now = queries.clock()
    midnight = last_days(7, now, "Asia/Kathmandu").borders[3]  # 18:15 of UTC
    for minutes, calls in ((-15, 3), (0, 5)):
        at = midnight + timedelta(minutes=minutes)
        ToolSlot.objects.create(
            workspace=shop, tool=tool, day=at.date(), at=at, calls=calls, unknown=1
        )
    days = last_days(7, now, "Asia/Kathmandu")
    rate = trends.charts(shop.pk, days, now)[0]
    assert [cells[0].of for _, cells in rate.rows] == ["", "", "1 of 3", "1 of 5", "", "", ""]
    assert "midnight in Asia/Kathmandu" in text_of(
        signed_in(shop, zone="Asia/Kathmandu"), "/trends/"
    )
    assert "midnight in UTC" in text_of(signed_in(shop), "/trends/")


def test_a_window_that_closed_undecided_counts_against_the_desk() -> None:
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop, window_seconds=3600)
    decided, missed = desk.a_lost_call(tool), desk.a_lost_call(tool)
    desk.see(tool, decided, SightingWord.FOUND, counts=True, objects=("pi_9",))
    rollup.roll_due()
    now = queries.clock()
    week = last_days(7, now + timedelta(hours=2), "UTC")
    assert trends.how_it_went(shop.pk, week, now)[None].raced == 1  # the other may yet be in time
    went = trends.how_it_went(shop.pk, week, now + timedelta(hours=2))[None]
    assert (went.decided, went.by_person, went.in_time, went.raced) == (1, 0, 1, 2)
    assert went.in_time_percent == 50
    days = last_days(7, now + timedelta(hours=2), "UTC")
    report = weekly.read_report(shop.pk, days, now + timedelta(hours=2))
    assert [row.call.claim_id for row in report.missed] == [missed]
    assert report.missed[0].card is not None
    assert report.missed_in_all == 1


def test_a_decision_that_the_provider_contradicts_is_counted_on_its_own_day() -> None:
    shop = desk.a_workspace()
    charge, voucher = desk.a_keyed_tool(shop), desk.an_unkeyed_tool(shop)
    a_month(shop, charge, voucher)
    now = queries.clock()
    contradicted = trends.charts(shop.pk, last_days(30, now, "UTC"), now)[3]
    assert contradicted.name == "contradicted"
    assert contradicted.total.endswith("6 of 43")


def test_the_weekly_report_tells_what_people_said_of_duplicates() -> None:
    shop = desk.a_workspace()
    lead = desk.a_person(shop, Role.LEAD)
    now = queries.clock()
    made: dict[str, Any] = {
        "workspace": shop,
        "rule": "same_thing",
        "tool": "=cmd|charge",
        "claim_ids": [],
        "possible": 3,
        "amount": 20,
        "currency": "EUR",
        "last_at": now,
        "diagnosed_at": now,
    }
    new = DuplicateGroup.objects.create(**made, identity=b"1", found_at=now)
    DuplicateGroup.objects.create(**made, identity=b"2", found_at=now - timedelta(days=8))
    for act in ("own", "confirm", "refund_requested"):
        DuplicateAct.objects.create(
            group=new, act=act, at=now, by=lead, reason="seen", version=1, shown=b""
        )
    said = text_of(signed_in(shop), "/weekly-report/")
    assert "Found 1 40.00 EUR" in said
    assert "Confirmed 1 40.00 EUR" in said
    assert "Refund requested 1 40.00 EUR" in said
    assert "Not a duplicate 0" in said
    (row,) = rows_of(signed_in(shop), "/weekly-report/export.csv?table=duplicates")
    assert (row["at_stake"], row["currency"], row["tool"]) == ("40", "EUR", "'=cmd|charge")
    assert AuditEntry.objects.filter(act="exposure.exported").count() == 1


def test_a_week_that_there_is_not_is_not_found_and_a_later_one_is_not_offered() -> None:
    client = signed_in(desk.a_workspace())
    for word in ("2025-W53", "nonsense", "2026-W00", "\x00"):
        assert client.get("/weekly-report/", {"week": word}).status_code == 404
    assert client.get("/weekly-report/?week=2026-W53").status_code == 200
    assert client.get("/weekly-report/export.csv?table=secrets").status_code == 404
    earlier = client.get("/weekly-report/?week=2024-W10").content.decode()
    assert "?week=2024-W09" in earlier
    assert "?week=2024-W11" in earlier
    assert 'rel="next"' not in client.get("/weekly-report/").content.decode()


@pytest.mark.parametrize("said", ["", "8", "-7", "x", "90\x00", "\N{ARABIC-INDIC DIGIT SEVEN}"])
def test_a_period_that_is_not_offered_is_the_usual_one(said: str) -> None:
    page = signed_in(desk.a_workspace()).get("/trends/", {"days": said}).content.decode()
    assert '<a href="?days=30" aria-current="true">' in page


def test_files_hold_the_same_figures_with_empty_cells_where_nothing_was_measured() -> None:
    shop = desk.a_workspace()
    charge, voucher = desk.a_keyed_tool(shop), desk.an_unkeyed_tool(shop)
    desk.an_unkeyed_tool(shop, name="unused")
    a_month(shop, charge, voucher)
    client = signed_in(shop)
    by_tool = {row["tool"]: row for row in rows_of(client, "/exposure/export.csv")}
    assert by_tool["charge_card"]["expected_a_month"] == "20.000000"
    assert by_tool["charge_card"]["absorbed_by"] == "key"
    assert by_tool["unused"]["window_seconds"] == by_tool["unused"]["expected_a_month"] == ""
    lines = rows_of(client, "/trends/export.csv?days=7")
    assert {row["chart"] for row in lines} == {
        *("unknown-rate", "time-to-decision", "before-window", "contradicted", "backlog")
    }
    assert len([row for row in lines if row["chart"] == "backlog"]) == 7


@pytest.mark.parametrize("address", PAGES)
def test_the_number_of_questions_does_not_grow(address: str) -> None:
    shop = desk.a_workspace()
    client = signed_in(shop)
    address = address.format(week=week_of(queries.clock().date() - timedelta(days=10)).word)
    client.get(address)
    with CaptureQueriesContext(connection) as few:
        client.get(address)
    tools = [desk.a_keyed_tool(shop), desk.an_unkeyed_tool(shop)]
    tools += [desk.a_keyed_tool(shop, name=f"tool_{n}", window_seconds=600) for n in range(6)]
    a_month(shop, *tools[:2])
    for tool in tools:
        desk.a_lost_call(tool)
    rollup.roll_due()
    levels.read_filled(shop.pk)
    with CaptureQueriesContext(connection) as many:
        client.get(address)
    assert len(many) <= QUERIES_MAX, [query["sql"][:200] for query in many]
    assert len(many) <= len(few) + 5  # what an empty desk need not ask


def test_nothing_here_can_read_a_whole_big_table() -> None:
    """With sequential scans forbidden there is another way for each statement over the record."""
    shop = desk.a_workspace()
    tool = desk.a_keyed_tool(shop)
    desk.a_lost_call(tool)
    a_response(shop, "s")
    asked = rollup.range_of(queries.clock().date())
    names = ("UNSURE", "SLOTS", "LATENCY", "STREAMS", "ANNOUNCED", "GAP", "WIRE")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        for name in names:
            cursor.execute(f"EXPLAIN {getattr(rolling, name)}", asked)
            plan = "\n".join(line for (line,) in cursor.fetchall())
            for table in ("ledger_claim", "ledger_event", "ledger_stream", "ledger_call"):
                assert f"Seq Scan on {table}" not in plan, f"{name}:\n{plan}"
