"""Kinds of cases that have a judge of their own. A new kind is one line here and one in `bank.RUN`.

Every other kind is judged by the members that its input has: see `judge._judge`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from tests.cases import classify, reconcile, webhooks
from tests.cases.bank import Case
from tests.cases.fields import Fields, Findings

Judge = Callable[[Fields, Fields, Findings], None]
"""Interprets the input and compares the expectation; whoever calls it finishes both."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`asks_providers`: its judge waits for answers over the network, so it runs in no transaction
    and undoes what it did by itself."""

    judge: Judge
    asks_providers: bool = False


KINDS: Final[Mapping[str, Kind]] = {
    "classify": Kind(judge=classify.judge),
    "reconcile": Kind(judge=reconcile.judge, asks_providers=True),
}
WEBHOOKS: Final = Kind(judge=webhooks.judge, asks_providers=True)


def kind_of(case: Case) -> Kind | None:
    """The judge of a case, None where its members say how it is judged. Events that a provider
    sends stand in the bank as cases about the ledger."""
    if case.kind == "ledger" and webhooks.MEMBERS & case.input.keys():
        return WEBHOOKS
    return KINDS.get(case.kind)


def asks_providers(case: Case) -> bool:
    """Whether it is judged in no transaction, so that its calls stay in the database."""
    kind = kind_of(case)
    return kind is not None and kind.asks_providers
