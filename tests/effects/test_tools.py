"""What is said about a tool, and what a change of it does to calls that are undecided."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.core.vocabulary import EffectClass
from effects.models import Connection, Tool
from effects.times import read_duration, write_duration
from effects.tools import consequences, differences, is_weaker, lint, snapshot

STRIPE = Connection(name="Stripe, test", kind="stripe")
STATUS = Connection(name="Parcels", kind="http")
KEYED = EffectClass.KEYED_WRITE
UNKEYED = EffectClass.UNKEYED_WRITE


def tool(**more: Any) -> Tool:
    settings: dict[str, Any] = {
        "name": "refund_payment",
        "effect_class": KEYED,
        "window_seconds": 86_400,
        "contract": "stripe.v1",
        "connection": STRIPE,
        "lookup_kind": "stripe.refunds",
        "summary": "Refund {amount}",
    }
    return Tool(**{**settings, **more})


@pytest.mark.parametrize(
    ("entered", "remarks"),
    [
        pytest.param(tool(), [], id="nothing to say"),
        pytest.param(
            tool(effect_class=UNKEYED, window_seconds=None, lookup_kind=""),
            [
                "! unkeyed write, no look-up: every timeout will need a person",
                "unkeyed write, although Stripe takes a key (Idempotency-Key)",
            ],
            id="an unkeyed write that nobody can ask about",
        ),
        pytest.param(
            tool(window_seconds=None, contract="generic"),
            ["window not published: it counts as closed, so no call is repeated with its key"],
            id="a window that nobody published",
        ),
        pytest.param(
            tool(contract="gone.v1"),
            ["! the contract gone.v1 is not known here: nothing is taken from it"],
            id="a contract that is not there any more",
        ),
        pytest.param(
            tool(contract="zendesk", window_seconds=7200),
            ["! the contract is Zendesk's, the connection Stripe, test is not"],
            id="a connection of another provider",
        ),
        pytest.param(
            tool(window_seconds=30 * 86_400),
            ["! window set to 30 d, your own figure, Stripe promises at least 24 h"],
            id="a window longer than the provider's word",
        ),
        pytest.param(
            tool(registered=False, effect_class=UNKEYED, window_seconds=None, summary=""),
            [
                "! seen in a claim, registered by nobody: counts as an unkeyed write",
                "no summary: people read raw arguments",
            ],
            id="a tool that appeared by itself",
        ),
        pytest.param(
            tool(connection=None),
            ["! look-up without a connection: nobody can be asked"],
            id="a look-up into the void",
        ),
        pytest.param(
            tool(connection=STATUS),
            ["! look-up and connection Parcels do not fit: nobody can be asked"],
            id="a look-up at the wrong place",
        ),
        pytest.param(
            tool(lookup_kind=""),
            ["no look-up: after a timeout only a retry with the key can tell"],
            id="a keyed write without look-up",
        ),
        pytest.param(
            tool(effect_class=EffectClass.READ, window_seconds=None, lookup_kind="", summary=""),
            [],
            id="a read needs none of it",
        ),
    ],
)
def test_lint_says_what_will_go_wrong_first(entered: Tool, remarks: list[str]) -> None:
    assert [f"{'! ' * one.bad}{one.words}" for one in lint(entered)] == remarks


def test_a_new_class_leaves_undecided_calls_with_the_class_they_were_granted_with() -> None:
    before = snapshot(tool(effect_class=UNKEYED))
    after = snapshot(tool(effect_class=KEYED))
    found = consequences(before, after, {UNKEYED: 12, KEYED: 3})
    assert [(one.count, one.words.split(":")[0]) for one in found] == [
        (15, "undecided calls of this tool"),
        (12, "of them stay unkeyed writes"),
    ]


def test_making_a_write_a_read_says_that_its_undecided_calls_lose_their_guard() -> None:
    before, after = snapshot(tool()), snapshot(tool(effect_class=EffectClass.READ))
    found = consequences(before, after, {KEYED: 2})
    assert any("no longer guarded" in one.words and one.count == 2 for one in found)
    assert is_weaker(before, after)
    assert not is_weaker(after, before)


@pytest.mark.parametrize(
    ("margin", "words"),
    [(200, "1 m earlier"), (80, "1 m later")],
)
def test_a_margin_moves_the_deadline_of_calls_that_have_a_key(margin: int, words: str) -> None:
    before, after = snapshot(tool(margin_seconds=140)), snapshot(tool(margin_seconds=margin))
    (one,) = consequences(before, after, {KEYED: 9, UNKEYED: 4})
    assert one.count == 9
    assert one.words.endswith(words)
    assert consequences(before, after, {UNKEYED: 4}) == ()


def test_a_look_up_that_comes_or_goes_touches_every_undecided_call() -> None:
    with_one, without = snapshot(tool()), snapshot(tool(lookup_kind=""))
    (gained,) = consequences(without, with_one, {KEYED: 5})
    (lost,) = consequences(with_one, without, {KEYED: 5})
    assert "can be asked about from now on" in gained.words
    assert "can no longer be asked about" in lost.words


def test_a_change_of_words_has_no_consequences() -> None:
    before, after = snapshot(tool()), snapshot(tool(summary="Pay back {amount}", owner="Ana"))
    assert consequences(before, after, {KEYED: 5}) == ()


def test_differences_are_told_in_words() -> None:
    before = snapshot(tool(window_seconds=None, effect_class=UNKEYED, hold_in_turn=False))
    after = snapshot(tool(hold_in_turn=True))
    told = [f"{one.field}: {one.after}, was {one.before}" for one in differences(before, after)]
    assert told == [
        "Class: keyed write, was unkeyed write",
        "Safe-retry window: 24 h, was not published",
        "Hold equal calls of one turn: yes, was no",
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90 s", 90),
        ("15m", 900),
        ("24 hours", 86_400),
        ("1 d 2 h", 93_600),
        ("2 min 20 sec", 140),
        ("1 DAY", 86_400),
        ("24", None),
        ("", None),
        ("h", None),
        ("1 hoax", None),
        ("1 h later", None),
        ("-5 s", None),
        ("1.5 h", None),
    ],
)
def test_durations_need_their_unit(text: str, seconds: int | None) -> None:
    assert read_duration(text) == seconds


@given(st.integers(min_value=0, max_value=10**9))
def test_what_is_written_is_read_back(seconds: int) -> None:
    assert read_duration(write_duration(seconds)) == seconds
