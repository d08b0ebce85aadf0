"""Who asks, and in which world: account and mode. Live and test share nothing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.messages import Answer

SECRET_KEY: Final = re.compile(r"^(sk|rk)_(test|live)_([a-z0-9]+)(?:_[a-zA-Z0-9]+)?$")
"""``sk_test_halden``, or ``sk_test_halden_2`` for another key of the same account.

``rk_`` keys are restricted to reading, which is all that a look-up needs.
"""

ACCOUNT_ID: Final = re.compile(r"^acct_[a-zA-Z0-9]{1,64}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """An authenticated caller of the Stripe-shaped API: `account` is the one that is asked about,
    `own_account` the one that the key belongs to."""

    account: str
    own_account: str
    livemode: bool
    may_write: bool

    @property
    def scope(self) -> str:
        """Names everything that belongs to this account in this mode."""
        return f"{self.account}/{self.mode}"

    @property
    def own_scope(self) -> str:
        """The same for the key's own account: the platform, where a connected one is asked."""
        return f"{self.own_account}/{self.mode}"

    @property
    def mode(self) -> str:
        return "live" if self.livemode else "test"


def authenticate(headers: Mapping[str, str]) -> Caller | Answer:
    """The caller, or the 401 or 403 that turns it away."""
    given = headers.get("authorization", "")
    match = SECRET_KEY.match(given.removeprefix("Bearer ").strip())
    if match is None:
        return errors.unauthorized(
            "Invalid API Key provided. The sandbox takes sk_test_<account> and sk_live_<account>."
        )
    own = f"acct_{match[3]}"
    account = headers.get("stripe-account") or own
    if not ACCOUNT_ID.match(account):
        return errors.forbidden()
    return Caller(
        account=account,
        own_account=own,
        livemode=match[2] == "live",
        may_write=match[1] == "sk",
    )
