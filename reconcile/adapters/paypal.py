"""Asks PayPal what became of a captured order, of a refund, or of anything with our marker.

There is no question by key. An order shows its captures and refunds with their statuses
(https://developer.paypal.com/api/orders/v2: "completed" alone does not say that money moved), and a
capture names its order. What bears our marker in ``custom_id`` and no id that we know is looked for
in the transactions of the time in question, which appear up to three hours late
(https://developer.paypal.com/api/transaction-search/v1): what is found there is then read from the
object itself, and what is not found proves nothing.

An order or a capture that is not there is a wrong account or mode: the call could not have acted on
it. How soon an order shows its captures is not published, so an absence is no proof unless the
registry entry says so. Which merchant an object belongs to is in its ``payee``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, Final, Literal
from urllib.parse import quote

from pydantic import Field

from effects.core.identity import read_marker
from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Page,
    Reading,
    Told,
    all_alike,
    begun,
    in_vain,
    misconfigured,
    one_of,
    read_pages,
    unreadable,
    unusable,
    window_of,
    written,
)
from reconcile.adapters.base import (
    Delay,
    Look,
    Lookup,
    MatchedBy,
    Probe,
    Route,
    Scan,
    Stranger,
)
from reconcile.adapters.door import NoAnswer, NotAllowed
from reconcile.adapters.matching import Match
from reconcile.adapters.object_rules import (
    ObjectRules,
    argument,
    checked_items,
    match_of,
)
from reconcile.adapters.rest import (
    Finding,
    ProviderLookup,
    Rest,
    checked_mode,
    counted,
    found_out,
    host_mode,
    listed,
    member,
    placed,
    read_as,
)

TOKEN_PATH: Final = "/v1/oauth2/token"  # noqa: S105 - a path, which is no secret
PAGE_SIZE: Final = 500
REPORT_DAYS_MAX: Final = timedelta(days=31)
HOSTS: Final = {
    "api-m.paypal.com": "live",
    "api.paypal.com": "live",
    "api-m.sandbox.paypal.com": "test",
    "api.sandbox.paypal.com": "test",
}
CAPTURE_WORDS: Final = {
    "COMPLETED": SightingWord.FOUND,
    # It was captured; what was given back afterwards is another effect.
    "PARTIALLY_REFUNDED": SightingWord.FOUND,
    "REFUNDED": SightingWord.FOUND,
    "PENDING": SightingWord.PENDING,
    # Final, and no money moved: this object is proof of that, for the request that made it.
    "DECLINED": SightingWord.ABSENT,
    "FAILED": SightingWord.ABSENT,
}
REFUND_WORDS: Final = {
    "COMPLETED": SightingWord.FOUND,
    "PENDING": SightingWord.PENDING,
    "CANCELLED": SightingWord.FOUND_DIFFERENT,
    "FAILED": SightingWord.FOUND_DIFFERENT,
}
ORDER_WORDS: Final = {
    "order CREATED": SightingWord.ABSENT,
    "order SAVED": SightingWord.ABSENT,
    "order APPROVED": SightingWord.ABSENT,
    "order PAYER_ACTION_REQUIRED": SightingWord.ABSENT,
    "order VOIDED": SightingWord.FOUND_DIFFERENT,
    "authorization CREATED": SightingWord.PENDING,
    "authorization PENDING": SightingWord.PENDING,
    "authorization DENIED": SightingWord.ABSENT,
    "authorization VOIDED": SightingWord.FOUND_DIFFERENT,
}
"""Our words for an order that shows no capture: it says what it is instead."""
_PARTLY: Final = frozenset({"authorization CREATED"})

Path = Annotated[str, Field(pattern=r"^arguments\.[^\s]{1,180}$")]


class OrderLookup(ProviderLookup):
    """`order` is where this tool's arguments hold PayPal's id of the order that is captured."""

    order: Path = "arguments.order_id"


class RefundLookup(ProviderLookup):
    """`capture` is where this tool's arguments hold PayPal's id of the capture that is refunded."""

    capture: Path = "arguments.capture_id"


class TransactionLookup(ProviderLookup):
    """`object` is what this tool makes with our marker in ``custom_id``."""

    object: Literal["captures", "refunds"] = "captures"


read_order_config: Final = read_as(OrderLookup)
read_refund_config: Final = read_as(RefundLookup)
read_transaction_config: Final = read_as(TransactionLookup)

ORDER_ROUTE: Final = "Order by id"
REFUND_ROUTE: Final = "Order of the capture"
TRANSACTION_ROUTE: Final = "List transactions of the time in question"


def look_for_captures(probe: Probe) -> Look:
    """`lookup_kind` "paypal.orders". Never raises for anything that a provider does."""
    try:
        config = read_order_config(probe.config)
        order_id = argument(probe, config.order)
        rules = _rules(config, CAPTURE_WORDS | ORDER_WORDS)
    except ValueError as error:
        return misconfigured(probe, unusable(error), ORDER_ROUTE)

    def find(rest: Rest, base: Look) -> Finding:
        base = replace(base, query=f"GET /v2/checkout/orders/{order_id}")
        order = _get(rest, "checkout/orders", order_id)
        finding = Finding(base=_placed(base, rest, order))
        for one, status in _captured(order):
            finding.matches.append(_match(probe, rules, one, status))
            finding.items.append(one)
        return finding

    return _look(probe, rules, ORDER_ROUTE, MatchedBy.REFERENCE, find)


def look_for_refund(probe: Probe) -> Look:
    """`lookup_kind` "paypal.refunds". Never raises for anything that a provider does."""
    try:
        config = read_refund_config(probe.config)
        capture_id = argument(probe, config.capture)
        rules = _rules(config, REFUND_WORDS)
    except ValueError as error:
        return misconfigured(probe, unusable(error), REFUND_ROUTE)

    def find(rest: Rest, base: Look) -> Finding:
        capture = _get(rest, "payments/captures", capture_id)
        order_id = member(capture, "supplementary_data", "related_ids", "order_id")
        if not isinstance(order_id, str):
            raise ValueError("the capture does not name its order.")  # noqa: TRY004 - it is the answer that is wrong, not the code
        query = f"GET /v2/payments/captures/{capture_id}, GET /v2/checkout/orders/{order_id}"
        order = _get(rest, "checkout/orders", order_id)
        finding = Finding(base=_placed(replace(base, query=query), rest, order))
        for unit in listed(order, "purchase_units"):
            _take(probe, rules, listed(unit, "payments", "refunds"), finding)
        return finding

    return _look(probe, rules, REFUND_ROUTE, MatchedBy.MARKER, find)


def look_in_transactions(probe: Probe) -> Look:
    """`lookup_kind` "paypal.transactions". Never raises for anything that a provider does."""
    return one_of(look_in_transactions_for_many([probe]), probe)


def look_in_transactions_for_many(probes: Sequence[Probe]) -> Scan:
    """One report for calls of one place and one entry; what bears their markers is retrieved."""
    first = probes[0]
    try:
        config = read_transaction_config(first.config)
        refunds = config.object == "refunds"
        rules = _rules(config, REFUND_WORDS if refunds else CAPTURE_WORDS)
    except ValueError as error:
        return all_alike(probes, misconfigured(first, unusable(error), TRANSACTION_ROUTE), reads=0)
    if not first.place.secret:
        return all_alike(probes, misconfigured(first, NOT_SET, TRANSACTION_ROUTE), reads=0)
    told = Told()
    rest = Rest(first.place, told, token_path=TOKEN_PATH)
    base = replace(begun(first, TRANSACTION_ROUTE, rules=rules), matched_by=MatchedBy.MARKER)
    base = replace(base, delay_class=Delay.EVENTUAL)
    try:
        reading, base = _report(rest, probes, base)
    except (CannotSay, NoAnswer, NotAllowed) as error:
        look = in_vain(replace(base, right_place=False), error, told)
        return all_alike(probes, look, reads=told.reads)
    lines = [member(line, "transaction_info") for line in reading.items]
    looks = {}
    for probe in probes:

        def find(look: Look, probe: Probe = probe) -> Finding:
            finding = Finding(base=look, complete=reading.complete)
            ours = [line for line in lines if member(line, "custom_field") in probe.markers]
            ids = dict.fromkeys(str(member(line, "transaction_id")) for line in ours)
            items = [_get(rest, f"payments/{config.object}", one) for one in ids]
            _take(probe, rules, items, finding)
            return finding

        own = replace(base, asked_at=probe.asked_at)
        looks[probe.claim_id] = replace(found_out(probe, own, told, find), reads=0)
    known = {marker for probe in probes for marker in probe.markers}
    return Scan(looks=looks, reads=told.reads, strangers=tuple(_strangers(lines, known)))


LOOKUPS: Final = (
    Lookup(
        kind="paypal.orders",
        label="PayPal: show the order, read its captures",
        connection_kind="paypal",
        look=look_for_captures,
        read_config=read_order_config,
        contract="paypal",
        routes=(
            Route(
                name=ORDER_ROUTE,
                delay_class=None,
                proves_absence=True,
                matched_by=MatchedBy.REFERENCE,
            ),
        ),
    ),
    Lookup(
        kind="paypal.refunds",
        label="PayPal: show the capture's order, match our marker in its refunds",
        connection_kind="paypal",
        look=look_for_refund,
        read_config=read_refund_config,
        contract="paypal",
        routes=(
            Route(
                name=REFUND_ROUTE,
                delay_class=None,
                proves_absence=True,
                matched_by=MatchedBy.MARKER,
            ),
        ),
    ),
    Lookup(
        kind="paypal.transactions",
        label="PayPal: list transactions, match our marker (up to three hours late)",
        connection_kind="paypal",
        look=look_in_transactions,
        read_config=read_transaction_config,
        look_many=look_in_transactions_for_many,
        contract="paypal",
        routes=(
            Route(
                name=TRANSACTION_ROUTE,
                delay_class=Delay.EVENTUAL,
                proves_absence=False,
                matched_by=MatchedBy.MARKER,
            ),
        ),
    ),
)


def _look(
    probe: Probe,
    rules: ObjectRules,
    route: str,
    matched_by: MatchedBy,
    find: Callable[[Rest, Look], Finding],
) -> Look:
    told = Told()
    rest = Rest(probe.place, told, token_path=TOKEN_PATH)
    base = replace(begun(probe, route, rules=rules), matched_by=matched_by)
    return found_out(probe, base, told, partial(find, rest))


def _rules(config: ProviderLookup, words: Mapping[str, SightingWord]) -> ObjectRules:
    return config.rules(
        words, amount="amount.value", amount_is_minor=False, currency="amount.currency_code"
    )


def _get(rest: Rest, kind: str, object_id: str) -> Any:
    _, answer = rest.read(f"/v2/{kind}/{quote(object_id, safe='')}")
    if member(answer, "id") != object_id:
        why = f"Another object than {object_id} is in the answer."
        raise CannotSay(SightingWord.UNMAPPED, why)
    return answer


def _placed(base: Look, rest: Rest, order: object) -> Look:
    """The look, if all that the order sells is sold by the registered merchant."""
    known = checked_mode(rest.place, host_mode(rest.place, HOSTS), by="address")
    units = listed(order, "purchase_units")
    sellers = {json.dumps(member(unit, "payee", "merchant_id")) for unit in units}
    seller = json.loads(sellers.pop()) if len(sellers) == 1 else None
    return placed(base, seller, mode_known=known)


def _captured(order: object) -> list[tuple[dict[str, Any], str | None]]:
    """The order's captures; without any, its authorizations; without those, itself. With each the
    status that says so, None where the object's own says it."""
    units = listed(order, "purchase_units")
    captures = [one for unit in units for one in listed(unit, "payments", "captures")]
    if captures:
        return [(one, None) for one in captures]
    held = [one for unit in units for one in listed(unit, "payments", "authorizations")]
    if held:
        return [(one, f"authorization {one.get('status')}") for one in held]
    assert isinstance(order, dict)
    return [(order, f"order {order.get('status')}")]


