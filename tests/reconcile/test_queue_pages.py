"""The pages of the queue: filters, saved views, files, the walk, and what an empty list says."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.http import QueryDict
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from hypothesis import given
from hypothesis import strategies as st

from effects import exporting
from effects.core.vocabulary import ClaimState, EffectClass, Role, SightingWord
from effects.models import AuditEntry, Tool, Workspace
from reconcile import listing, takes
from reconcile.assign import assignments
from reconcile.pages import queue_export
from reconcile.views import saved
from reconcile.views.filters import COLUMNS, STRENGTHS, Filters, Sort, View, read_filters
from reconcile.views.models import SavedView
from tests.support import desk
from tests.support.desk import a_lost_call

pytestmark = pytest.mark.django_db

QUERIES_MAX = 15
"""Of the queue with every filter, its menu of views and the shell around it."""


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return desk.a_keyed_tool(shop)


def browser_of(shop: Workspace, name: str = "ana", role: Role = Role.SUPPORT) -> Client:
    client = Client()
    client.force_login(desk.a_person(shop, role, name))
    return client


def me(client: Client) -> int:
    return int(client.session["_auth_user_id"])


def said(kept: Any) -> dict[str, Any]:
    """What an entry of the audit log holds."""
    assert isinstance(kept, dict)
    return kept


def shown(client: Client, query: str = "") -> str:
    answer = client.get(f"/queue/{query}")
    assert answer.status_code == 200
    return answer.content.decode()


def listed(shop: Workspace, **filters: Any) -> set[UUID]:
    return {row.claim_id for row in listing.queue_page(shop.pk, Filters(**filters)).rows}


# Filters


def test_each_filter_narrows_to_what_it_says(shop: Workspace, charge: Tool) -> None:
    gift = desk.an_unkeyed_tool(shop)
    ana = desk.a_person(shop, Role.SUPPORT, "ana").pk
    ben = desk.a_person(shop, Role.SUPPORT, "ben").pk
    old = a_lost_call(charge, arguments={"amount": 4000, "currency": "usd"})
    desk.move_clock(timedelta(hours=3))
    mine, theirs = a_lost_call(charge, arguments={"amount": 500}), a_lost_call(charge)
    unkeyed = a_lost_call(gift, arguments={"amount": 250})
    takes.take(shop.pk, mine, user_id=ana)
    assignments.assign(shop.pk, theirs, to_id=ben, by_id=ana)
    desk.see(charge, mine, SightingWord.ABSENT, data={"strength": "weak"})
    desk.see(charge, mine, SightingWord.ABSENT, data={"strength": "strong"})
    everything = {old, mine, theirs, unkeyed}
    assert listed(shop) == everything
    assert listed(shop, effect_class="unkeyed_write") == {unkeyed}
    assert listed(shop, amount_from=40, amount_to=149) == {old, theirs}
    assert listed(shop, currency="USD") == {old}
    assert listed(shop, older_seconds=3600) == {old}
    assert listed(shop, strength="strong") == {mine}
    assert listed(shop, strength="weak") == set()  # an older answer
    assert listed(shop, strength="none") == everything - {mine}
    assert listed(shop, who="me", user_id=ana) == {mine}
    assert listed(shop, who=str(ben)) == {theirs}
    assert listed(shop, who="nobody") == {old, unkeyed}


AMOUNTS = st.none() | st.decimals(min_value=0, max_value=10**9, places=2, allow_nan=False)
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=30).map(str.strip)
ASKED = st.builds(
    Filters,
    view=st.sampled_from(View),
    tool=WORDS,
    q=WORDS,
    state=st.sampled_from(["", *map(str, ClaimState)]),
    effect_class=st.sampled_from(["", *map(str, EffectClass)]),
    strength=st.sampled_from(["", *STRENGTHS]),
    who=st.sampled_from(["", "me", "nobody", "17"]),
    amount_from=AMOUNTS,
    amount_to=AMOUNTS,
    currency=st.sampled_from(["", "EUR", "JPY"]),
    older_seconds=st.integers(0, 3 * 24 * 3600),
    sort=st.sampled_from(Sort),
    hide=st.sets(st.sampled_from(list(COLUMNS))).map(
        lambda chosen: tuple(name for name in COLUMNS if name in chosen)
    ),
    saved=st.none() | st.integers(1, 10**6),
)


@given(ASKED)
def test_the_query_string_says_all_that_is_asked_for(filters: Filters) -> None:
    again = read_filters(QueryDict(filters.address()[1:]))
    assert again == filters
    assert again.faults == ()


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?from=lots", "“lots” is no amount."),
        ("?to=1.490", "“1.490” may be 1490 or 1.490."),
        ("?currency=euro", "“EURO” is no currency.".replace("EURO", "euro")),
        ("?older=soon", "“soon” is no age."),
        ("?from=12+EUR", "“12 EUR” is no amount."),
    ],
)
def test_what_cannot_be_read_is_said_and_stays_in_its_field(
    shop: Workspace, charge: Tool, query: str, says: str
) -> None:
    a_lost_call(charge)
    page = shown(browser_of(shop), query)
    assert says in page
    assert f'value="{query.split("=")[1].replace("+", " ")}"' in page
    assert "1 of 1 shown" in page


def test_a_filter_for_a_tool_that_is_not_there_says_so(shop: Workspace, charge: Tool) -> None:
    assert "asks for the tool gone, which this workspace does not have" in shown(
        browser_of(shop), "?tool=gone"
    )


def test_the_page_asks_the_database_as_often_for_one_row_as_for_many(
    shop: Workspace, charge: Tool
) -> None:
    client = browser_of(shop)
    query = "?view=open&strength=none&who=nobody&from=1&older=1+s&tool=charge_card"
    asked = []
    for many in (1, 20):
        for _ in range(many):
            a_lost_call(charge)
        desk.move_clock(timedelta(seconds=2))
        shown(client, query)  # which writes the cards
        with CaptureQueriesContext(connection) as seen:
            shown(client, query)
        asked.append(len(seen))
    assert asked[0] == asked[1] <= QUERIES_MAX


# What an empty list says


def test_nothing_unknown_is_told_with_true_numbers(shop: Workspace, charge: Tool) -> None:
    client = browser_of(shop)
    first = shown(client)
    assert "No agent has asked yet" in first
    assert "/api/v1/claims" in first
    for _ in range(2):
        desk.complete(charge, desk.a_call(charge))
    page = shown(client)
    assert "Nothing unknown" in page
    assert "2 calls of the last 24 h are settled; an agent last asked" in page


def test_a_list_that_is_too_narrow_says_of_how_many_and_what_was_understood(
    shop: Workspace, charge: Tool
) -> None:
    a_lost_call(charge)
    page = shown(browser_of(shop), "?q=1.490,00+EUR&tool=charge_card")
    assert "0 of 1 calls match" in page
    assert "the amount 1,490.00 EUR" in page
    assert "the id of a provider&#x27;s object, a request, a conversation" in page
    assert 'href="?view=open">Clear filters' in page


# Saved views


def keep(client: Client, name: str, query: str = "view=unkeyed&sort=age") -> SavedView:
    answer = client.post("/queue/views/new", {"name": name, "query": query})
    assert answer.status_code == 302, answer.content.decode()
    return SavedView.objects.get(name=name, owner_id=me(client))


def act(client: Client, view: SavedView, word: str, **more: str) -> int:
    return client.post(f"/queue/views/{view.pk}/", {"act": word, **more}).status_code


def test_a_view_is_kept_and_its_link_shows_what_it_asks_for(shop: Workspace, charge: Tool) -> None:
    ana = browser_of(shop)
    view = keep(ana, "Gifts", "view=unkeyed&sort=age&hide=age,who&after=nonsense&saved=9&odd=1")
    assert view.query == "view=unkeyed&sort=age&hide=who%2Cage"
    page = shown(ana, f"?saved={view.pk}")
    assert "Gifts" in page
    assert 'aria-current="page">Unkeyed writes' in page
    # Whoever leaves out what the view asks for sees another list, and the view as it was.
    assert "Gifts, changed" in shown(ana, f"?saved={view.pk}&view=unkeyed")
    assert act(ana, view, "change", query="view=late") == 302
    assert 'aria-current="page">Window closed' in shown(ana, f"?saved={view.pk}")


def test_a_view_of_somebody_else_is_not_there_until_it_is_shared(
    shop: Workspace, charge: Tool
) -> None:
    ana, ben = browser_of(shop), browser_of(shop, "ben")
    view = keep(ana, "Gifts")
    assert ben.get(f"/queue/?saved={view.pk}").status_code == 404
    assert act(ben, view, "begin") == 404
    assert act(ana, view, "share") == 302
    assert 'aria-current="page">Unkeyed writes' in shown(ben, f"?saved={view.pk}")
    assert [act(ben, view, word, name="x") for word in ("rename", "delete", "change")] == [422] * 3
    stranger = browser_of(desk.a_workspace("stranger"), "cem")
    assert stranger.get(f"/queue/?saved={view.pk}").status_code == 404
    assert act(ana, view, "rename", name="Vouchers") == 302
    assert act(browser_of(shop, "eve", Role.ADMIN), view, "unshare") == 302
    assert ben.get(f"/queue/?saved={view.pk}").status_code == 404
    # A link that says what it asks for shows it all the same, and says that the view is gone.
    assert "was deleted, or is not shared" in shown(ben, f"?saved={view.pk}&view=unkeyed")
    kept = AuditEntry.objects.order_by("pk")
    assert [entry.act for entry in kept] == ["view.shared", "view.renamed", "view.unshared"]
    assert [said(kept[1].before)["name"], said(kept[1].after)["name"]] == ["Gifts", "Vouchers"]


def test_a_queue_begins_with_the_view_that_one_chose(shop: Workspace, charge: Tool) -> None:
    ana = browser_of(shop)
    view = keep(ana, "Gifts")
    act(ana, view, "begin")
    assert ana.get("/queue/")["Location"] == f"/queue/?saved={view.pk}"
    # Every tab is said in full, so none of them leads back here.
    assert 'aria-current="page">All undecided' in shown(ana, Filters().address())
    assert browser_of(shop, "ben").get("/queue/").status_code == 200
    # A page that was open before, and only looks again, is led nowhere.
    assert ana.get("/queue/", headers={"X-Live": "1"}).status_code == 200
    act(ana, view, "delete")
    assert ana.get("/queue/").status_code == 200
    assert ana.get(f"/queue/?saved={view.pk}").status_code == 404


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (" ", "Give the view a name."),
        ("x" * 61, "At most 60 characters."),
        ("gifts", "You have a view called “gifts” already."),
    ],
)
def test_a_name_that_cannot_be_is_said_and_kept(shop: Workspace, name: str, says: str) -> None:
    ana = browser_of(shop)
    keep(ana, "Gifts")
    answer = ana.post("/queue/views/new", {"name": name, "query": "view=late"})
    assert answer.status_code == 422
    page = answer.content.decode()
    assert says in page
    assert f'value="{name}"' in page
    assert 'name="query" value="view=late"' in page


def test_views_have_a_limit_that_is_named(shop: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(saved, "VIEWS_PER_PERSON_MAX", 2)
    monkeypatch.setattr(saved, "SHARED_MAX", 1)
    ana = browser_of(shop)
    first, second = keep(ana, "1"), keep(ana, "2")
    answer = ana.post("/queue/views/new", {"name": "3", "query": ""})
    assert "You have 2 views, the most" in answer.content.decode()
    assert [act(ana, view, "share") for view in (first, second)] == [302, 422]
    viewer = browser_of(shop, "vic", Role.VIEWER)
    assert act(viewer, keep(viewer, "own"), "share") == 422
    # Where sharing cannot be, the view is kept all the same, and that is said.
    answer = viewer.post(
        "/queue/views/new", {"name": "mine", "query": "", "share": "1"}, follow=True
    )
    assert "Kept, for you alone. Needs the role" in answer.content.decode()


# Files

LARGE = '{"amount": 1970670598291982290, "currency": "eur", "order": "1970670598291982291"}'
EXACT = '{"id": 1970670598291982290, "amount": 14900, "currency": "eur", "f": 1.10, "e": 1e2}'


@pytest.mark.case("U08", "U11")
def test_the_queue_leaves_as_a_file_with_the_digits_as_received(
    shop: Workspace, charge: Tool
) -> None:
    gift = desk.an_unkeyed_tool(shop)
    exact = a_lost_call(charge, arguments=EXACT)
    formula = a_lost_call(gift, arguments={"amount": 5, "customer": "=HYPERLINK()"})
    long = a_lost_call(charge, arguments={"amount": 1, "order": "x" * 5000})
    client = browser_of(shop)
    lines = client.get("/queue/export?view=open&format=jsonl").getvalue().decode().splitlines()
    rows = {json.loads(line)["call"]: line for line in lines}
    assert '"arguments":' + EXACT in rows[str(exact)]
    assert '"customer":"=HYPERLINK()"' in rows[str(formula)]
    assert json.loads(rows[str(long)])["arguments"] is None
    assert json.loads(rows[str(long)])["arguments_address"].endswith(
        reverse("call-body", args=[long, 0, "arguments"])
    )
    text = client.get("/queue/export?view=open&format=csv").getvalue().decode()
    found = list(csv.DictReader(io.StringIO(text.removeprefix("\N{BOM}"), newline="")))
    cells = {row["Call"]: row for row in found}
    assert cells[str(exact)]["Amount"] == "149"
    assert cells[str(exact)]["Arguments as received"] == EXACT
    assert cells[str(formula)]["Customer"] == "'=HYPERLINK()"
    assert "Began (UTC)" in cells[str(exact)]
    # The order of the file is that of the list.
    order = [str(row.claim_id) for row in listing.queue_page(shop.pk, Filters()).rows]
    assert [row["Call"] for row in found] == order
    entry = AuditEntry.objects.order_by("pk")[0]
    assert entry.act == "queue.exported"
    assert (said(entry.after)["calls"], said(entry.after)["all"]) == (3, True)


@pytest.mark.case("U08")
def test_the_list_shows_the_digits_that_came(shop: Workspace, charge: Tool) -> None:
    a_lost_call(charge, arguments=LARGE)
    page = shown(browser_of(shop))
    assert "19,706,705,982,919,822.90" in page
    assert "for order 1970670598291982291" in page


@pytest.mark.case("U14")
def test_a_file_takes_what_is_selected_and_says_by_its_name_that_it_is_cut(
    shop: Workspace, charge: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [a_lost_call(charge) for _ in range(3)]
    client = browser_of(shop)
    page = shown(client)
    words = [part.split('"')[0] for part in page.split('form="bulk" value="')[1:]]
    sent = {"view": "?view=open", "format": "jsonl", "call": words[:1]}
    one = client.post("/queue/export", sent).getvalue().decode().splitlines()
    assert [json.loads(line)["call"] for line in one] == [str(calls[0])]
    nothing = client.post("/queue/export", {"view": "?view=open", "format": "csv"}, follow=True)
    assert "No call is selected." in nothing.content.decode()
    monkeypatch.setattr(queue_export, "ROWS_MAX", 2)
    whole = client.post("/queue/export", sent | {"scope": "view"})
    assert len(whole.getvalue().decode().splitlines()) == 2
    assert "-first-2.jsonl" in whole["Content-Disposition"]
    assert [said(entry.after)["all"] for entry in AuditEntry.objects.order_by("pk")] == [
        True,
        False,
    ]
    assert exporting.ROWS_MAX == 50_000


def test_whoever_only_looks_exports_nothing(shop: Workspace, charge: Tool) -> None:
    viewer = browser_of(shop, "vic", Role.VIEWER)
    assert viewer.get("/queue/export?view=open").status_code == 403
    assert "Needs the role" in shown(viewer)
    assert AuditEntry.objects.count() == 0


# The walk


def test_a_call_leads_through_the_view_by_which_it_was_opened(
    shop: Workspace, charge: Tool
) -> None:
    first, second, third = (a_lost_call(charge) for _ in range(3))
    a_lost_call(desk.an_unkeyed_tool(shop), arguments={"amount": 5})
    client = browser_of(shop)
    shown(client)  # which reads the amounts that the order goes by
    query = "?view=untaken&tool=charge_card"
    page = client.get(f"/calls/{second}{query}").content.decode()
    assert "2 of 3" in page
    address = query.replace("&", "&amp;")
    assert f'href="/calls/{first}{address}" rel="prev"' in page
    assert f'href="/calls/{third}{address}" rel="next"' in page
    # A form of the page leads back to it without the query: the way is still known, and the call,
    # which is taken now, is in the view no more.
    back = client.post(f"/calls/{second}/take", follow=True).content.decode()
    assert "not in this view, 2 are" in back
    assert f'href="/calls/{third}{address}" rel="next"' in back
    # Of another call nothing is known: it stands among all undecided ones.
    assert "2 of 4" in client.get(f"/calls/{first}").content.decode()
