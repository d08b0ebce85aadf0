"""The parts that every page is made of: state, window, time, money, icon.

Each tag answers with text that is escaped, an icon and a word: no meaning is carried by colour
alone. `now` is the database's clock, put into the context by the view.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final, Protocol

from django import template
from django.template import loader
from django.template.context import Context
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from effects.contracts import window_words
from effects.core.vocabulary import ClaimState, EffectClass, Reason
from effects.money import Money, from_minor
from effects.pages.settings import shown_times
from effects.pages.shell import Shell, shell_of
from effects.times import Window, duration_words, relative_words, window_of, write_duration

register = template.Library()

WINDOW_PIXELS: Final = 112
"""Width of the window bar in its own units; the stylesheet may scale it."""

STATE_PARTS: Final[dict[str, tuple[str, str, str]]] = {  # word, icon, class
    ClaimState.IN_FLIGHT: ("In flight", "flight", "st-flight"),
    ClaimState.UNKNOWN: ("Unknown", "unknown", "st-unknown"),
    ClaimState.COMPLETED: ("Happened", "happened", "st-happened"),
    ClaimState.NOT_EXECUTED: ("Did not happen", "nothappened", "st-nothappened"),
    ClaimState.RELEASED: ("Released", "released", "st-released"),
    ClaimState.CONFLICTED: ("Duplicate", "duplicate", "st-duplicate"),
    ClaimState.CLOSED: ("Closed, unknown", "closed", "st-closed"),
}
CONTRADICTION: Final = ("Contradiction", "contradiction", "st-unknown")

CLASS_PARTS: Final[dict[str, tuple[str, str]]] = {  # words, icon
    EffectClass.READ: ("read", "read"),
    EffectClass.KEYED_WRITE: ("keyed write", "key"),
    EffectClass.UNKEYED_WRITE: ("unkeyed write", "nokey"),
}

STRENGTH_BARS: Final = {"strong": 3, "fair": 2, "weak": 1, "says_nothing": 0}


class HasWindow(Protocol):
    """The part of a claim that a window bar shows."""

    effect_class: str
    granted_at: datetime
    window_until: datetime | None
    tool: Any


@register.simple_tag
def icon(name: str, size: str = "") -> SafeString:
    """One drawing of `static/icons.svg`, hidden from assistive technology: a word stands beside it.

    `size` is "" (16 px), "s" (14 px) or "l" (20 px).
    """
    sized = f"i i-{size}" if size else "i"
    return format_html(
        '<svg class="{}" aria-hidden="true"><use href="{}#{}"/></svg>',
        sized,
        static("icons.svg"),
        name,
    )


@register.inclusion_tag("_parts/badge.html")
def badge(state: str, reason: str | None = "", size: str = "") -> dict[str, str]:
    """The state of a claim as icon and word. `size` "lg" is for the head of a page."""
    word, drawing, style = STATE_PARTS[state]
    if state == ClaimState.CONFLICTED and reason == Reason.TOLD_OTHERWISE:
        word, drawing, style = CONTRADICTION
    return {"word": word, "icon": drawing, "style": style, "size": size}


@register.filter
def state_word(state: str) -> str:
    """The word that people read for a claim's state, for sentences and titles."""
    return STATE_PARTS[state][0]


@register.inclusion_tag("_parts/chip.html")
def chip(effect_class: str, boxed: bool = True) -> dict[str, str | bool]:  # noqa: FBT001, FBT002 - a template's argument.
    """The class of a tool: key, struck key or page, with its words."""
    words, drawing = CLASS_PARTS[effect_class]
    unkeyed = effect_class == EffectClass.UNKEYED_WRITE
    return {"words": words, "icon": drawing, "unkeyed": unkeyed, "boxed": boxed}


@register.inclusion_tag("_parts/strength.html")
def strength(word: str) -> dict[str, Any]:
    """How much a sighting proves, as up to three bars and a word; an unknown word has no bars."""
    lit = STRENGTH_BARS.get(word, 0)
    bars = [
        {"x": 0.5 + 6 * n, "y": 8.5 - 3.5 * n, "height": 3 + 3.5 * n, "on": n < lit}
        for n in range(3)
    ]
    return {"bars": bars, "words": word.replace("_", " ")}


