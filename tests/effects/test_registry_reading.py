"""Arguments that a model wrote, read as a line, an amount and a customer, whatever they are."""

import json
from dataclasses import dataclass, replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.registry import amount, customer, summary_line, template_fault


@dataclass(slots=True, kw_only=True)
class ToolRead:
    name: str = "charge_card"
    contract: str = "stripe.v1"
    summary: str = "Charge {amount} to {customer} for order {metadata.order}"
    amount_field: str = "amount"
    amount_is_minor: bool = True
    currency_field: str = "currency"
    customer_field: str = "customer"


CHARGE = ToolRead()
PLAIN = ToolRead(summary="", amount_field="", currency_field="", customer_field="")
ARGUMENTS = (
    '{"amount": 14900, "currency": "eur", "customer": "cus_NffrFeUfNV2Hi9X2", '
    '"metadata": {"order": 8841}, "items": [{"sku": "tent-2"}, {"sku": "peg"}]}'
)


@pytest.mark.parametrize(
    ("tool", "arguments", "line"),
    [
        pytest.param(
            CHARGE, ARGUMENTS, "Charge 149.00 EUR to cus_…9X2 for order 8841", id="the whole line"
        ),
        pytest.param(
            replace(CHARGE, summary="{items.1.sku} of {items}, {metadata}"),
            ARGUMENTS,
            "peg of 2 items, (not given)",
            id="a place in a list, a list, an object",
        ),
        pytest.param(
            CHARGE,
            '{"amount": 14900}',
            "Charge 14900 to (not given) for order (not given)",
            id="no currency: the bare figure",
        ),
        pytest.param(
            CHARGE,
            '"{\\"amount\\": 100, \\"currency\\": \\"jpy\\"}"',
            "Charge 100 JPY to (not given) for order (not given)",
            id="arguments inside a string",
        ),
        pytest.param(CHARGE, "not json", "charge_card, arguments cannot be read", id="no JSON"),
        pytest.param(CHARGE, "[1]", "charge_card, arguments cannot be read", id="no object"),
        pytest.param(CHARGE, None, "charge_card, arguments cannot be read", id="none kept"),
        pytest.param(PLAIN, "{}", "charge_card", id="no template, no arguments"),
        pytest.param(
            PLAIN,
            '{"to": "ana@example.org", "deep": {"a": 1}, "urgent": true, "copies": 2.50, "x": 1}',
            "charge_card: to ana@example.org, urgent yes, copies 2.5",
            id="no template: the first plain arguments",
        ),
        pytest.param(
            replace(CHARGE, summary=""),
            ARGUMENTS,
            "charge_card: 149.00 EUR, cus_…9X2",
            id="no template: amount and customer",
        ),
        pytest.param(
            replace(CHARGE, summary="Send {text}"),
            '{"text": "paid\\u202e 001\\n\\u0007second row"}',
            "Send paid 001 second row",
            id="nothing turns the line round or ends it",
        ),
        pytest.param(
            replace(CHARGE, summary="Pay {n}"),
            '{"n": 1e999999999}',
            "Pay 1e999999999",
            id="a number of a thousand million digits stays short",
        ),
    ],
)
def test_a_line_for_people(tool: ToolRead, arguments: str | None, line: str) -> None:
    assert summary_line(tool, arguments) == line


@pytest.mark.parametrize(
    ("tool", "arguments", "money"),
    [
        pytest.param(CHARGE, ARGUMENTS, "149.00 EUR", id="minor units"),
        pytest.param(
            replace(CHARGE, amount_is_minor=False),
            '{"amount": "149.90", "currency": "EUR"}',
            "149.90 EUR",
            id="whole units, written as text",
        ),
        pytest.param(
            replace(CHARGE, amount_field="price.value", currency_field="=KWD"),
            '{"price": {"value": 1500}}',
            "1.500 KWD",
            id="a path, and a currency that the tool fixes",
        ),
        pytest.param(
            CHARGE,
            '{"amount": 9007199254740993, "currency": "eur"}',
            "90,071,992,547,409.93 EUR",
            id="beyond a float's reach",
        ),
        pytest.param(CHARGE, '{"amount": 14900}', None, id="no currency"),
        pytest.param(CHARGE, '{"amount": 14900, "currency": 978}', None, id="currency no word"),
        pytest.param(CHARGE, '{"amount": "a lot", "currency": "eur"}', None, id="no number"),
        pytest.param(CHARGE, '{"amount": true, "currency": "eur"}', None, id="true is not 1"),
        pytest.param(CHARGE, '{"amount": 1e400, "currency": "eur"}', None, id="absurdly large"),
        pytest.param(PLAIN, ARGUMENTS, None, id="a tool without an amount"),
    ],
)
def test_amounts_are_exact_or_not_there(tool: ToolRead, arguments: str, money: str | None) -> None:
    found = amount(tool, arguments)
    assert (None if found is None else str(found)) == money


def test_amounts_are_decimals() -> None:
    found = amount(CHARGE, '{"amount": 10, "currency": "eur"}')
    assert found is not None
    assert found.amount == Decimal("0.10")


def test_customers_are_named_in_full() -> None:
    assert customer(CHARGE, ARGUMENTS) == "cus_NffrFeUfNV2Hi9X2"
    assert customer(CHARGE, '{"customer": {"id": "cus_1"}}') is None
    assert customer(replace(CHARGE, customer_field="customer.id"), '{"customer": {"id": 7}}') == "7"
    assert customer(PLAIN, ARGUMENTS) is None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["amount", "currency", "customer", "metadata", "order", "0", ""]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(arguments=_JSON | st.text(max_size=80), template=st.text(max_size=40))
def test_no_arguments_and_no_template_make_it_raise(arguments: object, template: str) -> None:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    for tool in (CHARGE, PLAIN, replace(CHARGE, summary=template or "{amount}{a.b}{0}{}")):
        line = summary_line(tool, text)
        assert len(line) <= 200
        assert line.isprintable() or not line.isascii()
        assert "\n" not in line
        amount(tool, text)
        customer(tool, text)


@pytest.mark.parametrize(
    ("template", "fault"),
    [
        ("Charge {amount} to {metadata.order-id}", None),
        ("", None),
        ("Charge {}", "is not a field"),
        ("Charge {a b}", "is not a field"),
        ("Charge {a..b}", "is not a field"),
        ("Charge {amount", "open or closed alone"),
        ("Charge amount}", "open or closed alone"),
    ],
)
def test_templates_say_what_is_wrong_with_them(template: str, fault: str | None) -> None:
    found = template_fault(template)
    assert (found is None) if fault is None else (found is not None and fault in found)
