"""Stripe's SDK over our own door, turned to the account that is meant.

A question to the wrong account or mode is answered like one about something that does not exist, so
whose secret it is comes first. A platform's secret asks in a connected account by the header
``Stripe-Account`` (https://docs.stripe.com/connect/authentication). Every question names the
version of the API in which it wants its answer: the package would send its own, so that a new
package would be answered in other shapes (https://docs.stripe.com/api/versioning).
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Final, override

import stripe

from reconcile.adapters.base import Place, Probe
from reconcile.adapters.door import Answered, NotAllowed, Way, get

PINNED_VERSION: Final = "2026-10-28.endive"
"""The version for which the adapter was written and tested; a tool's entry may name another."""
ACCOUNT_SECONDS: Final = 600.0
"""How long a process remembers which account a secret belongs to, and may act for."""
_OWN: Final[dict[tuple[str, str], tuple[str, float]]] = {}
_CONNECTED: Final[dict[tuple[str, str, str], float]] = {}


def version_for(probe: Probe, entry: str | None) -> str:
    """The version in which a claim is asked about: what its tool's entry says, else the one it was
    asked in before, else ours."""
    return entry or probe.api_version or PINNED_VERSION


class WrongAccount(Exception):
    """The secret has nothing to do with the registered account; the message names both."""


class ReadOnly(stripe.HTTPClient):
    """Stripe's SDK over our own door: reads only, checked addresses, limits. `reads` counts the
    requests that were sent, answered or not: the account may make only so many. `version` is the
    one that is asked for."""

    name = "counterfoil"

    def __init__(self, way: Way, *, version: str = PINNED_VERSION) -> None:
        super().__init__()
        self._way = way
        self.last: Answered | None = None
        self.version = version
        self.reads = 0

    @override
    def request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str] | None,
        post_data: Any = None,
        *,
        _usage: list[str] | None = None,
    ) -> tuple[str, int, Mapping[str, str]]:
        # Sending a key again to find out would be a second payment once the key is forgotten.
        assert method == "get", "A look-up only reads."
        self.reads += 1
        try:
            answered = get(url, way=self._way, headers=headers or {})
        except NotAllowed:
            self.reads -= 1
            raise
        self.last = answered
        return answered.body.decode("utf-8", "replace"), answered.status, answered.headers

    @override
    def close(self) -> None:
        """Nothing stays open between two questions."""


def client_at(place: Place, door: ReadOnly) -> tuple[stripe.StripeClient, bool]:
    """A client that asks in the registered account, and whether that is settled.

    Where no account is registered, the secret alone says which one is meant. A restricted secret
    may not read its account: then nobody can say that it is the right one. Raises `WrongAccount`,
    and Stripe's errors other than the refusal to tell.
    """
    own = _client(place, door, account=None)
    if not place.account:
        return own, True
    try:
        account = _own_account(place, own)
    except (stripe.PermissionError, stripe.InvalidRequestError):
        return own, False
    if account == place.account:
        return own, True
    connected = _client(place, door, account=place.account)
    _check_connected(place, connected, own=account)
    return connected, True


def forget_accounts() -> None:
    """Ask anew which account each secret belongs to."""
    _OWN.clear()
    _CONNECTED.clear()


def _client(place: Place, door: ReadOnly, *, account: str | None) -> stripe.StripeClient:
    return stripe.StripeClient(
        place.secret,
        stripe_account=account,
        stripe_version=door.version,
        max_network_retries=0,
        http_client=door,
        base_addresses={"api": place.base_url.rstrip("/")},
    )


def _own_account(place: Place, client: stripe.StripeClient) -> str:
    known = _OWN.get((place.base_url, place.secret))
    if known is not None and time.monotonic() < known[1]:
        return known[0]
    account = str(client.v1.accounts.retrieve_current().id)
    _OWN[place.base_url, place.secret] = (account, time.monotonic() + ACCOUNT_SECONDS)
    return account


def _check_connected(place: Place, client: stripe.StripeClient, *, own: str) -> None:
    name = (place.base_url, place.secret, place.account)
    if time.monotonic() < _CONNECTED.get(name, 0.0):
        return
    try:
        there = str(client.v1.accounts.retrieve_current().id)
    except (stripe.PermissionError, stripe.InvalidRequestError):
        there = ""
    if there != place.account:
        raise WrongAccount(
            f"The secret belongs to {own}, not to {place.account}, and may not act for it."
        )
    _CONNECTED[name] = time.monotonic() + ACCOUNT_SECONDS
