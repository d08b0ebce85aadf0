"""Which tools can have their effect twice, and why, or why not: the audit page. Pure.

A tool is judged by the weakest thing that stands between a repeat and a second effect. What is not
known counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from effects.contracts import contract_of, window_words
from effects.core.vocabulary import EffectClass
from effects.models import Tool
from effects.tools import CLASS_WORDS
from reconcile.registry.measured import NOTHING, Measured, counted


class Risk(StrEnum):
    """How a repeat of the tool's call ends, the worst first."""

    CAN = "can"
    HELD = "held"
    IN_WINDOW = "in_window"
    CANNOT = "cannot"


RISK_WORDS: Final = {
    Risk.CAN: "Can fire twice",
    Risk.HELD: "Can, where the ledger is not asked",
    Risk.IN_WINDOW: "Key, while its window is open",
    Risk.CANNOT: "Changes nothing",
}
RISK_MEANINGS: Final = {
    Risk.CAN: "something was seen, or is set, by which a repeat is a second effect",
    Risk.HELD: "no key: a repeat that the ledger does not see is a second effect",
    Risk.IN_WINDOW: "the provider answers a repeat with its first answer until the window closes",
    Risk.CANNOT: "a read may run any number of times",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """One tool: how bad it is, and the facts that say so. `against` are those that let it fire
    twice, `holds` those that stand in the way."""

    tool: Tool
    risk: Risk
    against: tuple[str, ...]
    holds: tuple[str, ...]
    on_the_wire: str
    window: str
    lookup: bool
    contract: str
    offline: bool
    calls: int
    repeated_inside: int

    @property
    def can_double_fire(self) -> bool:
        """Whether a repeat can be a second effect that the provider does not prevent."""
        return self.risk in {Risk.CAN, Risk.HELD}

    @property
    def risk_words(self) -> str:
        return RISK_WORDS[self.risk]

    @property
    def class_words(self) -> str:
        return CLASS_WORDS[EffectClass(self.tool.effect_class)]


def audit(tool: Tool, measured: Measured | None = None) -> Audit:
    """One tool as the audit page has it."""
    seen = measured or NOTHING
    against, holds = _against(tool, seen), _holds(tool, seen)
    terms = contract_of(tool.contract)
    return Audit(
        tool=tool,
        risk=_risk(tool, against),
        against=against,
        holds=holds,
        on_the_wire=_wire_words(tool, seen),
        window=window_words(tool.window_seconds) if _keyed(tool) else "no key",
        lookup=bool(tool.lookup_kind) and tool.connection_id is not None,
        contract=terms.title if terms else f"{tool.contract}, not known here",
        offline=tool.sends_offline,
        calls=seen.seen,
        repeated_inside=seen.repeated_inside,
    )


def audits(tools: Iterable[Tool], measured: dict[str, Measured]) -> list[Audit]:
    """All tools, the worst first; among equals the one with most traffic, then by name."""
    found = [audit(tool, measured.get(tool.name)) for tool in tools]
    order = list(Risk)
    return sorted(found, key=lambda one: (order.index(one.risk), -one.calls, one.tool.name))


def _risk(tool: Tool, against: tuple[str, ...]) -> Risk:
    if against:
        return Risk.CAN
    if tool.effect_class == EffectClass.READ:
        return Risk.CANNOT
    return Risk.IN_WINDOW if _keyed(tool) else Risk.HELD


def _keyed(tool: Tool) -> bool:
    return tool.effect_class == EffectClass.KEYED_WRITE


def _against(tool: Tool, seen: Measured) -> tuple[str, ...]:
    """What lets a repeat through, worst first; each a sentence without its full stop."""
    if not tool.registered:
        return ("nobody registered it, so nothing is known about its provider",)
    if tool.effect_class == EffectClass.READ:
        return _against_a_read(seen)
    return _against_a_keyed(tool, seen) if _keyed(tool) else _against_an_unkeyed(tool, seen)


def _against_a_read(seen: Measured) -> tuple[str, ...]:
    found = []
    if seen.posts_seen:
        found.append(f"declared read, and {counted(seen.posts_seen, 'request')} seen that write")
    if seen.written:
        found.append(
            f"declared read, and agents claimed {counted(seen.written, 'call')} as a write"
        )
    return tuple(found)


def _against_an_unkeyed(tool: Tool, seen: Measured) -> tuple[str, ...]:
    found = []
    if seen.repeated_inside:
        found.append(
            f"a library repeated {counted(seen.repeated_inside, 'request')} by itself, below the "
            "ledger"
        )
    if not tool.lookup_kind or tool.connection_id is None:
        found.append("no look-up: after a lost answer only a person can tell what happened")
    if tool.agent_may_repeat:
        found.append("the agent may say by itself that a repeat is meant")
    return tuple(found)


def _against_a_keyed(tool: Tool, seen: Measured) -> tuple[str, ...]:
    found = []
    terms = contract_of(tool.contract)
    if terms is not None and not terms.has_key:
        found.append(f"{terms.provider} knows no key")
    if seen.missing:
        without = seen.requests - seen.keyed_requests
        found.append(f"{without} of {counted(seen.requests, 'request')} came without a key")
    if seen.changing:
        found.append("the key changes between attempts of one call")
    elif seen.differing:
        found.append("requests carried another key than was granted")
    if tool.sends_offline and not seen.requests:
        found.append("may be sent while the ledger is away, by a key that nobody has seen arrive")
    return tuple(found)


def _holds(tool: Tool, seen: Measured) -> tuple[str, ...]:
    if tool.effect_class == EffectClass.READ:
        return ("changes nothing, as declared",)
    found = ["each call is claimed before it is sent"]
    terms = contract_of(tool.contract)
    if _keyed(tool) and (terms is None or terms.has_key):
        found.append(f"key, honoured {window_words(tool.window_seconds)}")
        if seen.key_on_every_request and not (seen.differing or seen.changing):
            found.append(f"the key arrived with all {seen.requests} requests that were shown")
    if tool.argument_rules.get("business"):
        found.append("business identity: " + ", ".join(tool.argument_rules["business"]))
    if tool.lookup_kind and tool.connection_id is not None:
        found.append("the provider can be asked")
    if tool.hold_in_turn:
        found.append("a second equal call of one turn is held")
    return tuple(found)


def _wire_words(tool: Tool, seen: Measured) -> str:
    if not seen.requests:
        return "no request shown"
    if not seen.keyed_requests:
        return f"none of {seen.requests}"
    if _keyed(tool) and (seen.changing or seen.differing):
        return f"another key, {seen.requests} requests"
    return f"{seen.keyed_requests} of {seen.requests}"
