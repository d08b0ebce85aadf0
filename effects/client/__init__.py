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

Everything named in `__all__` is documented in docs/client.md; everything else is inside.
"""

from effects.client.aio import AsyncCall, AsyncLedger, AsyncTurn
from effects.client.asking import Patience, ToolCall
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