def _match(
    probe: Probe, rules: ObjectRules, item: dict[str, Any], status: str | None = None
) -> Match:
    if status is None:
        return match_of(probe, rules, item, probe.markers.get(str(item.get("custom_id"))))
    found = match_of(probe, rules, {**item, "status": status}, None)
    # An order names no one amount, and what it does not show was not compared.
    return replace(found, partly=status in _PARTLY, requested={}, found={})


def _take(probe: Probe, rules: ObjectRules, items: list[dict[str, Any]], finding: Finding) -> None:
    for item in items:
        if item.get("custom_id") in probe.markers:
            finding.matches.append(_match(probe, rules, item))
            finding.items.append(item)


def _report(rest: Rest, probes: Sequence[Probe], base: Look) -> tuple[Reading, Look]:
    """The transactions of the time in question, and the look, if they are the merchant's."""
    since, until = window_of(probes)[0], max(probe.asked_at for probe in probes)
    # Their report covers 31 days at once; what is older is not looked for, and never absent.
    since = max(since, until - REPORT_DAYS_MAX)
    start, end = written(since, "iso"), written(until, "iso")
    params = {
        "start_date": start,
        "end_date": end,
        "fields": "transaction_info",
        "page_size": str(PAGE_SIZE),
    }
    known = checked_mode(rest.place, host_mode(rest.place, HOSTS), by="address")
    account: list[object] = []
    reading = read_pages(partial(_report_page, rest, params, account))
    counts = f"{len(reading.items)} transactions on {reading.pages} pages"
    query = f"GET /v1/reporting/transactions {start} to {end}; {counts}"
    base = replace(base, interval_from=since, query=query)
    return reading, placed(base, account[-1], mode_known=known)


def _report_page(
    rest: Rest, params: Mapping[str, str], account: list[object], page: str | None
) -> Page:
    number = int(page or 1)
    _, answer = rest.read("/v1/reporting/transactions", {**params, "page": str(number)})
    account.append(member(answer, "account_number"))
    try:
        items = checked_items(member(answer, "transaction_details"), named="transaction_details")
        more = number < counted(answer, "total_pages")
    except ValueError as error:
        raise CannotSay(SightingWord.UNMAPPED, unreadable(error)) from None
    return Page(items=items, body=b"", following=str(number + 1) if more else None)


def _strangers(lines: list[Any], known: Container[str]) -> Iterator[Stranger]:
    for line in lines:
        reference = str(member(line, "custom_field") or "")
        name = member(line, "transaction_id")
        if reference not in known and isinstance(name, str):
            marker = reference if read_marker(reference) else ""
            yield Stranger(id=name, noun="Transaction", marker=marker)
