"""How a call is known again over MCP: members of `_meta`, and what a tool's hints are worth.

MCP tells a client to re-issue a call whose stream broke, under a new request id, and has no key of
its own by which a server could know it again. So its identity travels in `_meta`, under a prefix of
ours. `mcp_server` and `mcp_client` are the two sides. Needs the extra `mcp`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import ValidationError

from effects.client.asking import ToolCall
from effects.client.effect_result import Effect
from effects.client.integrations.refusals import did_nothing
from effects.core.messages import ClaimRequest
from effects.core.problems import NoIdentity
from effects.core.vocabulary import EffectClass

try:
    from mcp_types import CallToolResult, TextContent, ToolAnnotations
except ImportError as error:
    raise ImportError(
        "MCP is not installed. Install the extra: pip install 'counterfoil[mcp]'."
    ) from error

__all__ = [
    "CALL_META",
    "CLAIM_META",
    "KEY_META",
    "PREFIX",
    "RECOGNISES_META",
    "RETRY_META",
    "annotations_of",
    "hinted_class",
    "meta_of",
    "place_of",
    "result_of",
]

PREFIX: Final = "dev.counterfoil/"
"""Of all our members of `_meta`. A prefix is a reversed domain whose second label is not MCP's."""

CALL_META: Final = PREFIX + "call"
"""In a request: which call of the model it is; an object with members of `ToolCall`."""

KEY_META: Final = PREFIX + "key"
"""In a request: a key of the caller's own that names the operation."""

RETRY_META: Final = PREFIX + "retry-count"
"""In a request: how often it was re-issued. Evidence, never part of the identity."""

CLAIM_META: Final = PREFIX + "claim"
"""In a result: the `claim` and its `status`, for programs; the model reads the content."""

RECOGNISES_META: Final = PREFIX + "recognises"
"""In a tool's description: true if a call that is re-issued under its identity is one effect."""

PLACE: Final = ("conversation", "turn_index", "position", "ordinal", "response_id", "call_id")
"""The members of `CALL_META`."""


def meta_of(at: ToolCall) -> dict[str, Any]:
    """The members of `_meta` that say which call of the model a `tools/call` is about. They are the
    same for every request of the call: when it is re-issued, and when its input was asked for."""
    place = {name: getattr(at, name) for name in PLACE}
    meta: dict[str, Any] = {
        CALL_META: {name: value for name, value in place.items() if value is not None}
    }
    if at.caller_key is not None:
        meta[KEY_META] = at.caller_key
    return meta


def place_of(meta: Mapping[str, Any] | None) -> ToolCall:
    """Which call of the model a request's `_meta` says it is. Raises `NoIdentity` if it says
    nothing, or something that is no identity.

    Whoever may call the server may write it. A server with several callers puts each one's name, as
    its authentication knows it, before the conversation and the key.
    """
    said = dict(meta or {})
    call, key = said.get(CALL_META, {}), said.get(KEY_META)
    if not isinstance(call, Mapping) or not (key is None or isinstance(key, str)):
        raise NoIdentity(f"{CALL_META} is no object, or {KEY_META} is no text.")
    place = {name: call[name] for name in PLACE if name in call}
    retries = said.get(RETRY_META)
    if key is None and not {"conversation", "turn_index"} <= set(place):
        raise NoIdentity(
            "The request names neither its call nor a key, so a re-issued one could not be "
            f"recognised. Send {CALL_META} with conversation and turn_index, or {KEY_META}."
        )
    try:
        ClaimRequest.model_validate(
            {"tool": "any", "arguments": "{}", "caller_key": key, "retry_count": retries, **place}
        )
    except ValidationError as error:
        faults = error.errors(include_url=False, include_input=False)
        words = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in faults)
        raise NoIdentity(f"{CALL_META} is not well formed. {words}.") from error
    return ToolCall(caller_key=key, retry_count=retries, **place)


def result_of(effect: Effect) -> CallToolResult:
    """An effect as the result of `tools/call`. It is an error only if it is proven that nothing was
    done; an unknown outcome is a result that says so."""
    claim = {} if effect.claim_id is None else {"claim": str(effect.claim_id)}
    return CallToolResult(
        content=[TextContent(type="text", text=effect.text)],
        structured_content=effect.for_model,
        is_error=did_nothing(effect),
        _meta={CLAIM_META: {**claim, "status": effect.status}},
    )


def annotations_of(effect_class: EffectClass) -> ToolAnnotations:
    """What a client may show about a tool. A write is never called idempotent: the same arguments
    in another turn are another effect."""
    reads = effect_class is EffectClass.READ
    return ToolAnnotations(read_only_hint=reads, destructive_hint=not reads, idempotent_hint=reads)


def hinted_class(annotations: ToolAnnotations | None) -> EffectClass:
    """The class that a server's hints suggest, to be shown to whoever decides. It is never taken
    for the class: hints come from the server that is to be judged, and an absent one means the
    worst. `idempotentHint` speaks of no key, so it suggests nothing."""
    reads = annotations is not None and annotations.read_only_hint is True
    return EffectClass.READ if reads else EffectClass.UNKEYED_WRITE
