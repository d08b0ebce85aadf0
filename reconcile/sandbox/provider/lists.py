"""Stripe's lists: newest first, cursors by object id, filters on ``created`` and equal fields.

Source: https://docs.stripe.com/api/pagination. Top-level lists of API v1 are immediately
consistent, and so are these: they read the tables under the lock that every write holds.
"""

from collections.abc import Callable, Iterable
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import Context
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import Params

PAGE_PARAMS: Final = ("created", "ending_before", "limit", "starting_after")
LIMIT_DEFAULT: Final = 10
LIMIT_MAX: Final = 100
_SECONDS_MAX: Final = 10**12

type Filter = Callable[[Json], bool]


def created_filter(params: Params, field: str = "created") -> Filter:
    """``created=n`` or ``created[gt|gte|lt|lte]=n``, in seconds since 1970; or another field that
    holds a time. A row whose time is null is in no interval."""
    exact = params.whole(field, least=0, most=_SECONDS_MAX)
    tests: list[Callable[[int], bool]] = []
    if exact is not None:
        tests.append(lambda at: at == exact)
    for name in params.entries(field):
        bound = params.whole(f"{field}[{name}]", least=0, most=_SECONDS_MAX)
        if bound is None or name not in {"gt", "gte", "lt", "lte"}:
            raise errors.invalid(f"Invalid {field} filter: {name}", param=field)
        tests.append(_bound(name, bound))

    def keep(row: Json) -> bool:
        at = row[field] if tests else None
        return not tests or (at is not None and all(test(at) for test in tests))

    return keep


def _bound(name: str, bound: int) -> Callable[[int], bool]:
    match name:
        case "gt":
            return lambda at: at > bound
        case "gte":
            return lambda at: at >= bound
        case "lt":
            return lambda at: at < bound
        case _:
            return lambda at: at <= bound


def equal_filter(params: Params, names: Iterable[str]) -> Filter:
    """Rows whose fields equal the parameters that were sent."""
    wanted = {name: value for name in names if (value := params.text(name)) is not None}
    return lambda row: all(row[name] == value for name, value in wanted.items())


def page(ctx: Context, params: Params, *, table: str, url: str, keep: Filter) -> Answer:
    """One page of a list. Raises Refused for a cursor that names nothing, or for two cursors."""
    limit = params.whole("limit", least=1, most=LIMIT_MAX) or LIMIT_DEFAULT
    after, before = params.text("starting_after"), params.text("ending_before")
    if after and before:
        raise errors.invalid("You cannot use both starting_after and ending_before")
    rows = [row for row in reversed(ctx.rows(table).values()) if keep(row)]
    order = list(reversed(ctx.rows(table)))
    if after:
        older = set(order[_place(order, after, "starting_after") + 1 :])
        rows = [row for row in rows if row["id"] in older]
    if before:
        newer = set(order[: _place(order, before, "ending_before")])
        rows = [row for row in rows if row["id"] in newer]
        chosen = rows[-limit:]
    else:
        chosen = rows[:limit]
    body = {"object": "list", "data": chosen, "has_more": len(rows) > limit, "url": url}
    return Answer(status=200, body=body)


def _place(order: list[str], object_id: str, param: str) -> int:
    try:
        return order.index(object_id)
    except ValueError:
        raise errors.no_such("object", object_id, param=param, status=400) from None
