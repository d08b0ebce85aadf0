"""Which calls are in the queue, in which order, and how one is found."""

from datetime import timedelta

import pytest

from effects.core.identity import marker
from effects.core.vocabulary import ClaimState, SightingWord, Verdict
from effects.money import Money
from ledger import append, queries
from ledger.append import NewDecision
from reconcile import cards, listing
from reconcile.models import Card
from reconcile.views.filters import Filters, Sort, View, cursor_of, place_of, read_filters
from tests.support import desk
from tests.support.desk import a_call, a_lost_call

pytestmark = pytest.mark.django_db


@pytest.fixture
def halden():
    return desk.a_workspace()


@pytest.fixture
def charge(halden):
    return desk.a_keyed_tool(halden)


@pytest.fixture
def gift(halden):
    return desk.an_unkeyed_tool(halden)


def page(workspace, **filters):
    return listing.queue_page(workspace.pk, Filters(**filters))


def ids(found):
    return [row.claim_id for row in found.rows]


def decide(tool, claim_id, verdict, hold_seconds=0):
    version = queries.claim(tool.workspace_id, claim_id).version
    decision = NewDecision(
        verdict=verdict,
        claim_version=version,
        reason="because",
        user_id=desk.a_person(tool.workspace).pk,
        hold_seconds=hold_seconds,
    )
    return append.decide(tool.workspace_id, claim_id, decision)


def test_a_lost_call_is_listed_with_what_a_person_needs(halden, charge):
    claim_id = a_lost_call(charge, arguments={"customer": "cus_Ab12345679X2", "order": "8841"})
    desk.see(charge, claim_id, SightingWord.ABSENT, data={"strength": "weak"})
    (row,) = page(halden).rows
    assert row.state is ClaimState.UNKNOWN
    assert row.summary == "Charge 149.00 EUR to cus_…9X2 for order 8841"
    assert str(row.money) == "149.00 EUR"
    assert row.ended == "ReadTimeout after 30 s"
    assert row.evidence.word is SightingWord.ABSENT
    assert row.evidence.strength == "weak"
    assert row.check_at is not None


@pytest.mark.parametrize(
    "settle",
    [
        pytest.param(desk.complete, id="happened"),
        pytest.param(desk.not_sent, id="not sent"),
    ],
)
def test_a_settled_call_is_not_listed(halden, charge, settle):
    settle(charge, a_call(charge))
    assert page(halden).rows == ()
    assert len(page(halden, view=View.ALL).rows) == 1


def test_a_living_worker_with_a_long_window_is_left_alone(halden, charge):
    a_call(charge)
    assert page(halden).rows == ()


def test_a_dead_lease_is_shown_as_unknown_at_once(halden, charge):
    a_call(charge)
    desk.move_clock(timedelta(seconds=charge.lease_seconds + 1))
    (row,) = page(halden).rows
    assert row.state is ClaimState.UNKNOWN
    assert row.ended == "no report from the worker"


def test_an_in_flight_call_is_listed_when_its_window_closes_within_two_hours(halden):
    tool = desk.a_keyed_tool(halden, window_seconds=7000)
    a_call(tool)
    (row,) = page(halden).rows
    assert row.state is ClaimState.IN_FLIGHT


def test_an_attempt_older_than_the_tool_allows_is_listed(halden):
    tool = desk.a_keyed_tool(halden, lease_seconds=3600, attempt_seconds_max=60)
    a_call(tool)
    assert page(halden).rows == ()
    desk.move_clock(timedelta(seconds=61))
    assert [row.state for row in page(halden).rows] == [ClaimState.IN_FLIGHT]


def test_a_call_whose_attempts_are_used_up_is_listed_once_its_agent_asked_again(halden):
    tool = desk.a_keyed_tool(halden, attempts_max=1)
    asked = {"conversation": "c", "call_id": "call_0123456789abcdef", "arguments": '{"amount": 1}'}
    desk.not_sent(tool, a_call(tool, **asked))
    assert page(halden).rows == ()
    assert a_call(tool, **asked).code == "attempts_exhausted"
    assert [row.state for row in page(halden).rows] == [ClaimState.NOT_EXECUTED]


def test_two_effects_are_listed_as_a_conflict(halden, charge):
    claim_id = a_lost_call(charge)
    objects = ("pi_1", "pi_2")
    desk.see(charge, claim_id, SightingWord.FOUND_MANY, objects=objects, counts=True)
    assert [row.state for row in page(halden).rows] == [ClaimState.CONFLICTED]


