"""What the registry's templates write."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Final

from django import template

from effects.times import duration_words, write_duration

register = template.Library()


@register.filter
def grouped(number: int) -> str:
    """A count with its thousands apart: 1,493."""
    return f"{number:,}"


EXACT_BELOW: Final = timedelta(hours=2)
"""Longer spans are shown in two units: nobody counts the seconds of a day."""


@register.filter
def span(length: timedelta) -> str:
    """A length of time, to the second where it is short: "1 m 45 s", "22 h"."""
    seconds = length.total_seconds()
    return write_duration(int(seconds)) if length < EXACT_BELOW else duration_words(seconds)


@register.filter
def spans(lengths: Iterable[timedelta]) -> str:
    """Several of them: "30 s, 35 s, 1 m 5 s"."""
    return ", ".join(map(span, lengths))
