"""The whole table of exceptions, and the rows and rules that a tool adds to it."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from effects.core.answers import Contract
from effects.core.failures.chain import name_of, names_of
from effects.core.failures.row import Client, ErrorProof, Row
from effects.core.failures.rows_http import HTTP_CLIENTS
from effects.core.failures.rows_python import PYTHON_ITSELF
from effects.core.failures.rows_sdk import SDKS
from effects.core.refusals import RefusalTable

__all__ = ["CLIENTS", "LISTED", "ErrorRow", "ErrorRules", "error_rules", "listed_row"]

ROWS_MAX: Final = 100
WHY_CHARACTERS_MAX: Final = 200

CLIENTS: Final[tuple[Client, ...]] = (*HTTP_CLIENTS, *PYTHON_ITSELF, *SDKS)
LISTED: Final[dict[str, Row]] = {row.name: row for client in CLIENTS for row in client.rows}
_ANSWERS: Final = frozenset(
    row.name for row in LISTED.values() if row.proof is ErrorProof.ITS_ANSWER
)


def listed_row(error: BaseException) -> Row | None:
    """The row of its exact class, or else that of the answered error that it is a kind of."""
    names = names_of(type(error))
    exact = LISTED.get(names[0])
    return exact or next((LISTED[name] for name in names if name in _ANSWERS), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """What one exception class of your own, or of a library that is not listed, proves.

    It holds for exactly `exception` and for no subclass. `proof` is `UNSENT` (raised only before a
    byte of the request was sent, by code that sends once), `WHILE_CONNECTING`, `ITS_CAUSE` (it only
    wraps another) or `NOTHING`. `why` is one clause; it is shown wherever the row decided.

    Raises TypeError or ValueError for a row that cannot be a proof: a class of Python itself, which
    says nothing about a request, or one that the table lists already, which may only be narrowed to
    `NOTHING`.
    """

    exception: type[BaseException]
    proof: ErrorProof
    why: str

    def __post_init__(self) -> None:
        kind: object = self.exception
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            raise TypeError(f"A row is for a class of exceptions, not for {kind!r}.")
        proof: object = self.proof
        if not isinstance(proof, ErrorProof):
            raise TypeError(f"The proof of {name_of(kind)} is an ErrorProof, not {proof!r}.")
        if not 0 < len(self.why.strip()) <= WHY_CHARACTERS_MAX:
            raise ValueError(f"Say why in 1 to {WHY_CHARACTERS_MAX} characters: {name_of(kind)}.")
        refusal = None if self.proof is ErrorProof.NOTHING else self._refusal()
        if refusal is not None:
            raise ValueError(f"{name_of(kind)} {refusal}. Its row may only say NOTHING.")

    def _refusal(self) -> str | None:
        """Why this class may not be said to prove anything, or None."""
        if self.proof is ErrorProof.ITS_ANSWER:
            return "cannot be read for an answer by a row"
        names = names_of(self.exception)
        if names[0] in LISTED or not _ANSWERS.isdisjoint(names):
            return "is in the table already"
        if self.exception.__module__.partition(".")[0] in sys.stdlib_module_names:
            return "is raised by Python for many reasons"
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRules:
    """How a tool's errors are sorted: the provider's contract, and rows added to the table.

    The contract is a known one by name, or a table that proves less than a known one:
    `TABLES[...].narrowed(...)`, never more. Give the rules to `@effect(contract=...)` in place of
    the contract alone. At most 100 rows, one for each class. Raises ValueError beyond that, and for
    a contract that does not exist.
    """

    contract: Contract | RefusalTable | None = None
    rows: tuple[ErrorRow, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", tuple(self.rows))
        if self.contract is not None and not isinstance(self.contract, RefusalTable):
            object.__setattr__(self, "contract", Contract(self.contract))
        if len(self.rows) > ROWS_MAX:
            raise ValueError(f"{len(self.rows)} rows are too many: at most {ROWS_MAX}.")
        if twice := _twice(row.exception for row in self.rows):
            raise ValueError(f"{name_of(twice)} has two rows. Keep one.")

    def row_for(self, error: BaseException) -> ErrorRow | None:
        kind = type(error)
        return next((row for row in self.rows if row.exception is kind), None)


def error_rules(given: ErrorRules | Contract | str | None) -> ErrorRules:
    """The rules, also where only a contract was given. Raises ValueError for an unknown one."""
    if isinstance(given, ErrorRules):
        return given
    return ErrorRules(contract=None if given is None else Contract(given))


def _twice(kinds: Iterable[type[BaseException]]) -> type[BaseException] | None:
    seen: set[type[BaseException]] = set()
    for kind in kinds:
        if kind in seen:
            return kind
        seen.add(kind)
    return None
