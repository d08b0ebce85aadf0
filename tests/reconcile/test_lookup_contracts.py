"""An adapter says no more of its routes than its provider's contract does."""

from __future__ import annotations

from effects.contracts import CONTRACTS
from reconcile.adapters.base import Delay
from reconcile.lookups import LOOKUPS


def test_every_look_up_belongs_to_a_contract_that_its_connection_can_ask() -> None:
    for lookup in LOOKUPS.values():
        assert lookup.contract in CONTRACTS, lookup.kind
        assert lookup.connection_kind in CONTRACTS[lookup.contract].adapters, lookup.kind


def test_only_a_published_route_is_said_to_show_at_once_and_whole() -> None:
    claimed = {
        lookup.contract
        for lookup in LOOKUPS.values()
        for route in lookup.routes
        if route.proves_absence and route.delay_class is Delay.NONE
    }
    published = {
        terms.name
        for terms in CONTRACTS.values()
        if any(lookup.absence_proves for lookup in terms.lookups)
    }
    assert claimed == {"stripe.v1"}
    assert claimed <= published
