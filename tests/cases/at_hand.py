"""The cases of this folder, for tests that speak of one by its id."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from effects.core.streams import StreamRecord
from tests.cases import bank, streams
from tests.cases.fields import Fields

FOLDER = Path(__file__).parent


@cache
def the_cases() -> dict[str, bank.Case]:
    return {case.id: case for case in map(bank.read, bank.files(FOLDER))}


def the_case(case_id: str) -> bank.Case:
    return the_cases()[case_id]


def response(case_id: str, **changes: object) -> streams.Response:
    """The response of a stream case; a change replaces a member of its input."""
    given = {**the_case(case_id).input, **changes}
    given.pop("variants", None)
    return streams.response_of(Fields("input", given))


def record(case_id: str, **changes: object) -> StreamRecord:
    """What is known of the case's response once it is over."""
    (_, found), *_ = list(response(case_id, **changes).readings())
    return found