@register.inclusion_tag("_parts/window.html", takes_context=True)
def window(context: Context, claim: HasWindow, now: datetime | None = None) -> dict[str, Any]:
    """The safe-retry window of a claim: a bar that shrinks, and the words that are the truth."""
    instant = now or context["now"]
    seen = _window_of_claim(claim, instant)
    left = round(WINDOW_PIXELS * seen.share, 1)
    left = max(left, 3.0) if seen.share > 0 else 0.0  # A sliver is still drawn.
    return {
        "window": seen,
        "left": {"x": round(WINDOW_PIXELS - left, 1), "width": left, "radius": min(4, left / 2)},
        "notches": [round(WINDOW_PIXELS * place, 1) for place in seen.checks],
        "now": instant,
        "request": context.get("request"),
    }


def _window_of_claim(claim: HasWindow, now: datetime) -> Window:
    start = claim.granted_at
    if claim.window_until is not None and claim.tool.window_seconds:
        # A later key generation has a window of its own, which did not start at the first grant.
        start = claim.window_until - timedelta(seconds=claim.tool.window_seconds)
    keyed = claim.effect_class == EffectClass.KEYED_WRITE
    return window_of(keyed=keyed, start=start, until=claim.window_until, now=now)


@register.simple_tag(takes_context=True)
def when(context: Context, instant: datetime | None, now: datetime | None = None) -> str:
    """`<time>` with the exact instant in its attributes, shown as the person's own setting says.

    Nothing at all is shown for None: the template says what that means there.
    """
    if instant is None:
        return ""
    return _time_element(context, instant, relative_words(instant, now or context["now"]))


@register.simple_tag(takes_context=True)
def at(context: Context, instant: datetime | None) -> str:
    """`<time>` that is always shown as clock time, never as "21 m ago"."""
    if instant is None:
        return ""
    return _time_element(context, instant, "")


def _time_element(context: Context, instant: datetime, relative: str) -> SafeString:
    setting = shown_times(context.get("request"))
    exact = setting.exact(instant)
    shown, title = exact, relative or setting.exact_utc(instant)
    ticking = ""
    if relative and setting.relative:
        shown, title, ticking = relative, exact, SafeString(" data-relative")
    return format_html(
        '<time datetime="{}" title="{}"{}>{}</time>', setting.iso(instant), title, ticking, shown
    )


@register.filter
def duration(seconds: float | timedelta) -> str:
    """A length of time in words: `{{ 4320|duration }}` is "1 h 12 m"."""
    return duration_words(
        seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
    )


@register.filter
def exactly(seconds: int) -> str:
    """A length of time as it is set, with nothing cut off: `{{ 140|exactly }}` is "2 m 20 s"."""
    return write_duration(int(seconds))


@register.filter(name="window_words")
def window_in_words(seconds: int | None) -> str:
    """A tool's safe-retry window: "24 h", "for good", "not published"."""
    return window_words(seconds)


@register.filter
def since(instant: datetime, now: datetime) -> str:
    """The age of something in words, without "ago": `{{ claim.granted_at|since:now }}`."""
    return duration_words((now - instant).total_seconds())


@register.simple_tag
def money(amount: Money | int | Decimal | None, currency: str = "", contract: str = "") -> str:
    """`149.00 <small>EUR</small>` from Money, or from minor units and a currency."""
    if amount is None or amount == "":
        return format_html('<span class="muted">{}</span>', "none")
    shown = amount if isinstance(amount, Money) else from_minor(amount, currency, contract=contract)
    return format_html("{} <small>{}</small>", shown.figure, shown.currency)


@register.inclusion_tag("_parts/copy.html")
def copy(target: str, label: str = "Copy") -> dict[str, str]:
    """A button that copies the text of the element with the id `target`; hidden without script."""
    return {"target": target, "label": label}


@register.simple_block_tag
def dialog(
    content: SafeString,
    name: str,
    title: str,
    close: str = "",
    harm: bool = False,  # noqa: FBT001, FBT002 - a template's argument.
    open: bool = True,  # noqa: A002, FBT001, FBT002 - the attribute's own name.
) -> str:
    """A native dialog that is part of the page; `close` is the address of the page without it.

    It is opened by its address (`?dialog=release`) so that it works without script and can be
    linked; with script it becomes modal.
    """
    context = {
        "content": content,
        "name": name,
        "title": title,
        "close": close,
        "harm": harm,
        "open": open,
    }
    return loader.render_to_string("_parts/dialog.html", context)


@register.simple_tag(takes_context=True)
def shell(context: Context) -> Shell:
    """What surrounds a page: navigation, workspaces, the person and their settings."""
    return shell_of(context.get("request"))
