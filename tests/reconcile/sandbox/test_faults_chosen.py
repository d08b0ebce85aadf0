"""The choice of a fault is a pure function of the plan and the request."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconcile.sandbox.faults import (
    Asked,
    ChosenFault,
    Fault,
    Plan,
    PlanRefused,
    Rule,
    choose,
    parse_header,
    parse_plan,
)

PAYMENT = Asked(
    operation="payment_intents.create", is_write=True, idempotency_key="k1", marker="cf_1_1"
)
EVERY_WRITE_FAILS = Plan(rates={Fault.ERROR_500: 1.0})


@pytest.mark.parametrize(
    ("plan", "asked", "kind"),
    [
        pytest.param(Plan(), PAYMENT, Fault.NONE, id="no plan, no fault"),
        pytest.param(EVERY_WRITE_FAILS, PAYMENT, Fault.ERROR_500, id="a rate of 1 hits all"),
        pytest.param(
            EVERY_WRITE_FAILS, replace(PAYMENT, is_write=False), Fault.NONE, id="reads are spared"
        ),
        pytest.param(
            Plan(rates={Fault.ERROR_500: 1.0}, operations=("refunds.create",)),
            PAYMENT,
            Fault.NONE,
            id="another operation",
        ),
        pytest.param(
            EVERY_WRITE_FAILS,
            replace(PAYMENT, fault_header="none"),
            Fault.NONE,
            id="the request's own word comes first",
        ),
        pytest.param(
            Plan(rules=(Rule(fault=Fault.DELAY, marker="cf_1_1"),), rates={Fault.ERROR_500: 1.0}),
            PAYMENT,
            Fault.DELAY,
            id="a rule comes before the rates",
        ),
        pytest.param(
            Plan(rules=(Rule(fault=Fault.DELAY, marker="cf_1_1"),)),
            replace(PAYMENT, send_number=1),
            Fault.NONE,
            id="a rule is over after the first send",
        ),
        pytest.param(
            Plan(rules=(Rule(fault=Fault.DELAY, sends_max=None),)),
            replace(PAYMENT, send_number=9),
            Fault.DELAY,
            id="unless it has no limit",
        ),
    ],
)
def test_the_first_that_speaks_about_the_request_decides(plan, asked, kind):
    assert choose(plan, asked).kind is kind


@given(seed=st.integers(), key=st.text(min_size=1), sends=st.integers(0, 5))
def test_the_same_seed_and_request_meet_the_same_fault(seed, key, sends):
    plan = Plan(seed=seed, rates=dict.fromkeys(Fault, 0.1))
    asked = replace(PAYMENT, idempotency_key=key, send_number=sends)
    assert choose(plan, asked) == choose(plan, replace(asked))


def test_the_rates_are_what_many_requests_meet():
    plan = Plan(seed=7, rates={Fault.DROP_BEFORE: 0.1, Fault.ERROR_500: 0.3})
    met = [choose(plan, replace(PAYMENT, idempotency_key=f"k{n}")).kind for n in range(4_000)]
    assert 0.08 < met.count(Fault.DROP_BEFORE) / len(met) < 0.12
    assert 0.27 < met.count(Fault.ERROR_500) / len(met) < 0.33


def test_another_seed_is_another_world():
    def world(seed: int) -> list[Fault]:
        plan = Plan(seed=seed, rates={Fault.ERROR_500: 0.5})
        return [choose(plan, replace(PAYMENT, idempotency_key=f"k{n}")).kind for n in range(64)]

    assert world(7) == world(7)
    assert world(7) != world(8)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("drop_before", (Fault.DROP_BEFORE, None)),
        (" delay = 2.5 ", (Fault.DELAY, 2.5)),
    ],
)
def test_a_header_names_a_fault_and_may_say_how_long(text, read):
    assert parse_header(text) == read


@pytest.mark.parametrize(
    "text", ["", "explode", "delay=soon", "delay=-1", "delay=1e9", "delay=nan"]
)
def test_a_header_that_cannot_be_read_is_refused(text):
    with pytest.raises(PlanRefused):
        parse_header(text)


def test_a_delay_lasts_as_long_as_the_plan_says_unless_the_request_says_more():
    plan = Plan(rates={Fault.DELAY: 1.0}, delay_seconds=0.5)
    assert choose(plan, PAYMENT) == ChosenFault(kind=Fault.DELAY, seconds=0.5)
    longer = replace(PAYMENT, fault_header="delay=2")
    assert choose(plan, longer) == ChosenFault(kind=Fault.DELAY, seconds=2.0)


@pytest.mark.parametrize(
    "raw",
    [
        None,
        {"seed": "7"},
        {"seed": True},
        {"rates": []},
        {"rates": {"delay": -0.1}},
        {"rates": {"delay": "often"}},
        {"rules": {}},
        {"rules": [{"fault": "delay", "colour": "red"}]},
        {"rules": [{"operation": "refunds.create"}]},
        {"delay_seconds": 1e9},
    ],
)
def test_a_plan_that_cannot_be_read_is_refused(raw):
    with pytest.raises(PlanRefused):
        parse_plan(raw)
