"""Sums of money: one for each currency, because currencies are never added up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Count, F, Max, Q, QuerySet, Sum

from effects.money import Money
from reconcile.duplicates import listing
from reconcile.models import DuplicateGroup


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many groups of duplicates, and what their effects beyond the first amount to."""

    count: int
    sums: tuple[Money, ...]


def summed(amounts: Iterable[Money]) -> tuple[Money, ...]:
    """One sum a currency, in the order of their names."""
    sums: dict[str, Money] = {}
    for one in amounts:
        before = sums.get(one.currency)
        total = one.amount + (before.amount if before else Decimal(0))
        places = max(one.places, before.places if before else 0)
        sums[one.currency] = Money(amount=total.normalize(), currency=one.currency, places=places)
    return tuple(sums[currency] for currency in sorted(sums))


def tally_of(groups: QuerySet[DuplicateGroup]) -> Tally:
    """The same, counted and summed up by the database, however many there are."""
    beyond = Sum(F("amount") * (F("possible") - 1), filter=Q(possible__gt=1))
    rows = groups.order_by().values("currency")
    listed = list(rows.annotate(count=Count("pk"), stake=beyond, most=Max("places")))
    return Tally(
        count=sum(row["count"] for row in listed),
        sums=summed(
            Money(amount=row["stake"], currency=row["currency"], places=row["most"])
            for row in listed
            if row["currency"] and row["stake"] is not None
        ),
    )


def suspected(workspace_id: int) -> Tally:
    """The groups that nobody has judged and in which more than one effect is possible."""
    chosen = listing.TABS[listing.USUAL][1]
    return tally_of(DuplicateGroup.objects.filter(chosen, workspace_id=workspace_id))
