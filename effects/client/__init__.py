"""Claim before a tool changes the world, and be told what became of it.

    from effects.client import Ledger, ToolCall, effect

    ledger = Ledger("https://ledger.example.com", token)

    @effect(ledger, effect_class="keyed_write", object_from="id")
    def create_refund(call, *, payment_intent, amount):
        return stripe_client.v1.refunds.create(
            {"payment_intent": payment_intent, "amount": amount, "metadata": call.marker_metadata},
            {"idempotency_key": call.key},
        )

    done = create_refund(
        ToolCall(conversation="c-1", turn_index=4, call_id="toolu_01WkP9Qm"),
        payment_intent="pi_1", amount=1200,
    )
    done.for_model  # the exact object to give to the model

Everything named in `__all__` is documented in docs/client.md; everything else is inside. A name is
imported when it is first used, so that an agent that starts often pays only for what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from effects.client.aio import AsyncCall, AsyncLedger, AsyncTurn
    from effects.client.asking import Patience, Received, ToolCall
    from effects.client.call import Call
    from effects.client.decorate import AsyncTool, Tool, effect
    from effects.client.effect_result import Effect
    from effects.client.ledger import Ledger, NotGranted
    from effects.client.spool import Delivered, Spool, SpoolFull
    from effects.client.transport import Transport
    from effects.client.transport_http import HttpTransport, Timeouts
    from effects.client.turn import Turn, TurnCall
    from effects.client.version import VERSION
    from effects.core.failures import (
        Contract,
        ErrorProof,
        ErrorRow,
        ErrorRules,
        NotSent,
        SendTooLate,
    )
    from effects.core.problems import (
        ArgumentsRefused,
        BadRequest,
        ClaimNotFound,
        LedgerProblem,
        LedgerUnavailable,
        LimitExceeded,
        NoIdentity,
        ScopeMissing,
        TokenRefused,
    )
    from effects.core.vocabulary import EffectClass

__all__ = [
    "VERSION",
    "ArgumentsRefused",
    "AsyncCall",
    "AsyncLedger",
    "AsyncTool",
    "AsyncTurn",
    "BadRequest",
    "Call",
    "ClaimNotFound",
    "Contract",
    "Delivered",
    "Effect",
    "EffectClass",
    "ErrorProof",
    "ErrorRow",
    "ErrorRules",
    "HttpTransport",
    "Ledger",
    "LedgerProblem",
    "LedgerUnavailable",
    "LimitExceeded",
    "NoIdentity",
    "NotGranted",
    "NotSent",
    "Patience",
    "Received",
    "ScopeMissing",
    "SendTooLate",
    "Spool",
    "SpoolFull",
    "Timeouts",
    "TokenRefused",
    "Tool",
    "ToolCall",
    "Transport",
    "Turn",
    "TurnCall",
    "effect",
]

WHERE: Final = {
    "ArgumentsRefused": "effects.core.problems",
    "AsyncCall": "effects.client.aio",
    "AsyncLedger": "effects.client.aio",
    "AsyncTool": "effects.client.decorate",
    "AsyncTurn": "effects.client.aio",
    "BadRequest": "effects.core.problems",
    "Call": "effects.client.call",
    "ClaimNotFound": "effects.core.problems",
    "Contract": "effects.core.failures",
    "Delivered": "effects.client.spool",
    "Effect": "effects.client.effect_result",
    "EffectClass": "effects.core.vocabulary",
    "ErrorProof": "effects.core.failures",
    "ErrorRow": "effects.core.failures",
    "ErrorRules": "effects.core.failures",
    "HttpTransport": "effects.client.transport_http",
    "Ledger": "effects.client.ledger",
    "LedgerProblem": "effects.core.problems",
    "LedgerUnavailable": "effects.core.problems",
    "LimitExceeded": "effects.core.problems",
    "NoIdentity": "effects.core.problems",
    "NotGranted": "effects.client.ledger",
    "NotSent": "effects.core.failures",
    "Patience": "effects.client.asking",
    "Received": "effects.client.asking",
    "ScopeMissing": "effects.core.problems",
    "SendTooLate": "effects.core.failures",
    "Spool": "effects.client.spool",
    "SpoolFull": "effects.client.spool",
    "Timeouts": "effects.client.transport_http",
    "TokenRefused": "effects.core.problems",
    "Tool": "effects.client.decorate",
    "ToolCall": "effects.client.asking",
    "Transport": "effects.client.transport",
    "Turn": "effects.client.turn",
    "TurnCall": "effects.client.turn",
    "VERSION": "effects.client.version",
    "effect": "effects.client.decorate",
}


def __getattr__(name: str) -> Any:
    where = WHERE.get(name)
    if where is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(where), name)
    globals()[name] = value  # The next use does not come here.
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
