"""From the objects that carry our reference to one sighting. Pure; shared by the adapters."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """One provider object that carries our reference.

    `word` is what its status is mapped to, None where nobody mapped it. `open`: an attempt that
    could have made it may still have happened; False where that attempt's refusal is known.
    `requested` and `found` hold the fields that were compared, as people read them.
    """

    id: str
    status: str
    word: SightingWord | None
    open: bool = True
    partly: bool = False
    requested: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)

    @property
    def differing(self) -> tuple[str, ...]:
        return tuple(name for name, value in self.found.items() if value != self.requested[name])


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What all matches together amount to, in the fields that a `Look` carries."""

    word: SightingWord
    why: str
    objects: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    status: str = ""
    partly: bool = False
    requested: Mapping[str, str] = field(default_factory=dict)
    found: Mapping[str, str] = field(default_factory=dict)


def seen(matches: Iterable[Match], *, noun: str) -> Seen:
    """The sighting for all objects that carry our reference; `noun` names one ("PaymentIntent").

    The same object found twice is one. An effect outweighs everything else, because it cannot be
    undone by what stands beside it. An
    object that moved nothing and belongs to a refusal that is already known says nothing new.
    """
    every = tuple({match.id: match for match in matches}.values())
    effects = tuple(m for m in every if m.word is SightingWord.FOUND)
    if len(effects) > 1:
        return _many(effects, every, noun)
    if effects:
        return _one(effects[0], every, noun)
    open_ones = tuple(m for m in every if m.open)
    for word in (None, SightingWord.PENDING, SightingWord.FOUND_DIFFERENT):
        first = next((m for m in open_ones if m.word is word), None)
        if first is not None:
            return _without_effect(first, every, noun)
    none = f"No {noun} with our reference is there."
    if every:
        none = f"No {noun} with our reference shows an effect ({_listed(every)})."
    return Seen(word=SightingWord.ABSENT, why=none, others=tuple(m.id for m in every))


def _many(effects: tuple[Match, ...], every: tuple[Match, ...], noun: str) -> Seen:
    return Seen(
        word=SightingWord.FOUND_MANY,
        why=f"{len(effects)} {noun}s carry our reference: {_listed(effects)}.",
        objects=tuple(m.id for m in effects),
        others=_beside(every, effects),
        status=effects[0].status,
    )


def _one(effect: Match, every: tuple[Match, ...], noun: str) -> Seen:
    differing = effect.differing
    what = ", ".join(
        f"{name} {effect.found[name]} instead of {effect.requested[name]}" for name in differing
    )
    return Seen(
        word=SightingWord.FOUND_DIFFERENT if differing else SightingWord.FOUND,
        why=f"{noun} {effect.id} carries our reference and is {effect.status or 'there'}"
        + (f", but differs: {what}." if differing else "."),
        objects=(effect.id,),
        others=_beside(every, (effect,)),
        status=effect.status,
        requested=effect.requested,
        found=effect.found,
    )


def _without_effect(match: Match, every: tuple[Match, ...], noun: str) -> Seen:
    status = literal(match.status)
    why = {
        None: f"{noun} {match.id} has a status that nobody mapped: {status}.",
        SightingWord.PENDING: f"{noun} {match.id} is there and not finished: its status is "
        f"{match.status}.",
    }
    return Seen(
        word=match.word or SightingWord.UNMAPPED,
        why=why.get(
            match.word,
            f"{noun} {match.id} carries our reference, but its status is {match.status}.",
        ),
        objects=(match.id,),
        others=_beside(every, (match,)),
        status=match.status,
        partly=match.partly,
        requested=match.requested,
        found=match.found,
    )


def _beside(every: tuple[Match, ...], named: tuple[Match, ...]) -> tuple[str, ...]:
    return tuple(m.id for m in every if m not in named)


def _listed(matches: tuple[Match, ...]) -> str:
    return ", ".join(f"{m.id} {m.status}".strip() for m in matches)
