"""What traffic makes one say about a tool, beside what its settings alone do.

Every rule is a pure function of the tool, of what was measured and of what is hidden. It says what
it saw, what to do about it, and which calls it rests on.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

from effects import registry, tools
from effects.core.redaction import NO_REDACTION, Mode, Redaction, redact
from effects.core.vocabulary import EffectClass
from effects.models import Tool
from effects.tools import Lint
from reconcile.registry.measured import NAMED_MAX, NOTHING, Measured, counted

UNKNOWN_PERCENT_MAX: Final = 5.0
"""From this share of unknown outcomes on it is said, because people will be busy with it."""
CALLS_FOR_A_SHARE_MIN: Final = 20
"""Fewer calls make no share."""

Rule = Callable[[Tool, Measured], Lint | None]


def lint(
    tool: Tool, measured: Measured | None = None, hides: Redaction = NO_REDACTION
) -> tuple[Lint, ...]:
    """Everything that can be said about a tool, from its settings, its traffic and what is hidden
    of its arguments, the worst first."""
    seen = measured or NOTHING
    found = [remark for rule in RULES if (remark := rule(tool, seen)) is not None]
    found += _hidden_fields(tool, hides)
    return tuple(sorted((*tools.lint(tool), *found), key=lambda remark: not remark.bad))


def _hidden_fields(tool: Tool, hides: Redaction) -> list[Lint]:
    """What people and look-ups need, and a redaction rule takes away before it is stored."""
    rules_alone = replace(hides, secrets=frozenset())
    by_mode: dict[Mode, list[str]] = {Mode.DROP: [], Mode.HIDE: []}
    for path in _fields_needed(tool):
        for found in redact(_with_a_value_at(path), rules_alone).found:
            by_mode[found.mode].append(path)
    remarks = []
    if by_mode[Mode.DROP]:
        remarks.append(
            Lint(
                words=f"a redaction rule drops {_listed(by_mode[Mode.DROP])}",
                bad=tool.effect_class != EffectClass.READ,
                todo="A look-up cannot compare what was never stored. Hide it instead: then it is "
                "sealed, and opened for the question alone.",
            )
        )
    if by_mode[Mode.HIDE]:
        remarks.append(
            Lint(
                words=f"hidden before it is stored: {_listed(by_mode[Mode.HIDE])}",
                todo="The queue shows none of it; whoever may reveal it sees it on the call.",
            )
        )
    return remarks


def _fields_needed(tool: Tool) -> tuple[str, ...]:
    """The paths of the arguments that the desk and the look-ups read, each once."""
    fixed = (tool.amount_field, tool.currency_field, tool.customer_field)
    named = [*fixed, *registry.field_paths(tool.summary)]
    paths = (path.strip() for path in named if not path.startswith("="))
    return tuple(dict.fromkeys(path for path in paths if path not in {"", *_OF_THE_SUMMARY}))


_OF_THE_SUMMARY: Final = frozenset({"amount", "customer"})
"""What a summary says by these names is read at the amount's and the customer's own fields."""


def _with_a_value_at(path: str) -> str:
    value: object = "value"
    for name in reversed(path.split(".")):
        value = {name: value}
    return json.dumps(value)


def _listed(paths: Sequence[str]) -> str:
    return ", ".join(dict.fromkeys(paths))


def _posts_of_a_read(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.READ or not seen.posts_seen:
        return None
    return Lint(
        words=f"declared read, but {counted(seen.posts_seen, 'POST')} seen",
        bad=True,
        todo="Look at what it sends. If it changes anything, it is a write.",
        claims=seen.posts,
    )


def _read_that_is_claimed(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.READ or not seen.written:
        return None
    return Lint(
        words=f"declared read, but agents claimed {counted(seen.written, 'call')} as a write",
        bad=True,
        todo="The stricter of both is in force, so these calls are guarded. Say here what it is.",
        claims=seen.recent[:NAMED_MAX],
    )


def _key_without_a_class(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.UNKEYED_WRITE or not seen.key_on_every_request:
        return None
    return Lint(
        words=f"a key was seen on each of {counted(seen.requests, 'request')}: keyed write?",
        todo="Find out whether the provider honours it, and for how long; then change the class.",
        claims=seen.recent[:NAMED_MAX],
    )


def _key_that_changes(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.KEYED_WRITE or not seen.changing:
        return None
    return Lint(
        words="key derived from a value that changes between attempts",
        bad=True,
        todo="Send the key that the ledger hands out. A key made from a clock, a counter or a "
        "random number is a new request each time.",
        claims=seen.changing,
    )


def _key_missing(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.KEYED_WRITE or not seen.missing:
        return None
    without = seen.requests - seen.keyed_requests
    return Lint(
        words=f"{without} of {counted(seen.requests, 'request')} arrived without a key",
        bad=True,
        todo="Look for a client that sets it for some calls only, or a proxy that strips headers. "
        "Until it arrives every repeat is a new effect.",
        claims=seen.missing,
    )


def _key_of_somebody_else(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.KEYED_WRITE or not seen.differing or seen.changing:
        return None
    return Lint(
        words="requests carried another key than was granted",
        bad=True,
        todo="Send the key that the ledger hands out: nobody can be asked by a key it never saw.",
        claims=seen.differing,
    )


def _key_not_seen(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.KEYED_WRITE or seen.requests or not seen.calls:
        return None
    return Lint(
        words=f"key not seen on the wire in {_last(seen.calls)}",
        todo="Import the provider's or the gateway's record: a key that a library was given is not "
        "yet a key that was sent.",
        claims=seen.recent[:NAMED_MAX],
    )


def _repeated_by_a_library(tool: Tool, seen: Measured) -> Lint | None:
    if tool.effect_class != EffectClass.UNKEYED_WRITE or not seen.repeated_inside:
        return None
    return Lint(
        words=f"a library repeated {counted(seen.repeated_inside, 'request')} by itself, "
        "without a key",
        bad=True,
        todo="Switch its retries off (max_retries=0) for this call: the ledger cannot see them.",
        claims=seen.recent[:NAMED_MAX],
    )


def _often_unknown(tool: Tool, seen: Measured) -> Lint | None:
    share = seen.unknown_percent
    if tool.effect_class == EffectClass.READ or share is None:
        return None
    if seen.calls < CALLS_FOR_A_SHARE_MIN or share < UNKNOWN_PERCENT_MAX:
        return None
    return Lint(
        words=f"unknown rate {seen.unknown_words}, above {UNKNOWN_PERCENT_MAX:.0f} %",
        bad=True,
        todo="Compare the longest attempt with how long the provider really takes.",
        claims=seen.recent_unknown,
    )


def _amount_missed(tool: Tool, seen: Measured) -> Lint | None:
    return _missed("amount", tool.amount_field, seen.amount_missed, seen)


def _customer_missed(tool: Tool, seen: Measured) -> Lint | None:
    return _missed("customer", tool.customer_field, seen.customer_missed, seen)


def _missed(what: str, path: str, missed: int, seen: Measured) -> Lint | None:
    if not path or not missed or not seen.read:
        return None
    none_has_it = missed == seen.read
    words = f"{what} path {path} matches nothing in {_last(seen.read)}"
    if not none_has_it:
        words = f"{what} path {path} matches nothing in {missed} of {_last(seen.read)}"
    todo = f"Look at the arguments of a call, and name the field that holds the {what}."
    if what == "amount":
        todo = f"{todo} It also needs a currency."
    return Lint(words=words, bad=none_has_it, todo=todo, claims=seen.recent[:NAMED_MAX])


def _summary_missed(tool: Tool, seen: Measured) -> Lint | None:
    if not tool.summary or not seen.holes_missed:
        return None
    holes = ", ".join("{" + hole + "}" for hole in seen.holes_missed[:NAMED_MAX])
    return Lint(
        words=f"summary names {holes}, which {_last(seen.read)} did not have",
        todo="Name fields that the arguments have.",
        claims=seen.recent[:NAMED_MAX],
    )


RULES: Final[tuple[Rule, ...]] = (
    _posts_of_a_read,
    _read_that_is_claimed,
    _key_that_changes,
    _key_missing,
    _key_of_somebody_else,
    _repeated_by_a_library,
    _often_unknown,
    _amount_missed,
    _customer_missed,
    _summary_missed,
    _key_without_a_class,
    _key_not_seen,
)


def _last(number: int) -> str:
    return "the last call" if number == 1 else f"the last {number:,} calls"
