"""Updates of an object: ``POST /v1/<kind>/{id}``. Metadata is merged, everything else replaced.

Source: https://docs.stripe.com/api/metadata and the update call of each kind. An update of a
PaymentIntent or a SetupIntent causes no event: Stripe has none for it
(https://docs.stripe.com/api/events/types).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from reconcile.sandbox.provider import errors
from reconcile.sandbox.provider.context import Context, Execute
from reconcile.sandbox.provider.messages import Answer, Json
from reconcile.sandbox.provider.params import Params

NUMBER_MAX: Final = 10**11
"""Largest amount, and latest second since 1970, that an update may say."""
UPDATE_MARKER: Final = "counterfoil_update"
"""The name under which an update puts its marker, so that it does not replace the creation's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Updatable:
    """One kind. ``texts``, ``flags`` and ``numbers`` are the fields that may be replaced;
    ``numbers`` only while the status is one of ``open_in``."""

    noun: str
    table: str
    event: str | None
    texts: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    numbers: Mapping[str, frozenset[str]] = field(default_factory=dict)


NOT_CONFIRMED: Final = frozenset({"requires_payment_method", "requires_confirmation"})
KINDS: Final = (
    Updatable(
        noun="payment_intent",
        table="payment_intents",
        event=None,
        texts=("customer", "description", "receipt_email", "transfer_group"),
        numbers={"amount": NOT_CONFIRMED},
    ),
    Updatable(
        noun="charge",
        table="charges",
        event="charge.updated",
        texts=("customer", "description", "receipt_email", "transfer_group"),
    ),
    Updatable(noun="refund", table="refunds", event="refund.updated"),
    Updatable(noun="transfer", table="transfers", event="transfer.updated", texts=("description",)),
    Updatable(noun="payout", table="payouts", event="payout.updated"),
    Updatable(
        noun="invoice",
        table="invoices",
        event="invoice.updated",
        texts=("collection_method", "description", "footer"),
        flags=("auto_advance",),
        numbers={"due_date": frozenset({"draft"})},
    ),
    Updatable(
        noun="subscription",
        table="subscriptions",
        event="customer.subscription.updated",
        texts=("collection_method", "default_payment_method", "description"),
        flags=("cancel_at_period_end",),
    ),
    Updatable(
        noun="setup_intent",
        table="setup_intents",
        event=None,
        texts=("customer", "description", "payment_method"),
    ),
)
OF_TABLE: Final = {kind.table: kind for kind in KINDS}


def update(table: str) -> Callable[[Params, str], Execute]:
    """``POST /v1/<table>/{id}``."""
    kind = OF_TABLE[table]

    def check(params: Params, object_id: str) -> Execute:
        params.only(("metadata", *kind.texts, *kind.flags, *kind.numbers))
        said: Json = {name: params.text(name) for name in kind.texts if params.sent(name)}
        said |= {name: params.flag(name) for name in kind.flags if params.sent(name)}
        said |= {
            name: params.whole(name, least=1, most=NUMBER_MAX)
            for name in kind.numbers
            if params.sent(name)
        }
        metadata = params.metadata_changes()
        return lambda ctx: _apply(ctx, kind, object_id, said, metadata)

    return check


def _apply(
    ctx: Context,
    kind: Updatable,
    object_id: str,
    said: Json,
    metadata: Mapping[str, str | None] | None,
) -> Answer:
    row = ctx.find(kind.table, object_id)
    if row is None:
        raise ctx.no_such(kind.noun, kind.table, object_id)
    for name in kind.numbers:
        if name in said and row.get("status") not in kind.numbers[name]:
            raise errors.unexpected_state(
                f"You cannot update {name} of this {kind.noun}: its status is {row['status']}.",
                code=f"{kind.noun}_unexpected_state",
                param=name,
            )
    changed = ctx.put(kind.table, {**row, **said, "metadata": _merged(row, metadata)})
    if kind.event is not None and changed != row:
        ctx.emit(kind.event, changed)
    ctx.changed_the_world(
        f"{kind.noun}.update",
        changed,
        amount=0,
        marker=(metadata or {}).get(UPDATE_MARKER),
    )
    return Answer(status=200, body=changed)


def _merged(row: Json, changes: Mapping[str, str | None] | None) -> dict[str, str]:
    if changes is None:
        return {}
    merged = {**row["metadata"], **changes}
    return {name: value for name, value in merged.items() if value is not None}
