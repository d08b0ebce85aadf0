"""How this provider is slow or careless on purpose: what a test, or a person, sets."""

from dataclasses import dataclass
from typing import Final

SEARCH_LAG_SECONDS: Final = 10.0
"""How late search shows a change. Stripe says "under a minute" in normal operation."""
SEARCH_LAG_SECONDS_MAX: Final = 3_600.0
"""And "up to an hour" in an outage (https://docs.stripe.com/search)."""
STEP_SECONDS: Final = 4.0
PAYOUT_STEP_SECONDS: Final = STEP_SECONDS
"""How long a payout, or a refund, stays in each of its states. A real bank takes days."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """How deliveries go wrong. Shares are of 1 and drawn from the event's id, so that every try of
    one event meets the same fate; ``late_seconds`` is how late an event comes that is overtaken.
    """

    duplicated_share: float = 0.0
    overtaken_share: float = 0.0
    lost_share: float = 0.0
    late_seconds: float = 2.0
