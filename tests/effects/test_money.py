"""Amounts: the right number of places for each currency, and nothing lost on the way."""

from decimal import Decimal

import pytest

from effects.money import from_major, from_minor


@pytest.mark.parametrize(
    ("minor", "currency", "contract", "shown"),
    [
        pytest.param(14900, "eur", "", "149.00 EUR", id="euros have cents"),
        pytest.param(18400, "JPY", "", "18,400 JPY", id="yen have nothing smaller"),
        pytest.param(1234567, "KWD", "", "1,234.567 KWD", id="dinars have thousandths"),
        pytest.param(15, "CLF", "", "0.0015 CLF", id="an accounting unit has four places"),
        pytest.param(500, "MGA", "", "5.00 MGA", id="ISO 4217 gives ariary two places"),
        pytest.param(500, "MGA", "stripe.v1", "500 MGA", id="Stripe gives ariary none"),
        pytest.param(500, "UGX", "", "500 UGX", id="ISO 4217 gives shillings none"),
        pytest.param(500, "UGX", "stripe.v1", "5.00 UGX", id="Stripe gives shillings two"),
        pytest.param(-6450, "EUR", "", "-64.50 EUR", id="a refund may be written negative"),
        pytest.param(0, "EUR", "", "0.00 EUR", id="nothing is an amount"),
        pytest.param(
            9007199254740993, "EUR", "", "90,071,992,547,409.93 EUR", id="beyond a float's reach"
        ),
    ],
)
def test_minor_units_are_shown_in_whole_ones(
    minor: int, currency: str, contract: str, shown: str
) -> None:
    assert str(from_minor(minor, currency, contract=contract)) == shown


@pytest.mark.parametrize(
    ("amount", "shown"),
    [
        pytest.param("149", "149.00 EUR", id="places are filled up"),
        pytest.param("149.5", "149.50 EUR", id="half a place too"),
        pytest.param("0.005", "0.005 EUR", id="a fraction of a cent is not rounded away"),
        pytest.param("0.00000000000001", "0.0000000000… EUR", id="a long fraction says it is cut"),
        pytest.param("1E+3", "1,000.00 EUR", id="an exponent is written out"),
    ],
)
def test_amounts_in_whole_units_keep_every_digit(amount: str, shown: str) -> None:
    assert str(from_major(Decimal(amount), "EUR")) == shown
