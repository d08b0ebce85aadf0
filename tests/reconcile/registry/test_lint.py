"""What traffic makes one say about a tool: one row a rule, and what each says to do."""

import pytest

from effects.core.redaction import NO_REDACTION, Mode, Redaction, Rule
from effects.core.redaction_paths import parse_path
from effects.models import Tool
from reconcile.registry.lint import RULES, lint
from reconcile.registry.measured import NOTHING, Measured, from_json, to_json

CLAIM = "0197a000-0000-7000-8000-000000000001"


def tool(**settings: object) -> Tool:
    usual = {"name": "t", "effect_class": "keyed_write", "summary": "Charge", "window_seconds": 600}
    return Tool(**(usual | settings))


@pytest.mark.parametrize(
    ("settings", "seen", "words", "bad"),
    [
        (
            {"effect_class": "read"},
            Measured(posts_seen=14, posts=(CLAIM,)),
            "declared read, but 14 POSTs seen",
            True,
        ),
        (
            {"effect_class": "read"},
            Measured(calls=1, written=1, recent=(CLAIM,)),
            "declared read, but agents claimed 1 call as a write",
            True,
        ),
        (
            {"effect_class": "unkeyed_write"},
            Measured(requests=3, keyed_requests=3, recent=(CLAIM,)),
            "a key was seen on each of 3 requests: keyed write?",
            False,
        ),
        (
            {},
            Measured(requests=4, keyed_requests=4, changing=(CLAIM,), differing=(CLAIM,)),
            "key derived from a value that changes between attempts",
            True,
        ),
        (
            {},
            Measured(requests=4, keyed_requests=3, missing=(CLAIM,)),
            "1 of 4 requests arrived without a key",
            True,
        ),
        (
            {},
            Measured(requests=4, keyed_requests=4, differing=(CLAIM,)),
            "requests carried another key than was granted",
            True,
        ),
        (
            {},
            Measured(calls=40, recent=(CLAIM,)),
            "key not seen on the wire in the last 40 calls",
            False,
        ),
        (
            {"effect_class": "unkeyed_write"},
            Measured(repeated_inside=2, recent=(CLAIM,)),
            "a library repeated 2 requests by itself, without a key",
            True,
        ),
        (
            {},
            Measured(calls=20, unknown=1, requests=1, keyed_requests=1, recent_unknown=(CLAIM,)),
            "unknown rate 5.0 %, above 5 %",
            True,
        ),
        (
            {"amount_field": "price"},
            Measured(read=3, amount_missed=3, recent=(CLAIM,)),
            "amount path price matches nothing in the last 3 calls",
            True,
        ),
        (
            {"amount_field": "price"},
            Measured(read=3, amount_missed=1, recent=(CLAIM,)),
            "amount path price matches nothing in 1 of the last 3 calls",
            False,
        ),
        (
            {"customer_field": "buyer.id"},
            Measured(read=1, customer_missed=1, recent=(CLAIM,)),
            "customer path buyer.id matches nothing in the last call",
            True,
        ),
        (
            {"summary": "Charge {order}"},
            Measured(read=2, holes_missed=("order",), recent=(CLAIM,)),
            "summary names {order}, which the last 2 calls did not have",
            False,
        ),
    ],
)
def test_what_was_seen_is_said_with_what_to_do_and_the_calls_that_it_rests_on(
    settings: dict[str, object], seen: Measured, words: str, *, bad: bool
) -> None:
    (said,) = [remark for remark in lint(tool(**settings), seen) if remark.words == words]
    assert said.bad is bad
    assert said.todo
    assert said.claims == (CLAIM,)


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        pytest.param({"effect_class": "read"}, Measured(calls=900), id="reads are read"),
        pytest.param(
            {}, Measured(calls=900, unknown=44, requests=9, keyed_requests=9), id="below the rate"
        ),
        pytest.param({}, Measured(calls=19, unknown=19, requests=1, keyed_requests=1), id="few"),
        pytest.param({"effect_class": "unkeyed_write"}, Measured(changing=(CLAIM,)), id="no key"),
        pytest.param({}, Measured(read=9, amount_missed=9), id="no amount is promised"),
        pytest.param({"amount_field": "a"}, Measured(read=9), id="the amount is there"),
        pytest.param({"amount_field": "a"}, Measured(read=0, amount_missed=0), id="nothing read"),
        pytest.param({}, NOTHING, id="nothing was measured"),
    ],
)
def test_traffic_that_is_as_it_should_be_is_not_spoken_of(
    settings: dict[str, object], seen: Measured
) -> None:
    assert [said for rule in RULES if (said := rule(tool(**settings), seen))] == []


def test_the_worst_stands_first() -> None:
    found = lint(tool(effect_class="unkeyed_write"), Measured(requests=1, keyed_requests=1))
    assert [remark.bad for remark in found] == sorted((r.bad for r in found), reverse=True)
    assert all(remark.todo for remark in found)


def test_facts_are_read_as_they_were_kept_and_what_is_not_known_is_left_out() -> None:
    seen = Measured(calls=3, recent=(CLAIM,), holes_missed=("a",))
    assert from_json(to_json(seen)) == seen
    assert from_json({"calls": 3, "of_a_later_version": True}) == Measured(calls=3)


CHARGE = {
    "summary": "Charge {amount} to {customer} for {order.id}",
    "amount_field": "price.value",
    "currency_field": "=EUR",
    "customer_field": "buyer.id",
}


def hides(path: str, mode: Mode) -> Redaction:
    return Redaction(rules=(Rule(path=parse_path(path), mode=mode),))


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("$.price.value", "price.value"),
        ("$.price", "price.value"),  # all of it goes, and the value with it
        ("$..id", "buyer.id, order.id"),
        ("$.buyer['id']", "buyer.id"),
        ("$", "price.value, buyer.id, order.id"),
        ("$.amount", ""),  # the summary's word for it, no member of the arguments
        ("$.price.value.deeper", ""),
        ("$.card", ""),
    ],
)
def test_a_field_that_people_and_look_ups_need_is_named_where_a_rule_takes_it_away(path, fields):
    def said(mode: Mode) -> list[tuple[str, bool]]:
        found = lint(tool(**CHARGE), NOTHING, hides(path, mode))
        return [
            (one.words, one.bad) for one in found if "stored" in one.todo or "reveal" in one.todo
        ]

    dropped = [(f"a redaction rule drops {fields}", True)] if fields else []
    hidden = [(f"hidden before it is stored: {fields}", False)] if fields else []
    assert (said(Mode.DROP), said(Mode.HIDE)) == (dropped, hidden)


def test_without_a_rule_nothing_is_said_of_hidden_fields_whatever_they_are_called():
    secret = tool(**CHARGE | {"customer_field": "password"})
    for nothing in (NO_REDACTION, Redaction()):
        assert lint(secret, NOTHING, nothing) == lint(secret, NOTHING)
