"""Which tools can double-fire: one row a reason, and the order of the page."""

from decimal import Decimal

import pytest

from effects.core.vocabulary import EffectClass
from effects.models import Connection, Tool
from reconcile.registry import second_persons
from reconcile.registry.double_fire import Risk, audit, audits
from reconcile.registry.measured import Measured
from reconcile.second_person import DEFAULT_RULES, Rule

CLAIM = "0197a000-0000-7000-8000-000000000001"
ASKED = {"lookup_kind": "http", "connection": Connection(pk=1, name="Vouchers")}


def tool(effect_class: str, **changes: object) -> Tool:
    usual = {"name": "t", "effect_class": effect_class, "contract": "stripe.v1"}
    return Tool(**(usual | changes))


@pytest.mark.parametrize(
    ("judged", "seen", "risk", "why"),
    [
        (tool("read"), Measured(), Risk.CANNOT, ""),
        (tool("read"), Measured(posts_seen=2), Risk.CAN, "2 requests seen that write"),
        (tool("read"), Measured(written=3), Risk.CAN, "agents claimed 3 calls as a write"),
        (tool("keyed_write", window_seconds=600), Measured(), Risk.IN_WINDOW, ""),
        (
            tool("keyed_write"),
            Measured(requests=3, keyed_requests=2, missing=(CLAIM,)),
            Risk.CAN,
            "1 of 3 requests came without a key",
        ),
        (
            tool("keyed_write"),
            Measured(requests=3, keyed_requests=3, changing=(CLAIM,), differing=(CLAIM,)),
            Risk.CAN,
            "the key changes between attempts",
        ),
        (tool("keyed_write", contract="twilio"), Measured(), Risk.CAN, "Twilio knows no key"),
        (
            tool("keyed_write", window_seconds=600, sends_offline=True),
            Measured(),
            Risk.CAN,
            "while the ledger is away",
        ),
        (
            tool("keyed_write", window_seconds=600, sends_offline=True),
            Measured(requests=2, keyed_requests=2),
            Risk.IN_WINDOW,
            "",
        ),
        (tool("unkeyed_write", **ASKED), Measured(), Risk.HELD, ""),
        (tool("unkeyed_write"), Measured(), Risk.CAN, "no look-up"),
        (tool("unkeyed_write", **ASKED), Measured(repeated_inside=1), Risk.CAN, "a library"),
        (tool("unkeyed_write", agent_may_repeat=True, **ASKED), Measured(), Risk.CAN, "the agent"),
        (tool("unkeyed_write", registered=False), Measured(), Risk.CAN, "nobody registered it"),
    ],
)
def test_a_tool_is_as_bad_as_the_weakest_thing_that_stands_in_the_way(
    judged: Tool, seen: Measured, risk: Risk, why: str
) -> None:
    found = audit(judged, seen)
    assert found.risk is risk
    assert found.can_double_fire is (risk in {Risk.CAN, Risk.HELD})
    assert bool(found.against) is (risk is Risk.CAN)
    assert why in "; ".join(found.against)
    assert found.holds
    assert not ("knows no key" in why and "key, honoured" in "; ".join(found.holds))


def test_the_worst_stands_first_and_among_equals_the_busiest() -> None:
    found = audits(
        [
            tool("read", name="a"),
            tool("keyed_write", name="b", window_seconds=600),
            tool("unkeyed_write", name="c"),
            tool("unkeyed_write", name="d"),
            tool("unkeyed_write", name="e", **ASKED),
        ],
        {"d": Measured(calls=9), "c": Measured(calls=2)},
    )
    assert [one.tool.name for one in found] == ["d", "c", "e", "b", "a"]


@pytest.mark.parametrize(
    ("judged", "rules", "words"),
    [
        (tool("read"), DEFAULT_RULES, "not needed"),
        (tool("unkeyed_write"), DEFAULT_RULES, "from 500"),
        (tool("keyed_write"), (Rule(effect_class=EffectClass.UNKEYED_WRITE),), "no rule"),
        (tool("keyed_write"), (Rule(),), "always"),
        (
            tool("keyed_write"),
            (Rule(amount_from=Decimal("1E+2"), currency="EUR"), Rule(amount_from=Decimal(900))),
            "from 100 EUR",
        ),
    ],
)
def test_from_which_amount_a_second_person_is_needed(
    judged: Tool, rules: tuple[Rule, ...], words: str
) -> None:
    assert second_persons.words(judged, rules) == words