def test_each_view_holds_what_its_name_says(halden, charge, gift):
    keyed, unkeyed = a_lost_call(charge), a_lost_call(gift, arguments={"amount": 5})
    closed, released, held = (a_lost_call(charge) for _ in range(3))
    decide(charge, closed, Verdict.CLOSE)
    decide(charge, released, Verdict.RELEASE_SAME)
    decide(charge, held, Verdict.CLOSE, hold_seconds=60)
    found = {view: set(ids(page(halden, view=view))) for view in View}
    everything = {keyed, unkeyed, closed, released, held}
    assert found == {
        View.OPEN: {keyed, unkeyed, held},
        View.MINE: set(),
        View.MENTIONS: set(),
        View.UNTAKEN: {keyed, unkeyed, held},
        View.CLOSING: set(),
        View.UNKEYED: {unkeyed},
        View.LATE: set(),
        View.SNOOZED: set(),
        View.WAITING: set(),
        View.HELD: {held},
        View.RELEASED: {released},
        View.CLOSED: {closed},
        View.RESOLVED: {closed},
        View.ALL: everything,
    }
    counts = page(halden).figures.counts
    assert counts == {view: len(found[view]) for view in counts}


def test_a_held_decision_takes_effect_in_the_list_at_its_instant(halden, charge):
    claim_id = a_lost_call(charge)
    decide(charge, claim_id, Verdict.CLOSE, hold_seconds=60)
    assert ids(page(halden)) == [claim_id]
    desk.move_clock(timedelta(seconds=61))
    assert ids(page(halden)) == []
    assert ids(page(halden, view=View.CLOSED)) == [claim_id]


def test_the_order_is_no_key_first_then_the_shortest_window_then_the_amount(halden, charge, gift):
    small, large = (a_lost_call(gift, arguments={"amount": amount}) for amount in (18.9, 250))
    nothing = a_lost_call(gift, arguments={"amount": None})
    soon = a_lost_call(desk.a_keyed_tool(halden, name="soon", window_seconds=3600))
    late = a_lost_call(desk.a_keyed_tool(halden, name="late", window_seconds=200))
    unpublished = a_lost_call(desk.a_keyed_tool(halden, name="unpub", window_seconds=None))
    first, second = a_lost_call(charge), a_lost_call(charge)
    desk.move_clock(timedelta(seconds=300))
    found = page(halden)
    assert ids(found) == [large, small, soon, first, second, unpublished, late, nothing]
    assert [section.title for section in found.sections] == [
        "No key to lean on",
        "Closing within 2 h",
        "Open",
        "Window not published",
        "Window closed",
        "No key, no amount",
    ]


def test_sorting_by_amount_and_by_age(halden, charge):
    cheap, dear = (a_lost_call(charge, arguments={"amount": amount}) for amount in (100, 900))
    unread = a_lost_call(charge, arguments='{"what": "no amount"}')
    assert ids(page(halden, sort=Sort.AMOUNT)) == [dear, cheap, unread]
    assert ids(page(halden, sort=Sort.AGE)) == [cheap, dear, unread]


def test_money_at_risk_is_one_sum_a_currency(halden, charge):
    for amount, currency in ((14900, "eur"), (100, "eur"), (18400, "jpy")):
        a_lost_call(charge, arguments={"amount": amount, "currency": currency})
    sums = [str(money) for money in page(halden).figures.at_risk]
    assert sums == ["150.00 EUR", "18,400 JPY"]


