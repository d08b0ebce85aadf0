"""From which amount on a tool's calls need a second person, in a few words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from effects.core.vocabulary import EffectClass
from effects.models import Tool
from reconcile.second_person import Rule


def words(tool: Tool, rules: Iterable[Rule]) -> str:
    """ "from 500 EUR", "always" or "no rule": what the strictest rule about its class says.

    A release with a new key needs two people whatever the rules say.
    """
    if tool.effect_class == EffectClass.READ:
        return "not needed"
    about = [rule for rule in rules if rule.effect_class in {None, EffectClass(tool.effect_class)}]
    if not about:
        return "no rule"
    if any(rule.amount_from is None for rule in about):
        return "always"
    least = min(about, key=lambda rule: rule.amount_from or 0)
    amount = least.amount_from.normalize() if least.amount_from is not None else 0
    return f"from {amount:f} {least.currency}".rstrip()
