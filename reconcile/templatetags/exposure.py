"""Figures of the pages about exposure."""

from __future__ import annotations

from django import template

from reconcile.exposure import words
from reconcile.exposure.measuring import Absorbs

register = template.Library()

ABSORBS_WORDS = {
    Absorbs.KEY: "absorbed by the provider's key",
    Absorbs.NOT_SEEN: "key not seen on the wire",
    Absorbs.BROKEN: "key missing or changed on the wire",
    Absorbs.NOTHING: "only the claim stops it",
}


@register.filter
def short_time(seconds: float) -> str:
    return words.time_words(seconds)


@register.filter
def share(part: float) -> str:
    """A part of one as a percentage: `{{ 0.006|share }}` is "0.6 %"."""
    return words.percent_words(100 * part)


@register.filter
def percentage(percent: float) -> str:
    return words.percent_words(percent)


@register.filter
def often(number: float) -> str:
    """How many are expected: "4.2"."""
    return words.expected_words(number)


@register.filter
def absorbs_words(word: str) -> str:
    return ABSORBS_WORDS[Absorbs(word)]


@register.filter
def counted(number: int) -> str:
    """A whole number, grouped by thousands."""
    return f"{number:,}"
