"""Two responses of one turn side by side: what the second says otherwise."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.turn_parts.compare import Change, Said, compare


def said(tool: str = "charge", call_id: str = "a", **changes: object) -> Said:
    usual = {"position": 0, "complete": True, "arguments": b"1", "arguments_bytes": 1}
    return Said(**{**usual, "tool": tool, "call_id": call_id, **changes})  # type: ignore[arg-type]  # a call's own


@pytest.mark.parametrize(
    ("first", "second", "changes"),
    [
        pytest.param([said()], [said()], [(Change.SAME,)], id="the same"),
        pytest.param([said()], [said(call_id="b")], [(Change.OTHER_ID,)], id="another id"),
        pytest.param(
            [said()], [said(arguments=b"2")], [(Change.OTHER_ARGUMENTS,)], id="other arguments"
        ),
        pytest.param(
            [said()],
            [said(call_id="b", arguments=b"2")],
            [(Change.OTHER_ID, Change.OTHER_ARGUMENTS)],
            id="the same tool, else nothing alike",
        ),
        pytest.param([said()], [], [(Change.LOST,)], id="lost"),
        pytest.param([], [said()], [(Change.ADDED,)], id="added"),
        pytest.param(
            [said()], [said(tool="mail", call_id="b")], [(Change.LOST,), (Change.ADDED,)],
            id="another tool is another call",
        ),
        pytest.param(
            [said()], [said(tool="mail")], [(Change.OTHER_TOOL,)], id="another tool under its id"
        ),
        pytest.param(
            [said(complete=False, arguments=b"{")], [said()], [(Change.OTHER_END,)],
            id="cut, then whole: nobody says that its arguments differ",
        ),
        pytest.param(
            [said(complete=False, arguments=b"{")],
            [said(complete=False, arguments=b'{"')],
            [(Change.SAME,)],
            id="both cut: nobody knows what the whole would have been",
        ),
        pytest.param(
            [said(), said(call_id="b", position=1, arguments=b"2")],
            [said(call_id="c", position=0, arguments=b"2"), said(call_id="d", position=1)],
            [(Change.OTHER_ID, Change.OTHER_PLACE), (Change.OTHER_ID, Change.OTHER_PLACE)],
            id="two alike are told apart by their arguments, whatever their order",
        ),
        pytest.param(
            [said(call_id="")], [said(call_id="")], [(Change.SAME,)], id="no id is no identity"
        ),
    ],
)  # fmt: skip
def test_every_difference_is_named(first, second, changes):
    assert [pair.changes for pair in compare(first, second)] == changes


CALLS = st.lists(
    st.builds(
        said,
        tool=st.sampled_from("abc"),
        call_id=st.sampled_from(["", "x", "y", "z"]),
        arguments=st.sampled_from([b"1", b"2"]),
        complete=st.booleans(),
        position=st.integers(0, 5),
    ),
    max_size=8,
)


@given(CALLS, CALLS)
@settings(deadline=None)
def test_each_call_of_both_responses_stands_in_exactly_one_pair(first, second):
    pairs = compare(first, second)
    assert [pair.first for pair in pairs if pair.first is not None] == first
    seconds = Counter(pair.second for pair in pairs if pair.second is not None)
    assert seconds == Counter(second)
    assert all(pair.changes for pair in pairs)


@given(CALLS)
@settings(deadline=None)
def test_a_response_that_is_repeated_word_for_word_has_no_difference(calls):
    assert all(pair.same for pair in compare(calls, calls))