# Search


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("149.00", id="amount"),
        pytest.param("149", id="amount without its cents"),
        pytest.param("EUR 149.00", id="amount with its currency"),
        pytest.param("149.00 eur", id="currency behind"),
        pytest.param("cus_Ab12345679X2", id="customer"),
        pytest.param("order 8841", id="a piece of the line"),
        pytest.param("req_abc", id="request id of a provider's answer"),
        pytest.param("pi_seen", id="provider object of an answer"),
        pytest.param("call_0123456789abcdef", id="tool call id"),
        pytest.param("conversation-of-8841", id="conversation"),
        pytest.param("{id}", id="our id"),
        pytest.param("call_{id}", id="our id with its prefix"),
        pytest.param("{end}", id="the end of our id"),
        pytest.param("{key}-1", id="forwarded key"),
        pytest.param("{key}", id="forwarded key without its generation"),
        pytest.param("{marker}", id="our marker"),
        pytest.param("refund-of-8841", id="the caller's own key"),
    ],
)
def test_one_box_finds_the_call_by_anything_that_names_it(halden, charge, text):
    claim_id = a_lost_call(
        charge,
        arguments={"customer": "cus_Ab12345679X2", "order": "8841"},
        call_id="call_0123456789abcdef",
        conversation="conversation-of-8841",
        caller_key="refund-of-8841",
    )
    a_lost_call(charge, arguments={"amount": 777})
    data = {"request_id": "req_abc"}
    desk.see(charge, claim_id, SightingWord.PENDING, objects=("pi_seen",), data=data)
    claim = queries.claim(halden.pk, claim_id)
    named = {"id": claim_id, "end": str(claim_id)[-8:], "key": claim.key}
    typed = text.format(marker=marker(claim_id, 1), **named)
    assert ids(page(halden, q=typed)) == [claim_id]


@pytest.mark.parametrize(
    "text", ["149.01", "149.00 USD", "%", "__", "cus\\", "'; --", "4242 4242", "\u202e"]
)
def test_what_names_nothing_finds_nothing(halden, charge, text):
    a_lost_call(charge)
    assert page(halden, q=text).rows == ()


def test_another_workspace_finds_nothing(halden, charge):
    claim_id = a_lost_call(charge)
    stranger = desk.a_workspace("stranger")
    for view in View:
        assert page(stranger, view=view, q=str(claim_id)).rows == ()
    assert page(stranger).figures.unknown == 0


def test_filters_narrow_by_tool_and_state(halden, charge, gift):
    keyed, unkeyed = a_lost_call(charge), a_lost_call(gift)
    assert ids(page(halden, tool="charge_card")) == [keyed]
    assert set(ids(page(halden, state="unknown"))) == {keyed, unkeyed}
    assert page(halden, state="conflicted").rows == ()


# Pages


@pytest.mark.case("U09")
def test_every_row_that_stays_is_seen_once_while_others_come_and_go(halden, charge, monkeypatch):
    monkeypatch.setattr(listing, "ROWS_PER_PAGE", 20)
    staying = [a_lost_call(charge) for _ in range(60)]
    seen, after = [], None
    for turn in range(4):
        found = page(halden, after=after)
        seen += ids(found)
        after = found.next_place
        if turn < 2:
            for leaving in (staying[turn * 3], staying[59 - turn * 3]):
                decide(charge, leaving, Verdict.CLOSE)
            for _ in range(5):
                a_lost_call(charge)
        if after is None:
            break
    left = {staying[0], staying[59], staying[3], staying[56]}
    stayed = [claim_id for claim_id in staying if claim_id not in left]
    assert [seen.count(claim_id) for claim_id in stayed] == [1] * len(stayed)


def test_a_card_that_is_filled_while_paging_moves_no_row(halden, gift, monkeypatch):
    monkeypatch.setattr(listing, "ROWS_PER_PAGE", 2)
    made = [a_lost_call(gift, arguments={"amount": n}) for n in (10, 20, 30)]
    first = page(halden)
    Card.objects.all().delete()
    second = page(halden, after=first.next_place)
    assert set(ids(first)) | set(ids(second)) == set(made)


@pytest.mark.case("U06")
def test_a_page_asks_the_database_as_often_for_one_row_as_for_fifty(
    halden, charge, django_assert_num_queries
):
    a_lost_call(charge)
    page(halden)
    with django_assert_num_queries(6):
        page(halden)
    for _ in range(49):
        a_lost_call(charge)
    cards.fill()
    with django_assert_num_queries(6):
        assert len(page(halden).rows) == 50


@pytest.mark.parametrize(
    "cursor", ["", "x", "bm9uc2Vuc2U", "W10", "WzEsMiwzLDQsNV0", "\N{BOMB}", "W251bGxd"]
)
def test_a_cursor_that_is_not_ours_is_the_first_page(cursor):
    assert place_of(cursor) is None


def test_a_cursor_survives_the_address(halden, charge, monkeypatch):
    monkeypatch.setattr(listing, "ROWS_PER_PAGE", 1)
    a_lost_call(charge)
    a_lost_call(charge)
    place = page(halden).next_place
    assert place_of(cursor_of(place)) == place


