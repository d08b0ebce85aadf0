"""Who answers which path: the dialects by their prefixes, and Stripe for all the rest."""

from collections.abc import Callable
from typing import Final, Protocol

from reconcile.sandbox.faults import Asked, ChosenFault
from reconcile.sandbox.provider import plain, stripe_api
from reconcile.sandbox.provider.checkout import Checkout
from reconcile.sandbox.provider.context import STRIPE_TRUTH
from reconcile.sandbox.provider.dialects import Dialect
from reconcile.sandbox.provider.gocardless import GoCardless
from reconcile.sandbox.provider.increase import Increase
from reconcile.sandbox.provider.messages import Answer, Request
from reconcile.sandbox.provider.paypal import PayPal
from reconcile.sandbox.provider.salesforce import Salesforce
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

DIALECTS: Final[tuple[Dialect, ...]] = (
    GoCardless(),
    PayPal(),
    Checkout(),
    Salesforce(),
    Increase(),
)
TRUTHS: Final = (STRIPE_TRUTH, plain.PLAIN_TRUTH, *(dialect.name for dialect in DIALECTS))
"""The names of all truth files, without their ending."""


class Api(Protocol):
    """What the pipeline wants of whoever answers. A module is one, too."""

    @property
    def describe(self) -> Callable[[Request], Asked]: ...

    @property
    def commit_late(self) -> Callable[[World, Request, Batch], None]: ...

    def answer(
        self, world: World, request: Request, fault: ChosenFault, *, cause: str
    ) -> Answer: ...


def api_of(path: str) -> Api:
    """Who answers this path."""
    if path.startswith("/plain"):
        return plain
    prefix = path.split("/", 2)[1]
    return next((dialect for dialect in DIALECTS if dialect.name == prefix), stripe_api)
