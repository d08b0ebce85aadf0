"""Search: late on purpose. A subset of Stripe's query language.

Source: https://docs.stripe.com/search. Clauses are joined by AND or by OR, never both; a clause is
``field:value``, negated with a leading ``-``; strings stand in quotes; ``~`` finds a part of a
string; numbers compare with ``>``, ``<``, ``>=`` and ``<=``. A change is shown after a delay, so a
search says nothing about what happened a moment ago, and not finding something proves nothing.
"""

import re
from collections.abc import Callable
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import Context, Execute
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import Params

LIMIT_DEFAULT: Final = 10
LIMIT_MAX: Final = 100
CLAUSES_MAX: Final = 10
QUERY_CHARACTERS_MAX: Final = 2_000
SUBSTRING_CHARACTERS_MIN: Final = 3

_NUMBERS: Final = {
    "payment_intents": frozenset({"amount", "created"}),
    "charges": frozenset({"amount", "created"}),
    "invoices": frozenset({"created", "total"}),
    "subscriptions": frozenset({"created"}),
}
_TEXTS: Final = {
    "invoices": frozenset({"currency", "customer", "number", "status", "subscription"}),
    "subscriptions": frozenset({"status"}),
    "payment_intents": frozenset({"currency", "customer", "status"}),
    "charges": frozenset({"currency", "customer", "status", "disputed", "refunded"}),
}
_CLAUSE = re.compile(
    r"""\s*(?P<no>-?)(?P<field>[a-z_]+)(?:\[(?P<q>['"])(?P<name>[^'"]{1,40})(?P=q)\])?"""
    r"""\s*(?P<op>>=|<=|[:~<>])\s*(?:(?P<v>['"])(?P<text>.*?)(?P=v)|(?P<bare>[0-9a-z]+))"""
    r"""\s*(?:(?P<join>AND|OR)\b|$)"""
)

type Clause = Callable[[Json], bool]


def search(table: str) -> Callable[[Params], Execute]:
    """``GET /v1/<table>/search``."""

    def check(params: Params) -> Execute:
        params.only(("limit", "page", "query"))
        limit = params.whole("limit", least=1, most=LIMIT_MAX) or LIMIT_DEFAULT
        start = params.whole("page", least=0, most=10**9) or 0
        fits = parse(params.required("query"), table)

        def execute(ctx: Context) -> Answer:
            found = [row for row in reversed(_indexed(ctx, table).values()) if fits(row)]
            more = len(found) > start + limit
            body = {
                "object": "search_result",
                "data": found[start : start + limit],
                "has_more": more,
                "next_page": str(start + limit) if more else None,
                "url": f"/v1/{table}/search",
            }
            return Answer(status=200, body=body)

        return execute

    return check


def _indexed(ctx: Context, table: str) -> dict[str, Json]:
    """Every row as it was when the index last caught up with it."""
    name = f"{ctx.scope}/{table}"
    index = ctx.store.table(f"{name}#index")  # in memory alone: an index can be made anew
    versions = ctx.store.versions.get(name)
    while versions and versions[0][0] <= ctx.now - ctx.search_lag_seconds:
        _, key, row = versions.popleft()
        index[key] = row
    return index


def parse(query: str, table: str) -> Clause:
    """The test that a row must pass. Raises Refused with a 400 that says what is not understood."""
    if len(query) > QUERY_CHARACTERS_MAX:
        raise errors.invalid("The query is too long", param="query")
    clauses, joins, at = [], set(), 0
    while True:
        found = _CLAUSE.match(query, at)
        if found is None:
            raise errors.invalid(
                f"We were unable to parse your search query near: {query[at : at + 40]!r}",
                param="query",
            )
        clauses.append(_clause(found, table))
        at = found.end()
        if found["join"] is None:
            break
        joins.add(found["join"])
    if len(joins) > 1 or len(clauses) > CLAUSES_MAX:
        raise errors.invalid(
            f"A query has at most {CLAUSES_MAX} clauses, all joined by AND or all by OR.",
            param="query",
        )
    together = any if joins == {"OR"} else all
    return lambda row: together(clause(row) for clause in clauses)


def _clause(found: re.Match[str], table: str) -> Clause:
    field, operator = found["field"], found["op"]
    if field == "metadata" and found["name"]:
        read = _metadata(found["name"])
    elif found["name"] is None and field in _NUMBERS[table] | _TEXTS[table]:
        read = _field(field)
    else:
        raise errors.invalid(f"Field `{field}` is an unsupported search field.", param="query")
    wanted = found["text"] if found["v"] else found["bare"]
    test = _number(operator, wanted) if field in _NUMBERS[table] else _text(operator, wanted)
    return (lambda row: not test(read(row))) if found["no"] else (lambda row: test(read(row)))


def _field(name: str) -> Callable[[Json], object]:
    return lambda row: row[name]


def _metadata(name: str) -> Callable[[Json], object]:
    return lambda row: row["metadata"].get(name)


def _number(operator: str, wanted: str) -> Callable[[object], bool]:
    if operator == "~" or not wanted.isdecimal():
        raise errors.invalid(f"A number is compared with a number, not {wanted!r}", param="query")
    bound = int(wanted)
    tests: dict[str, Callable[[int], bool]] = {
        ":": lambda n: n == bound,
        ">": lambda n: n > bound,
        ">=": lambda n: n >= bound,
        "<": lambda n: n < bound,
        "<=": lambda n: n <= bound,
    }
    return lambda value: isinstance(value, int) and tests[operator](value)


def _text(operator: str, wanted: str) -> Callable[[object], bool]:
    if operator == ":":
        return lambda value: _said(value) == wanted.lower()
    if operator == "~" and len(wanted) >= SUBSTRING_CHARACTERS_MIN:
        return lambda value: value is not None and wanted.lower() in _said(value)
    raise errors.invalid(f"The operator {operator} does not fit this field or value", param="query")


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value).lower()
