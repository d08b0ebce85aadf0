"""Every rail of a soak."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconcile.sandbox.soak import rails_bank, rails_providers, rails_stripe
from reconcile.sandbox.soak.rail import Rail

RAILS: Final[Mapping[str, Rail]] = {
    rail.name: rail for rail in (*rails_stripe.RAILS, *rails_providers.RAILS, *rails_bank.RAILS)
}
"""Every rail by the name of its tool."""
