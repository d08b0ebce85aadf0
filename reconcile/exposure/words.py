"""Figures as people read them: with the digits that mean something, and no others."""

from __future__ import annotations

from effects.times import MINUTE_SECONDS, duration_words


def time_words(seconds: float) -> str:
    """A length of time that may be a part of a second: "240 ms", "1.06 s", "12.3 s", "3 m"."""
    if seconds < 0.9995:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 9.995:
        return f"{seconds:.2f} s"
    if seconds < MINUTE_SECONDS:
        return f"{seconds:.1f} s"
    return duration_words(seconds)


def percent_words(percent: float) -> str:
    """A percentage with as many digits as tell it from nothing: "0.3 %", "94.1 %", "100 %"."""
    if percent in {0.0, 100.0}:
        return f"{percent:.0f} %"
    if percent < 1:
        return f"{percent:.2g} %"
    # Nothing that is not all of them is shown as all of them.
    return f"{min(percent, 99.9):.1f} %"


def expected_words(number: float) -> str:
    """How many are expected: "0", "0.07", "4.2", "312"."""
    if number == 0:
        return "0"
    if number < 1:
        return f"{number:.2g}"
    return f"{number:.1f}" if number < 100 else f"{number:,.0f}"
