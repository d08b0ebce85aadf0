"""Reading back: lists, cursors, filters and events, through the real SDK.

Source: https://docs.stripe.com/api/pagination and https://docs.stripe.com/api/events.
"""

import pytest
import stripe

MONTH_SECONDS = 30 * 24 * 60 * 60


def test_a_list_shows_what_was_written_a_moment_ago_newest_first(customer):
    ids = [customer.pay(f"k{number}").id for number in range(3)]
    assert [intent.id for intent in customer.stripe.v1.payment_intents.list()] == ids[::-1]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 100])
def test_pages_of_any_size_hold_every_object_once(customer, limit):
    ids = [customer.pay(f"k{number}").id for number in range(7)]
    pages = customer.stripe.v1.payment_intents.list({"limit": limit})
    assert [intent.id for intent in pages.auto_paging_iter()] == ids[::-1]


def test_a_list_can_be_walked_backwards(customer):
    ids = [customer.pay(f"k{number}").id for number in range(5)]
    newer = customer.stripe.v1.payment_intents.list({"limit": 2, "ending_before": ids[0]})
    assert [intent.id for intent in newer.data] == [ids[2], ids[1]]
    assert [intent.id for intent in newer.auto_paging_iter()] == ids[1:]


def test_a_page_has_10_objects_unless_asked_and_says_whether_there_is_more(customer):
    for number in range(11):
        customer.pay(f"k{number}")
    page = customer.stripe.v1.payment_intents.list()
    assert (len(page.data), page.has_more) == (10, True)
    assert not customer.stripe.v1.payment_intents.list({"limit": 11}).has_more


@pytest.mark.parametrize(
    ("bounds", "found"),
    [
        pytest.param({"gte": 0}, [0, 1, 2], id="from the same second on"),
        pytest.param({"gt": 0}, [1, 2], id="after the second"),
        pytest.param({"lte": 100}, [0, 1], id="up to the same second"),
        pytest.param({"lt": 100}, [0], id="before the second"),
        pytest.param({"gt": 0, "lt": 200}, [1], id="between two"),
        pytest.param({"gt": 200}, [], id="later than all"),
    ],
)
def test_the_created_filter_keeps_exactly_its_interval(customer, bounds, found):
    paid = []
    for number in range(3):
        paid.append(customer.pay(f"k{number}"))
        customer.advance(seconds=100)
    start = paid[0].created
    places = {0: paid[0].created, 100: paid[1].created, 200: paid[2].created}
    assert places[200] - start in range(200, 205)
    created = {name: places[offset] for name, offset in bounds.items()}
    listed = customer.stripe.v1.payment_intents.list({"created": created})
    assert sorted(intent.id for intent in listed) == sorted(paid[place].id for place in found)


def test_lists_filter_by_customer_and_by_the_parent_of_a_refund(customer):
    mine = customer.pay("k1", customer="cus_a")
    other = customer.pay("k2", customer="cus_b")
    listed = customer.stripe.v1.payment_intents.list({"customer": "cus_a"})
    assert [intent.id for intent in listed] == [mine.id]
    refund = customer.refund("r1", mine.id, amount=100)
    customer.refund("r2", other.id, amount=200)
    for parent in ({"payment_intent": mine.id}, {"charge": mine.latest_charge}):
        assert [found.id for found in customer.stripe.v1.refunds.list(parent)] == [refund.id]


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"metadata": {"counterfoil": "cf_1"}}, id="no list filters by metadata"),
        pytest.param({"limit": 0}, id="a page has at least one object"),
        pytest.param({"limit": 101}, id="a page has at most 100 objects"),
        pytest.param({"starting_after": "pi_nobody"}, id="a cursor names an object"),
        pytest.param({"created": {"since": 1}}, id="an unknown bound"),
    ],
)
def test_a_question_that_cannot_be_answered_is_refused_and_never_ignored(customer, params):
    with pytest.raises(stripe.InvalidRequestError) as refused:
        customer.stripe.v1.payment_intents.list(params)
    assert refused.value.http_status == 400


