"""How a question to a database is described in the registry."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, Self

from pydantic import AfterValidator, Field, ValidationError, model_validator

from reconcile.adapters.base import faults_of
from reconcile.adapters.http_config import AbsentWhen
from reconcile.adapters.object_rules import Expression, ObjectRules

QUERY_CHARACTERS_MAX: Final = 10_000
STATEMENT_SECONDS_MAX: Final = 15

_PERCENT = re.compile(r"%(?:%|\(([a-z]+)\)s)?")
ONE: Final = frozenset({"reference", "key", "marker", "claim"})
ALL: Final = frozenset({"references", "keys", "markers", "claims"})
WINDOW: Final = frozenset({"since", "until"})


def parameters_of(query: str) -> frozenset[str]:
    """The named parameters of a query. Raises ValueError for a percent sign that is none."""
    found = set()
    for each in _PERCENT.finditer(query):
        if each[0] == "%":
            raise ValueError("holds a lone %; write %% for the sign, or %(key)s for a parameter")
        if each[1] is not None:
            found.add(each[1])
    if odd := sorted(found - ONE - ALL - WINDOW):
        known = ", ".join(sorted(ONE | ALL | WINDOW))
        raise ValueError(f"asks for %({odd[0]})s; there are {known}")
    return frozenset(found)


def _checked_query(query: str) -> str:
    named = parameters_of(query)
    if "\0" in query:
        raise ValueError("holds a zero byte")
    if not named:
        raise ValueError("names the call, by %(reference)s, %(key)s, %(marker)s or %(claim)s")
    return query


class SqlLookup(ObjectRules):
    """A tool's look-up by one registered SELECT.

    `query` has the named parameters %(reference)s, %(key)s, %(marker)s, %(claim)s, or all of a kind
    as an array ("= ANY (%(references)s)"), and %(since)s, %(until)s. With arrays, or with nothing
    but the time, one reading answers many calls, and each row shows at `reference_field` whose it
    is. Rows are read like objects: an expression is the name of a column. `delay_class` says how
    late a row may be in the database itself, not in a replica of it: "none" where the service
    writes it in the transaction that is the effect.
    """

    query: Annotated[str, Field(max_length=QUERY_CHARACTERS_MAX), AfterValidator(_checked_query)]
    absent_when: AbsentWhen = AbsentWhen()
    statement_seconds: Annotated[int, Field(ge=1, le=STATEMENT_SECONDS_MAX)] = 5
    reference_field: Expression = ""

    @property
    def parameters(self) -> frozenset[str]:
        return parameters_of(self.query)

    @property
    def is_shared(self) -> bool:
        """Whether one reading answers many calls."""
        return not self.parameters & ONE

    @model_validator(mode="after")
    def _rows_have_owners(self) -> Self:
        if self.parameters & ONE and self.parameters & ALL:
            raise ValueError("query: one call's parameters and all calls' do not go together")
        if self.is_shared and not self.reference_field:
            raise ValueError("reference_field: a row must show whose it is")
        if self.absent_when.http_status is not None or self.absent_when.body:
            raise ValueError("absent_when: a database answers with rows; say empty, or nothing")
        return self


def read_config(config: Mapping[str, Any]) -> SqlLookup:
    """The look-up of a registry entry. Raises ValueError with one sentence a fault, for people."""
    try:
        return SqlLookup.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None
