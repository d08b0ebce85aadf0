"""What a rail of a soak is: one tool, one account, one way in which the product can find out.

A rail says how its tool is registered, and how an agent's code would send the call. `prepare`
makes what the call needs beforehand (the payment that is to be refunded, the order that is to be
captured) and answers the arguments that name it.
"""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import httpx2

from effects.contracts import contract_of
from effects.core.vocabulary import EffectClass
from reconcile.sandbox.faults import FAULT_HEADER, Fault
from reconcile.sandbox.soak.fates import Case, Fate

SECONDS_MAX: Final = 20.0
LATE_SECONDS: Final = 600
"""How long after its 500 a request comes to pass, by the provider's clock."""
CURRENCY: Final = "eur"
MARKED: Final = {"marker_in_every_request": True}
"""What a tool says whose every request carries our marker."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What one call is to send: the case, what was made beforehand, and what the ledger granted."""

    case: Case
    made: Mapping[str, str]
    key: str
    marker: str
    amount: int

    @property
    def metadata(self) -> dict[str, str]:
        return {"counterfoil": self.marker}


class Till:
    """Sends requests to the provider as an agent's code does, and asks for the faults they meet."""

    def __init__(self, url: str) -> None:
        self.client = httpx2.Client(base_url=url, timeout=SECONDS_MAX)
        self._tokens: dict[str, str] = {}

    def post(
        self, path: str, *, fault: Fault = Fault.NONE, method: str = "POST", **sent: Any
    ) -> dict[str, Any]:
        """The answer's JSON object, empty where no whole answer came. No status is an error here:
        what an agent's code can tell from it is another matter."""
        headers = {name: value for name, value in sent.pop("headers", {}).items() if value}
        if fault is not Fault.NONE:
            late = fault is Fault.ERROR_500_THEN_LATE_COMMIT
            headers[FAULT_HEADER] = f"{fault}={LATE_SECONDS}" if late else str(fault)
        with contextlib.suppress(httpx2.HTTPError, ValueError):
            told = self.client.request(method, path, headers=headers, **sent).json()
            return told if isinstance(told, dict) else {}
        return {}

    def token(self, path: str, secret: str) -> str:
        if secret not in self._tokens:
            basic = base64.b64encode(secret.encode()).decode()
            told = self.post(path, headers={"Authorization": f"Basic {basic}"})
            self._tokens[secret] = str(told["access_token"])
        return self._tokens[secret]


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account at one provider. `wrong_secret` is another account's, empty where none can be
    mistaken for it."""

    kind: str
    prefix: str = ""
    account: str = ""
    misplaced_account: str = ""
    secret: str = ""
    wrong_secret: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rail:
    """One tool at one account. `minor_of` reads the amount of an effect from the provider's count;
    None says that the effect has none."""

    name: str
    account: Account
    lookup_kind: str
    contract: str
    send: Callable[[Till, Order, Fault], object]
    lookup: Mapping[str, Any] = field(default_factory=dict)
    prepare: Callable[[Till, Case], Mapping[str, str]] = lambda _till, _case: {}
    keyed: bool = True
    has_amount: bool = True
    major: bool = False
    by_reference: str = ""

    def tool(self) -> dict[str, Any]:
        """The tool's settings, by the names of `effects.models.Tool`."""
        terms = contract_of(self.contract)
        assert terms is not None
        window = terms.window_seconds or (OWN_WINDOW_SECONDS if self.keyed else None)
        return {
            "name": self.name,
            "effect_class": EffectClass.KEYED_WRITE if self.keyed else EffectClass.UNKEYED_WRITE,
            "contract": self.contract,
            "window_seconds": window if self.keyed else None,
            "lease_seconds": 90,
            "server_working_seconds_max": 120,
            "lookup_kind": self.lookup_kind,
            "lookup": dict(self.lookup),
            "amount_field": "amount" if self.has_amount else "",
            "currency_field": "currency" if self.has_amount else "",
        }

    def minor_of(self, effect: Mapping[str, Any]) -> int | None:
        """An effect's amount in minor units; None: it has none."""
        amount = effect["amount"]
        if amount is None or not self.has_amount:
            return None
        return round(float(amount) * 100) if self.major else int(amount)


OWN_WINDOW_SECONDS: Final = 24 * 60 * 60
"""Where the provider publishes none: an admin's own figure, as it may be entered."""


def paid(till: Till, rail: Rail, order: Order) -> None:
    """Sends one call with its fate. What an answer says is not looked at: nobody got it."""
    fate = order.case.fate
    rail.send(till, order, fate.fault)
    if fate is Fate.HAPPENED_TWICE:
        rail.send(till, _again(order), Fault.DROP_AFTER_COMMIT)


def _again(order: Order) -> Order:
    """The same call under another key, as a library sends it that makes a new one for each try."""
    return Order(
        case=order.case,
        made=order.made,
        key=f"{order.key}-again",
        marker=order.marker,
        amount=order.amount,
    )


def bearer(secret: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {secret}"}


def money(order: Order) -> dict[str, Any]:
    return {"amount": order.amount, "currency": CURRENCY}