def test_metadata_comes_back_as_it_was_sent(customer):
    metadata = {"counterfoil": "cf_1_1", "name": "Ærø & Sønner = 5 %", "empty": ""}
    paid = customer.pay("k1", metadata=metadata)
    read = customer.stripe.v1.payment_intents.retrieve(paid.id)
    assert read.metadata.to_dict() == {
        "counterfoil": "cf_1_1",
        "name": "Ærø & Sønner = 5 %",
    }


def test_an_event_names_the_request_and_the_key_that_caused_it(customer):
    paid = customer.pay("k1")
    events = customer.stripe.v1.events.list({"type": "payment_intent.succeeded"}).data
    (event,) = events
    assert event.request.idempotency_key == "k1"
    assert event.request.id == paid.last_response.request_id
    assert event.data.object.id == paid.id
    assert event.data.object.metadata["counterfoil"] == "cf_k1_1"
    assert customer.stripe.v1.events.retrieve(event.id).id == event.id


def test_a_replay_causes_no_event(customer):
    customer.pay("k1")
    count = len(customer.stripe.v1.events.list().data)
    customer.pay("k1")
    assert len(customer.stripe.v1.events.list().data) == count


@pytest.mark.parametrize(
    ("params", "kinds"),
    [
        pytest.param(
            {"type": "payment_intent.*"},
            {"payment_intent.created", "payment_intent.succeeded"},
            id="wildcard",
        ),
        pytest.param(
            {"types": ["refund.created", "payment_intent.created"]},
            {"refund.created", "payment_intent.created"},
            id="several",
        ),
        pytest.param({"delivery_success": False}, set(), id="none is undelivered"),
        pytest.param({"created": {"lt": 1}}, set(), id="created"),
    ],
)
def test_events_are_filtered_by_type_and_time(customer, params, kinds):
    customer.refund("r1", customer.pay("k1").id)
    assert {event.type for event in customer.stripe.v1.events.list(params)} == kinds


@pytest.mark.parametrize(
    "params",
    [
        pytest.param({"type": "a", "types": ["b"]}, id="type and types"),
        pytest.param({"types": [f"t{number}" for number in range(21)]}, id="21 types"),
        pytest.param({"idempotency_key": "k1"}, id="there is no filter by key"),
    ],
)
def test_events_refuse_what_the_contract_does_not_have(customer, params):
    with pytest.raises(stripe.InvalidRequestError):
        customer.stripe.v1.events.list(params)


def test_events_are_gone_after_30_days_and_the_object_is_not(customer):
    paid = customer.pay("k1")
    (event, *_) = customer.stripe.v1.events.list().data
    customer.advance(seconds=MONTH_SECONDS + 1)
    assert customer.stripe.v1.events.list().data == []
    with pytest.raises(stripe.InvalidRequestError):
        customer.stripe.v1.events.retrieve(event.id)
    assert customer.stripe.v1.payment_intents.retrieve(paid.id).status == "succeeded"


def test_the_life_of_a_payment_intent_is_confirm_capture_cancel(customer):
    intents = customer.stripe.v1.payment_intents
    held = customer.pay("k1", capture_method="manual")
    assert (held.status, held.amount_capturable) == ("requires_capture", 4200)
    captured = intents.capture(held.id, {"amount_to_capture": 4000}, options={})
    assert (captured.status, captured.amount_received) == ("succeeded", 4000)
    with pytest.raises(stripe.InvalidRequestError) as refused:
        intents.cancel(held.id)
    assert refused.value.code == "payment_intent_unexpected_state"
    waiting = customer.pay("k2", confirm=False)
    assert waiting.status == "requires_confirmation"
    assert intents.confirm(waiting.id).status == "succeeded"
    abandoned = customer.pay("k3", confirm=False)
    assert intents.cancel(abandoned.id).status == "canceled"
    assert [effect["object_id"] for effect in customer.truth()] == [held.id, waiting.id]


def test_a_refund_in_parts_ends_where_the_charge_ends(customer):
    paid = customer.pay("k1")
    first = customer.refund("r1", paid.id, amount=4000)
    assert (first.status, first.charge) == ("succeeded", paid.latest_charge)
    with pytest.raises(stripe.InvalidRequestError):
        customer.refund("r2", paid.id, amount=201)
    assert customer.refund("r3", paid.id).amount == 200
    assert customer.stripe.v1.refunds.retrieve(first.id).amount == 4000
