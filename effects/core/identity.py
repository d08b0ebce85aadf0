"""Who a call is: the digests by which a repeated request is recognised.

A re-issued turn keeps its conversation, turn, tool and arguments but gets a new tool-call id; a
step retry or a redelivered job keeps the id. No single recipe sees both, so a claim stores several
identities, each made by a named recipe:

* ``turn``, ``call``, ``local`` and ``caller`` say that two requests are the *same operation*;
* ``slot`` finds a re-issued turn that says something else in the same place, and is never an
  identity; ``scope`` names the turn itself;
* ``repeat`` and ``business`` find *another* operation that looks alike: they hold it, and never
  swallow it.

A recipe never changes. A better one gets a new name and is written beside the old one, because
claims that are already stored must still be found.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from uuid import UUID

from effects.core.canonical import (
    NO_RULES,
    ArgumentRules,
    Refused,
    Value,
    canonical_text,
    default_text,
    parse_arguments,
)
from effects.core.exact_json import unstorable_at

RECIPES: Final = {
    "scope": "scope.v1",
    "turn": "turn.v1",
    "slot": "slot.v1",
    "call": "call.v1",
    "local": "local.v1",
    "caller": "caller.v1",
    "repeat": "repeat.v1",
    "business": "business.v1",
    "arguments": "args.v1",
}
"""The recipe in force for each identity; its name is the first part of every digest."""

IDENTITY_BYTES: Final = 16
ARGUMENTS_DIGEST_BYTES: Final = 32
STRONG_CALL_ID_CHARACTERS_MIN: Final = 16

TOOL_BYTES_MAX: Final = 255
CONVERSATION_BYTES_MAX: Final = 255
RESPONSE_ID_BYTES_MAX: Final = 255
CALL_ID_BYTES_MAX: Final = 255
CALLER_KEY_BYTES_MAX: Final = 255
INDEX_MAX: Final = 2**31 - 1
"""Largest turn index, position or ordinal: what a PostgreSQL integer holds."""

MARKER_METADATA_KEY: Final = "counterfoil"
"""The name under which a marker is put into a provider object's metadata."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """What a claim request says about one tool call.

    ``turn_index`` is the number of assistant messages committed before the model was asked.
    ``position`` is the call's place among all calls of its response, ``ordinal`` the number of
    earlier calls there of the same tool with equal arguments. ``response_id`` is the provider's or
    None; nobody invents one. ``arguments`` is the JSON text as received.
    """

    workspace: int
    tool: str
    arguments: str | None
    conversation: str | None = None
    turn_index: int | None = None
    position: int = 0
    ordinal: int = 0
    response_id: str | None = None
    call_id: str | None = None
    caller_key: str | None = None
    rules: ArgumentRules = NO_RULES


@dataclass(frozen=True, slots=True, kw_only=True)
class Identities:
    """The digests of one call: 16 bytes each, ``arguments`` 32. None: the call has no such one.

    ``weak_call_id`` says that the call brought a tool-call id that identifies nothing across
    turns, which a person who reads about a missed or a merged repeat wants to know.
    """

    scope: bytes | None
    turn: bytes | None
    slot: bytes | None
    call: bytes | None
    local: bytes | None
    caller: bytes | None
    repeat: bytes | None
    business: bytes | None
    arguments: bytes
    weak_call_id: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DigestParts:
    """What the digests of one call are made of, encoded, for whoever makes them elsewhere.

    ``arguments`` is the canonical text. ``call`` is the id where it stands for the call across
    turns, ``local`` response and call id where they do so in their own turn only, ``business`` the
    declared members. None: the call has no such part.
    """

    tool: bytes
    arguments: bytes
    conversation: bytes | None
    turn_index: bytes | None
    ordinal: bytes
    call: bytes | None
    local: bytes | None
    caller: bytes | None
    business: bytes | None
    weak_call_id: bool


Part = str | int | None


def identities(facts: CallFacts) -> Identities:
    """All identities of a call.

    Raises `Refused`: ``no_identity`` when neither conversation and turn nor a caller key are
    given (a made-up key would recognise nothing), ``key_empty``, ``key_has_outer_space``,
    ``key_too_long``, ``key_has_control_characters``, ``<field>_empty``, ``<field>_too_long``,
    ``<field>_unstorable``, ``<field>_out_of_range``, and the codes of `parse_arguments`.
    """
    parts = digest_parts(facts)
    workspace, tool, arguments = _number(facts.workspace), parts.tool, parts.arguments
    caller, business = parts.caller, parts.business

    scope = turn = slot = call = local = repeat = None
    if parts.conversation is not None:
        spoken = workspace + parts.conversation
        repeat = _hashed("repeat", spoken, tool, arguments)
        if parts.call is not None:
            call = _hashed("call", spoken, parts.call)
        if parts.turn_index is not None:
            here = spoken + parts.turn_index
            scope = _hashed("scope", here)
            turn = _hashed("turn", here, tool, parts.ordinal, arguments)
            slot = _hashed("slot", here, tool, _number(facts.position))
            if parts.local is not None:
                local = _hashed("local", here, parts.local, tool, arguments)
    return Identities(
        scope=scope,
        turn=turn,
        slot=slot,
        call=call,
        local=local,
        caller=None if caller is None else _hashed("caller", workspace, caller),
        repeat=repeat,
        business=None if business is None else _hashed("business", workspace, tool, business),
        arguments=_hashed("arguments", tool, arguments, size=ARGUMENTS_DIGEST_BYTES),
        weak_call_id=parts.weak_call_id,
    )


def digest_parts(facts: CallFacts) -> DigestParts:
    """The parts of a call's digests, each encoded once. The workspace is not among them.

    Raises `Refused` as `identities` does.
    """
    _check_facts(facts)
    arguments = parse_arguments(facts.arguments, facts.rules)
    tool, call_id = facts.tool, facts.call_id or None  # Streams repeat an id as "" for "the same".
    strong = call_id_is_strong(call_id, tool)
    local = None
    if call_id is not None and not strong and not _same_name(call_id, tool):
        local = encoded(facts.response_id or None) + _text(call_id)
    business = _business_members(facts.rules, arguments)
    return DigestParts(
        tool=_text(tool),
        arguments=_text(canonical_text(arguments)),
        conversation=None if facts.conversation is None else _text(facts.conversation),
        turn_index=None if facts.turn_index is None else _number(facts.turn_index),
        ordinal=_number(facts.ordinal),
        call=encoded(call_id) if strong else None,
        local=local,
        caller=None if facts.caller_key is None else _text(facts.caller_key),
        business=b"".join(map(_text, business)) if business else None,
        weak_call_id=call_id is not None and not strong,
    )


def digest(identity: str, *parts: Part, size: int = IDENTITY_BYTES) -> bytes:
    """The first ``size`` bytes of SHA-256 over the recipe's name and the parts.

    Each part is written as the length of its bytes (4 bytes, big-endian), a letter for its type
    (``s`` text, ``i`` integer, ``n`` null) and its bytes, so that no two different lists of parts
    are ever the same input: neither by moving a character from one part to the next, nor by
    writing "7" for 7 or "" for null.
    """
    return _hashed(identity, *map(encoded, parts), size=size)


def _hashed(identity: str, *parts: bytes, size: int = IDENTITY_BYTES) -> bytes:
    """The same of parts that are encoded already."""
    return sha256(_NAMED[identity] + b"".join(parts)).digest()[:size]


def encoded(part: Part) -> bytes:
    """One part as the digests read it."""
    if part is None:
        return b"\x00\x00\x00\x00n"
    return _text(part) if isinstance(part, str) else _number(part)


def _text(text: str) -> bytes:
    content = text.encode()
    return b"%bs%b" % (len(content).to_bytes(4, "big"), content)


def _number(number: int) -> bytes:
    content = b"%d" % number
    return b"%bi%b" % (len(content).to_bytes(4, "big"), content)


_NAMED: Final = {identity: _text(recipe) for identity, recipe in RECIPES.items()}


def _business_members(rules: ArgumentRules, arguments: dict[str, Value]) -> list[str]:
    """Name and canonical value of each declared business member, in the order of their names; none
    where one of them is missing.

    A member that is absent and has a default counts as that default: otherwise the most ordinary
    calls, those that say what is usual, would be the ones without a business identity.
    """
    parts: list[str] = []
    for name in sorted(set(rules.business)):
        if name in arguments:
            text = canonical_text(arguments[name])
        elif name in rules.defaults:
            text = default_text(rules, name)
        else:
            return []
        if text == "null":
            return []
        parts += [name, text]
    return parts


def call_id_is_strong(call_id: str | None, tool: str) -> bool:
    """Whether a tool-call id may stand for one call across turns.

    It must have 16 characters that do not merely repeat the tool's name: some layers use the name
    itself as the id, others build ids like ``functions.send_email:0``, and both come back in a
    later turn for another call. Whether the id was also seen in two responses, only the ledger
    knows.
    """
    if call_id is None or len(call_id) < STRONG_CALL_ID_CHARACTERS_MIN:
        return False
    name, folded = tool.casefold(), call_id.casefold()
    if name in folded:
        whole_word = rf"(?<![^\W_]){re.escape(name)}(?![^\W_])"
        folded = re.sub(whole_word, "", folded)
    return len(folded) >= STRONG_CALL_ID_CHARACTERS_MIN


def _same_name(call_id: str, tool: str) -> bool:
    return call_id.casefold() == tool.casefold()


# What the provider is given


def forwarded_key(identities: Identities, generation: int) -> str:
    """The idempotency key to send to the provider, at most 64 characters.

    It comes from the caller's own key if one was brought, else from the turn, the call id or the
    local id: the first of the same-operation identities that the call has. A generation is a key's
    life at the provider; only a stored refusal, a person's decision or a closed window on a claim
    that is firmly not executed starts the next one.

    Raises ValueError for a generation below 1 or a call without a same-operation identity.
    """
    same = (identities.caller, identities.turn, identities.call, identities.local)
    first = next((identity for identity in same if identity is not None), None)
    if first is None:
        raise ValueError("These identities name no operation, so no key can be derived.")
    return f"cf1-{first.hex()}-{_checked(generation)}"


def marker(claim_id: UUID, generation: int) -> str:
    """Our reference inside a request: the claim and the generation of its key."""
    return f"cf_{claim_id.hex}_{_checked(generation)}"


_MARKER = re.compile(r"cf_([0-9a-f]{32})_([1-9][0-9]{0,8})")


def read_marker(text: str) -> tuple[UUID, int] | None:
    """Claim and generation of a marker found in a provider object, or None if it is not one.

    The whole text must be a marker: a provider object proves something about a claim only if it
    carries exactly what we wrote.
    """
    match = _MARKER.fullmatch(text)
    return (UUID(hex=match[1]), int(match[2])) if match else None


def _checked(generation: int) -> int:
    if not 1 <= generation < 10**9:
        raise ValueError(f"A generation counts from 1 and has at most 9 digits, not {generation}.")
    return generation


# Limits on what a request says


def _check_facts(facts: CallFacts) -> None:
    if facts.caller_key is not None:
        _check_caller_key(facts.caller_key)
    elif facts.conversation is None or facts.turn_index is None:
        raise Refused(
            "no_identity",
            "The call says neither its conversation and turn index nor a key of its own, so a "
            "repeat could not be recognised. Send conversation and turn_index, or a caller key.",
        )
    _check_text("tool", facts.tool, TOOL_BYTES_MAX, may_be_empty=False)
    _check_text("conversation", facts.conversation, CONVERSATION_BYTES_MAX, may_be_empty=False)
    _check_text("response_id", facts.response_id, RESPONSE_ID_BYTES_MAX)
    _check_text("call_id", facts.call_id, CALL_ID_BYTES_MAX)
    _check_index("turn_index", facts.turn_index)
    _check_index("position", facts.position)
    _check_index("ordinal", facts.ordinal)


def _check_index(name: str, index: int | None) -> None:
    if index is not None and not 0 <= index <= INDEX_MAX:
        sentence = f"{name} is {index}; it counts from 0 to the limit INDEX_MAX, {INDEX_MAX}."
        raise Refused(f"{name}_out_of_range", sentence)


def _check_text(name: str, text: str | None, bytes_max: int, *, may_be_empty: bool = True) -> None:
    if text is None:
        return
    if not text and not may_be_empty:
        sentence = f"{name} is empty. Send its real value: an empty one is shared by strangers."
        raise Refused(f"{name}_empty", sentence)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > bytes_max:
        limit = f"{name.upper()}_BYTES_MAX"
        sentence = f"{name} has {size} bytes of UTF-8; the limit {limit} is {bytes_max}."
        raise Refused(f"{name}_too_long", sentence)
    at = unstorable_at(text)
    if at is not None:
        sentence = (
            f"{name} holds U+0000 or half of a surrogate pair (offset {at}), which the ledger "
            "cannot store. Send whole characters."
        )
        raise Refused(f"{name}_unstorable", sentence, at)


_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


def _check_caller_key(key: str) -> None:
    """A caller's key is taken as it is: trimming or folding would merge two callers' keys."""
    size = len(key.encode("utf-8", "surrogatepass"))
    if not key:
        sentence = "The key is empty. Send a key of your own, or leave it out."
        raise Refused("key_empty", sentence)
    if size > CALLER_KEY_BYTES_MAX:
        sentence = (
            f"The key has {size} bytes of UTF-8; the limit CALLER_KEY_BYTES_MAX is "
            f"{CALLER_KEY_BYTES_MAX}. Send a shorter key, for example a digest of it."
        )
        raise Refused("key_too_long", sentence)
    if key != key.strip():
        sentence = "The key begins or ends with white space. Send it without."
        raise Refused("key_has_outer_space", sentence)
    control = _CONTROL.search(key)
    if control:
        sentence = (
            f"The key holds a control character or half of a surrogate pair (offset "
            f"{control.start()}). Send it without."
        )
        raise Refused("key_has_control_characters", sentence, control.start())
