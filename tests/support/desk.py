"""The cast of the desk's tests: a workspace, two tools, people, and calls made as agents make them.

Nothing here writes a row of the record: claims, reports and sightings go through the ledger's own
functions, as they do in the product.
"""

from __future__ import annotations

import itertools
import json
from datetime import timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection

from effects.core.messages import ClaimAnswer, ClaimRequest, Complete, Fail, Unknown
from effects.core.vocabulary import EffectClass, Outcome, Role, SightingWord
from effects.models import Connection, Membership, Tool, Workspace
from ledger import append, claiming, queries
from ledger.append import Observation

_numbers = itertools.count(1)

HOUR_SECONDS = 3600


def a_workspace(slug: str = "halden") -> Workspace:
    return Workspace.objects.create(
        name=slug.title(), slug=slug, mode="test", created_at=queries.clock()
    )


def a_keyed_tool(workspace: Workspace, **changes: Any) -> Tool:
    """A charge at Stripe: keys kept for 24 hours, amounts in cents, one read-only connection."""
    account, _ = Connection.objects.get_or_create(
        workspace=workspace,
        name="Stripe",
        defaults={"kind": Connection.Kind.STRIPE, "base_url": "https://api.stripe.com"},
    )
    usual: dict[str, Any] = {
        "name": "charge_card",
        "effect_class": EffectClass.KEYED_WRITE,
        "contract": "stripe.v1",
        "window_seconds": 24 * HOUR_SECONDS,
        "summary": "Charge {amount} to {customer} for order {order}",
        "amount_field": "amount",
        "currency_field": "currency",
        "customer_field": "customer",
        "connection": account,
        "lookup_kind": "stripe.payment_intents",
    }
    return Tool.objects.create(workspace=workspace, **(usual | changes))


def an_unkeyed_tool(workspace: Workspace, **changes: Any) -> Tool:
    """A voucher by an interface without keys and without a way to ask afterwards."""
    usual: dict[str, Any] = {
        "name": "issue_gift_card",
        "effect_class": EffectClass.UNKEYED_WRITE,
        "summary": "Gift card {amount} to {customer}",
        "amount_field": "amount",
        "amount_is_minor": False,
        "currency_field": "=EUR",
        "customer_field": "customer",
    }
    return Tool.objects.create(workspace=workspace, **(usual | changes))


def a_person(workspace: Workspace, role: Role = Role.SUPPORT, name: str = "") -> User:
    user = User.objects.create_user(
        username=name or f"{role}-{next(_numbers)}", password="a long test password"
    )
    Membership.objects.create(workspace=workspace, user=user, role=role)
    return user


def a_call(
    tool: Tool, *, arguments: dict[str, Any] | str | None = None, **more: Any
) -> ClaimAnswer:
    """A claim that an agent made for this tool: granted, and in flight."""
    answer = ask(tool, arguments=arguments, **more)
    assert answer.claim_id is not None
    return answer


def ask(tool: Tool, *, arguments: dict[str, Any] | str | None = None, **more: Any) -> ClaimAnswer:
    """What an agent that asks for a call of this tool is told, whatever that is."""
    number = next(_numbers)
    said = {
        "amount": 14900,
        "currency": "eur",
        "customer": f"cus_Customer{number:04d}",
        "order": str(8000 + number),
    }
    if isinstance(arguments, dict):
        said |= arguments
    text = arguments if isinstance(arguments, str) else json.dumps(said)
    usual: dict[str, Any] = {
        "tool": tool.name,
        "effect_class": EffectClass(tool.effect_class),
        "arguments": text,
        "conversation": f"conversation-{number}",
        "turn_index": 3,
        "call_id": f"call_{number:020d}",
        "response_id": f"response-{number}",
        "worker": "w-7",
    }
    return claiming.claim(tool.workspace_id, ClaimRequest(**(usual | more)))


def claim_id_of(answer: ClaimAnswer) -> UUID:
    assert answer.claim_id is not None
    return answer.claim_id


def lose(tool: Tool, answer: ClaimAnswer, **facts: Any) -> UUID:
    """The worker reports that it does not know what became of the call."""
    usual: dict[str, Any] = {
        "fence": answer.fence,
        "error": "ReadTimeout after 30 s",
        "marker_sent": True,
    }
    claim_id = claim_id_of(answer)
    append.report(tool.workspace_id, claim_id, Outcome.UNKNOWN, Unknown(**(usual | facts)))
    return claim_id


def complete(tool: Tool, answer: ClaimAnswer, provider_object: str | None = "pi_1") -> UUID:
    claim_id = claim_id_of(answer)
    report = Complete(fence=answer.fence, provider_object=provider_object, result='{"id": "pi_1"}')
    append.report(tool.workspace_id, claim_id, Outcome.COMPLETED, report)
    return claim_id


def not_sent(tool: Tool, answer: ClaimAnswer) -> UUID:
    claim_id = claim_id_of(answer)
    report = Fail(fence=answer.fence, proof=Outcome.NOT_SENT)
    append.report(tool.workspace_id, claim_id, Outcome.NOT_SENT, report)
    return claim_id


def a_lost_call(tool: Tool, **more: Any) -> UUID:
    """A call whose answer was lost: unknown."""
    return lose(tool, a_call(tool, **more))


def see(tool: Tool, claim_id: UUID, word: SightingWord, **changes: Any) -> None:
    """One provider answer about the claim, of now."""
    claim = queries.claim(tool.workspace_id, claim_id)
    data = {
        "route": "List PaymentIntents",
        "asked_at": queries.clock().isoformat(),
        "strength": "strong",
        "why": "Complete read of the right account.",
        **changes.pop("data", {}),
    }
    usual: dict[str, Any] = {"word": word, "fence": claim.fence, "counts": False, "data": data}
    append.observe(tool.workspace_id, claim_id, Observation(**(usual | changes)))


def move_clock(by: timedelta) -> None:
    """The database's clock is `by` ahead from now on; undone with the test's transaction."""
    assert connection.in_atomic_block, "A clock that was moved would outlive this test."
    seconds = int(by.total_seconds())
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE OR REPLACE FUNCTION ledger_clock() RETURNS timestamptz LANGUAGE sql VOLATILE "
            f"AS $$ SELECT clock_timestamp() + make_interval(secs => {seconds}) $$"
        )
