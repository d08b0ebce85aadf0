"""A tool beside its contract: what it may say, and what is to be said about it.

A tool may promise less than its provider: a shorter window, a longer time in which the provider may
still be at work. More it may not, except where the provider's figure is a minimum, is not published
or could not be verified; then the figure is the admin's own, and is called so wherever it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from effects.contracts.reading import promise_words, window_words
from effects.contracts.shape import Source, Terms
from effects.core.vocabulary import EffectClass
from effects.times import write_duration

__all__ = [
    "ASSUMED_WORKING_SECONDS",
    "Compared",
    "Promise",
    "Remark",
    "compared",
    "faults",
    "filled",
    "remarks",
]

GENERIC: Final = "generic"
ASSUMED_WORKING_SECONDS: Final = 900
"""How long a provider is taken to work on where nobody published it: our figure, shown as ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What a tool's row says about its provider. `key_name` empty: as the contract says."""

    effect_class: EffectClass
    window_seconds: int | None
    server_working_seconds_max: int | None
    key_name: str = ""

    @property
    def keyed(self) -> bool:
        return self.effect_class is EffectClass.KEYED_WRITE


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """`bad`: something will go wrong, rather than be merely the admin's own word."""

    words: str
    source: Source | None = None
    bad: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One figure as the contract has it and as the tool has it. `narrower`: the tool is stricter;
    `own`: it goes beyond what the contract gives."""

    label: str
    contract: str
    tool: str
    source: Source
    narrower: bool = False
    own: bool = False


def filled(promise: Promise, terms: Terms) -> Promise:
    """The promise with the contract's figures where it has none of its own.

    The result is what the tool's row keeps: the row is what claims are granted by, and the contract
    is asked when a row is saved and when it is looked at.
    """
    window = promise.window_seconds
    if promise.keyed and window is None:
        window = terms.window_seconds
    working = promise.server_working_seconds_max
    return Promise(
        effect_class=promise.effect_class,
        window_seconds=window if promise.keyed else None,
        server_working_seconds_max=terms.working_seconds if working is None else working,
        key_name=promise.key_name,
    )


def faults(promise: Promise, terms: Terms) -> Mapping[str, str]:
    """Why a promise may not be saved under this contract: one sentence for each field at fault."""
    found = {}
    if promise.keyed and not terms.has_key:
        found["contract"] = (
            f"{terms.provider} knows no key ({terms.key.source.title}), so a call there cannot be "
            "a keyed write. Choose another contract, or the class without a key."
        )
    elif _window_is_wider(promise, terms) and not terms.window.minimum:
        found["window_seconds"] = (
            f"{terms.provider} honours a key for {_promised(terms)} and no longer "
            f"({terms.window.source.title}). Enter that or less."
        )
    least, working = terms.working_seconds, promise.server_working_seconds_max
    if least is not None and working is not None and working < least:
        found["server_working_seconds_max"] = (
            f"{terms.provider} may still be at work for {write_duration(least)} "
            f"({terms.working.source.title}). Enter that or more."
        )
    return found


def remarks(promise: Promise, terms: Terms) -> Iterator[Remark]:
    """What a tool's row does otherwise than its contract, in the order of the form."""
    if promise.effect_class is EffectClass.READ:
        return
    if promise.keyed and not terms.has_key:
        words = f"keyed write, but {terms.provider} knows no key: every repeat is a new effect"
        yield Remark(words=words, source=terms.key.source, bad=True)
        return
    if promise.keyed:
        yield from _window_remarks(promise, terms)
        yield from _key_remarks(promise, terms)
    elif terms.has_key and terms.name != GENERIC:
        words = f"unkeyed write, although {terms.provider} takes a key ({terms.key.name})"
        yield Remark(words=words, source=terms.key.source)
    yield from _working_remarks(promise, terms)


def compared(promise: Promise, terms: Terms) -> tuple[Compared, ...]:
    """The figures that a tool may narrow, side by side."""
    wider = _window_is_wider(promise, terms)
    window, working = promise.window_seconds, promise.server_working_seconds_max
    known, least = terms.window_seconds, terms.working_seconds
    return (
        Compared(
            label="Window",
            contract=promise_words(terms),
            tool=window_words(window) if promise.keyed else "no key is sent",
            source=terms.window.source,
            narrower=promise.keyed and known is not None and (window or 0) < known,
            own=promise.keyed and window is not None and (known is None or wider),
        ),
        Compared(
            label="May still work for",
            contract="not published" if least is None else write_duration(least),
            tool="as the contract says" if working is None else write_duration(working),
            source=terms.working.source,
            narrower=least is not None and working is not None and working > least,
            own=working is not None and (least is None or working < least),
        ),
        Compared(
            label="Key is sent as",
            contract=terms.key.name or "no key",
            tool=promise.key_name or "as the contract says",
            source=terms.key.source,
            own=_other_key(promise, terms),
        ),
    )


# Inside


def _window_is_wider(promise: Promise, terms: Terms) -> bool:
    """Whether a keyed tool relies on more than a published figure."""
    known, window = terms.window_seconds, promise.window_seconds
    return promise.keyed and None not in (known, window) and (window or 0) > (known or 0)


def _promised(terms: Terms) -> str:
    return promise_words(terms).removesuffix(" from first receipt")


def _window_remarks(promise: Promise, terms: Terms) -> Iterator[Remark]:
    window, source = promise.window_seconds, terms.window.source
    known = terms.window_seconds
    if window is None:
        words = "window not published: it counts as closed, so no call is repeated with its key"
        if known is not None:
            words = f"no window set: it counts as closed. {terms.provider}: {_promised(terms)}"
        yield Remark(words=words, source=source)
    elif known is None:
        why = "publishes none" if terms.window.verified else "has none that could be verified"
        whose = "no provider's is known" if terms.name == GENERIC else f"{terms.provider} {why}"
        words = f"window set to {window_words(window)}, your own figure: {whose}"
        yield Remark(words=words, source=source, bad=terms.name != GENERIC)
    elif window > known:
        own = ", your own figure" if terms.window.minimum else ""
        words = f"window set to {window_words(window)}{own}, {terms.provider} promises "
        yield Remark(words=words + _promised(terms), source=source, bad=True)


def _key_remarks(promise: Promise, terms: Terms) -> Iterator[Remark]:
    if _other_key(promise, terms):
        words = f"key sent as {promise.key_name}, {terms.provider} reads {terms.key.name}"
        yield Remark(words=words, source=terms.key.source, bad=True)


def _other_key(promise: Promise, terms: Terms) -> bool:
    given = promise.key_name.strip().casefold()
    known = terms.has_key and terms.name != GENERIC
    return promise.keyed and known and bool(given) and given != terms.key.name.casefold()


def _working_remarks(promise: Promise, terms: Terms) -> Iterator[Remark]:
    least, working = terms.working_seconds, promise.server_working_seconds_max
    if working is None:
        return
    done = f"the provider is taken to be done after {write_duration(working)}"
    if least is None and working < ASSUMED_WORKING_SECONDS:
        assumed = write_duration(ASSUMED_WORKING_SECONDS)
        words = f"{done}, your own figure: none is published, {assumed} would be assumed"
        yield Remark(words=words, source=terms.working.source)
    elif least is not None and working < least:
        words = f"{done}, {terms.provider} says {write_duration(least)}"
        yield Remark(words=words, source=terms.working.source, bad=True)
