"""Meets an exception for real, and asks how it is sorted and which rows of the table it met."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from effects.core.failures import ErrorRules, Failure, classify_exception
from effects.core.failures.chain import chain_of, name_of, names_of
from effects.core.failures.row import ErrorProof
from effects.core.failures.table import LISTED
from effects.core.vocabulary import Outcome

NOT_SENT, REFUSED, UNKNOWN = Outcome.NOT_SENT, Outcome.REFUSED, Outcome.UNKNOWN
STORED = Outcome.REFUSED_STORED


def error_of(send: Callable[[], object]) -> BaseException:
    """The exception of a send; a send that succeeds fails the test."""
    try:
        send()
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is sorted
        return error
    pytest.fail("nothing was raised")


def failure_of(send: Callable[[], object], **how: Any) -> Failure:
    """How the exception of a send is sorted; a send that succeeds fails the test."""
    return classify_exception(error_of(send), **how)


def rows_met(error: BaseException) -> set[str]:
    """The names of the rows that the exceptions of a chain fall under."""
    met = set()
    for one in chain_of(error, None):
        exact, *above = names_of(type(one))
        met |= {exact} & set(LISTED)
        met |= {name for name in above if name in ANSWERED_ROWS}
    return met


ANSWERED_ROWS = frozenset(
    name for name, row in LISTED.items() if row.proof is ErrorProof.ITS_ANSWER
)


@dataclass(frozen=True, slots=True)
class Case:
    """Something that really goes wrong: which rows it meets, and how it must be sorted."""

    rows: str
    outcome: Outcome
    send: Callable[[], object]
    rules: ErrorRules | None = None

    def check(self) -> Failure:
        error = error_of(self.send)
        failure = classify_exception(error, contract=self.rules)
        chain = [name_of(type(one)) for one in chain_of(error, None)]
        assert set(self.rows.split()) <= rows_met(error), chain
        assert failure.outcome is self.outcome, (failure.why, chain)
        return failure


def every_case(cases: Iterable[Case]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", [pytest.param(case, id=case.rows) for case in cases])
