"""The guide's tables say what the code does: every word, and every row of the decision table."""

import re

import pytest

from effects.core.recovery import ENDPOINTS
from effects.core.recovery_messages import (
    EndpointContract,
    RecoveryRecord,
    RequestFailure,
)
from effects.core.recovery_words import MECHANISMS, OBSERVATIONS
from effects.core.streams import Protocol
from effects.core.vocabulary import Outcome
from tests.effects.core.recovering import (
    A_DAY,
    CUT_TEXT,
    ENDED_WELL,
    KEYED,
    LIMITED,
    LOST,
    READABLE,
    REFRESHES,
    SENT,
    UNAUTHORISED,
    UNSENT,
    a_key,
    background,
    decided,
    lost_call,
)
from tests.support.stack import ROOT

PAGE = (ROOT / "docs" / "streams.md").read_text()


def table(heading: str) -> list[tuple[str, ...]]:
    """The cells of the table under a heading, without its head; words without their marks."""
    part = PAGE.split(f"{heading}\n", 1)[1]
    lines = re.search(r"(?:^\|.*\n)+", part, flags=re.MULTILINE)
    assert lines is not None
    rows = [line.strip("|").split("|") for line in lines[0].splitlines()[2:]]
    return [tuple(cell.strip().strip("`") for cell in row) for row in rows]


def test_the_mechanisms_and_the_observations_are_those_of_the_code():
    assert table("Nothing is started by the decision itself.") == [
        (str(word), says) for word, says in MECHANISMS.items()
    ]
    assert table("### Observations") == [
        (str(word), seen.says, seen.uncertain, seen.then) for word, seen in OBSERVATIONS.items()
    ]


REFUSED = RequestFailure(outcome=Outcome.REFUSED, http_status=400)
EXAMPLES = (
    (ENDED_WELL, LOST, None),
    (RecoveryRecord(calls=(lost_call(),)), UNSENT, None),
    (RecoveryRecord(calls=(lost_call(keyed=a_key(), contract=A_DAY),)), UNSENT, None),
    (RecoveryRecord(cancelled=True), UNSENT, None),
    (SENT, UNSENT, None),
    (SENT, UNAUTHORISED, REFRESHES),
    (RecoveryRecord(refreshes_made=1), UNAUTHORISED, REFRESHES),
    (SENT, UNAUTHORISED, None),
    (SENT, LIMITED, None),
    (SENT, REFUSED, None),
    (background(), LOST, READABLE),
    (RecoveryRecord(keyed=a_key()), LOST, KEYED),
    (CUT_TEXT, LOST, None),
    (SENT, LOST, EndpointContract()),
)
"""An example of each row of the decision table, in its order."""


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_each_row_of_the_decision_table_is_what_the_function_decides(number):
    rows = table("### The decision table")
    assert len(rows) == len(EXAMPLES)
    decision = decided(*EXAMPLES[number])
    assert rows[number][1:] == (decision.step, decision.mechanism)


def test_what_the_endpoints_promise_is_what_the_contracts_say():
    rows = {
        name: (read_on, replay)
        for name, read_on, replay in table("### What the model endpoints promise")
    }
    names = {
        Protocol.ANTHROPIC: "Anthropic Messages",
        Protocol.OPENAI_CHAT: "OpenAI Chat Completions",
        Protocol.OPENAI_RESPONSES: "OpenAI Responses",
    }
    for protocol, contract in ENDPOINTS.items():
        read_on, replay = rows[names[protocol]]
        assert replay == "no"
        assert contract.replay is None
        if contract.resume is None:
            assert read_on == "no"
        else:
            assert f"{contract.resume.kept_seconds} s" in read_on


@pytest.mark.parametrize("number", range(len(re.findall(r"```python\n", PAGE))))
def test_the_examples_are_python(number):
    compile(re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)[number], "streams.md", "exec")