def test_the_address_says_what_is_shown():
    filters = read_filters({"view": "unkeyed", "q": " 149.00\x00 ", "sort": "age", "state": "odd"})
    assert filters == Filters(view=View.UNKEYED, q="149.00", sort=Sort.AGE)
    assert filters.address() == "?view=unkeyed&q=149.00&sort=age"
    assert filters.address(view=View.OPEN, q="", sort=Sort.WINDOW) == "?view=open"


# Cards


def test_a_card_is_written_anew_when_its_tool_reads_the_arguments_otherwise(halden, charge):
    claim_id = a_lost_call(charge, arguments={"amount": 14900})
    page(halden)
    charge.amount_is_minor = False
    charge.version += 1
    charge.save()
    (row,) = page(halden).rows
    assert (row.claim_id, row.money) == (claim_id, Money(amount=row.money.amount, currency="EUR"))
    assert str(row.money) == "14,900.00 EUR"


def test_arguments_that_are_too_large_for_the_row_are_read_from_their_payload(halden, charge):
    a_lost_call(charge, arguments={"order": "x" * 5000})
    (row,) = page(halden).rows
    assert str(row.money) == "149.00 EUR"


def test_filling_is_bounded_and_says_how_much_it_did(halden, charge):
    for _ in range(3):
        a_lost_call(charge)
    assert cards.fill(workspace_id=halden.pk, limit=2) == 2
    assert cards.fill(workspace_id=halden.pk, limit=2) == 1
    assert cards.fill(workspace_id=halden.pk, limit=2) == 0


# The walk


def walk(workspace, claim_id, **filters):
    return listing.neighbours(workspace.pk, Filters(**filters), claim_id, queries.clock())


def test_a_call_knows_its_place_in_a_view_and_what_stands_beside_it(halden, charge, gift):
    first, second, third = (a_lost_call(charge) for _ in range(3))
    elsewhere = a_lost_call(gift, arguments={"amount": 5})
    page(halden)  # which writes the cards
    found = walk(halden, second, tool="charge_card")
    assert (found.number, found.total, found.listed) == (2, 3, True)
    assert (found.previous, found.next) == (first, third)
    assert walk(halden, third, tool="charge_card").next is None
    assert walk(halden, first).previous == elsewhere
    assert walk(halden, first, sort=Sort.AGE).previous is None


def test_whoever_decided_goes_on_from_where_the_call_stood(halden, charge):
    first, second, third = (a_lost_call(charge) for _ in range(3))
    decide(charge, second, Verdict.CLOSE)
    found = walk(halden, second)
    assert (found.previous, found.next) == (first, third)
    assert (found.number, found.total, found.listed) == (1, 2, False)


def test_the_next_call_is_one_that_is_not_decided_already(halden, charge):
    first, held, third = (a_lost_call(charge) for _ in range(3))
    decide(charge, held, Verdict.CLOSE, hold_seconds=60)
    assert walk(halden, first).next == third
    assert walk(halden, third).previous == held
    assert walk(halden, held, view=View.HELD).total == 1


@pytest.mark.parametrize("view", [View.RESOLVED, View.MENTIONS, View.CLOSED])
def test_a_call_that_a_view_does_not_show_is_not_counted_in_it(halden, charge, view):
    claim_id = a_lost_call(charge)
    found = walk(halden, claim_id, view=view)
    assert (found.number, found.total, found.listed) == (0, 0, False)


def test_another_workspaces_call_has_no_neighbours(halden, charge):
    stranger = desk.a_workspace("stranger")
    there = a_lost_call(desk.a_keyed_tool(stranger))
    a_lost_call(charge)
    found = walk(halden, there)
    assert (found.previous, found.next, found.listed) == (None, None, False)


def test_among_all_calls_an_old_one_is_found_by_the_name_it_has(halden, charge, monkeypatch):
    old = desk.claim_id_of(a_call(charge))
    newest = desk.claim_id_of(a_call(charge))
    monkeypatch.setattr(listing, "NEWEST_MAX", 1)
    assert ids(page(halden, view=View.ALL)) == [newest]
    key = queries.claim(halden.pk, old).key
    for text in (str(old), f"call_{old}", marker(old, 1), key):
        assert ids(page(halden, view=View.ALL, q=text)) == [old], text
