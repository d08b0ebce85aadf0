"""One notification in words: as plain text for mail, for Slack-compatible tools, and as data.

Pure. Texts that models wrote are one line each, with everything unseen in them written out, so that
they can neither add a line to a mail nor turn one round; in chat they are escaped, so that they
mention nobody and link nowhere. Times are exact and name their zone: a message is read later.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final
from zoneinfo import ZoneInfo

from effects.money import Money
from effects.templatetags.desk import state_word
from effects.times import relative_words, write_duration
from reconcile.notify.facts import Condition, Why
from reconcile.notify.limits import CALLS_NAMED_MAX
from reconcile.reading import visible

LINE_CHARACTERS_MAX: Final = 160
SUBJECT_CHARACTERS_MAX: Final = 160
SLACK_HEADER_CHARACTERS_MAX: Final = 150  # https://docs.slack.dev/reference/block-kit/blocks
CURRENCIES_NAMED_MAX: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One call or connection of a notification, as it was then. `state` "": no call."""

    summary: str
    state: str
    money: Money | None
    deadline: datetime | None
    link: str
    claim_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A notification and all that its words need. `lines` are all that it tells, the most urgent
    first. `link` leads to its own page, `queue_link` to the list that holds its calls."""

    workspace: str
    mode: str
    rule: str
    condition: Condition
    within_seconds: int
    limit: Money | None
    zone: str
    at: datetime
    why: Why
    quiet_until: datetime | None
    lines: Sequence[Line]
    total: Money | None
    link: str
    queue_link: str
    names_calls: bool = True


def one_line(text: str, characters_max: int = LINE_CHARACTERS_MAX) -> str:
    """A text of somebody else's as one harmless line, cut with an ellipsis."""
    shown = visible(" ".join(text.split()))
    return shown if len(shown) <= characters_max else f"{shown[: characters_max - 1]}…"


def exact(instant: datetime, zone: str) -> str:
    """Day, time and zone: "30 Nov 2026 14:32 CET"."""
    return f"{instant.astimezone(_zone(zone)):%-d %b %Y %H:%M %Z}"


def subject_of(letter: Letter) -> str:
    """Counts and deadline: "[Halden] 2 calls close within 2 h: 9.00 EUR, first at 9:30 CET"."""
    first = _nearest(letter)
    by = f", first at {first.astimezone(_zone(letter.zone)):%H:%M %Z}" if first else ""
    workspace = one_line(letter.workspace, 40)
    return f"[{workspace}] {headline(letter)}{by}"[:SUBJECT_CHARACTERS_MAX]


def headline(letter: Letter) -> str:
    """What is so, in one line without any text of a model."""
    calls = len(letter.lines)
    many = f"{calls} call{'' if calls == 1 else 's'}"
    within, sums = write_duration(letter.within_seconds), _sums(letter.lines)
    worth = f": {sums}" if sums else ""
    match letter.condition:
        case Condition.CLOSING:
            return f"{many} close{'s' if calls == 1 else ''} within {within}{worth}"
        case Condition.UNTAKEN:
            return f"{many} with nobody for {within}{worth}"
        case Condition.EXPOSURE:
            return f"Exposure is {letter.total}, above {letter.limit}: {many} to look at"
        case Condition.OTHERWISE:
            return f"{many} contradict{'s' if calls == 1 else ''} what was told{worth}"
        case Condition.LOOKUPS:
            return _lookups(letter.lines)
        case Condition.SECOND_PERSON:
            return f"{many} wait{'s' if calls == 1 else ''} for a second person{worth}"


def text_of(letter: Letter) -> str:
    """The whole mail as plain text."""
    of = f"Workspace {one_line(letter.workspace)} ({letter.mode})"
    parts = [f"{headline(letter)}.", f"{of}, as of {exact(letter.at, letter.zone)}."]
    if note := why_now(letter):
        parts.append(note)
    paragraphs = ["\n".join(parts), *_calls(letter)]
    paragraphs.append(
        f"Acknowledge it, and see the calls as they are now:\n{letter.link}\n\n"
        f"All calls in the queue:\n{letter.queue_link}"
    )
    paragraphs.append(
        f'You get this by the rule "{one_line(letter.rule)}". Nothing is decided from a message: '
        "open the desk for that."
    )
    return "\n\n".join(paragraphs) + "\n"


def why_now(letter: Letter) -> str:
    """Why it comes in quiet hours, or nothing."""
    if letter.why is Why.TRUE or letter.quiet_until is None:
        return ""
    until = exact(letter.quiet_until, letter.zone)
    if letter.why is Why.WAKES:
        return f"Sent in quiet hours (until {until}): less time is left than may wait."
    return f"Sent in quiet hours (until {until}): after them it would come too late."


def slack_of(letter: Letter) -> str:
    """JSON for an incoming webhook of Slack, Mattermost, Rocket.Chat and their like.

    Some of them show `text` alone, so it says everything; in `blocks` what models wrote is plain
    text, where nothing is a link or a mention.
    """
    shown = letter.lines[:CALLS_NAMED_MAX] if letter.names_calls else ()
    note = why_now(letter)
    said = [f"*{escaped(headline(letter))}*", *([escaped(note)] if note else [])]
    said += [f"• <{line.link}|open> {escaped(_line(letter, line))}" for line in shown]
    said += [escaped(rest)] if (rest := _rest(letter)) else []
    said.append(f"<{letter.link}|Acknowledge or see now> · <{letter.queue_link}|All in the queue>")
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": _plain(headline(letter)[:SLACK_HEADER_CHARACTERS_MAX])}
    ]
    blocks += [{"type": "section", "text": _plain(note)}] if note else []
    blocks += [
        {
            "type": "section",
            "text": _plain(_line(letter, line)),
            "accessory": {"type": "button", "text": _plain("Open"), "url": line.link},
        }
        for line in shown
    ]
    foot = said[-1] if not rest else f"{escaped(rest)} {said[-1]}"
    blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": foot}})
    return json.dumps(
        {"text": "\n".join(said), "blocks": blocks, "unfurl_links": False, "unfurl_media": False}
    )


def data_of(letter: Letter) -> str:
    """JSON for a signed webhook, in the layout of Standard Webhooks."""
    shown = letter.lines[:CALLS_NAMED_MAX]
    calls = [
        {
            "claim_id": line.claim_id or None,
            "state": line.state or None,
            "summary": one_line(line.summary) if letter.names_calls else None,
            "amount": _amount(line.money) if letter.names_calls else None,
            "currency": line.money.currency if line.money and letter.names_calls else None,
            "closes_at": line.deadline.isoformat() if line.deadline else None,
            "link": line.link,
        }
        for line in shown
    ]
    return json.dumps(
        {
            "type": f"notification.{letter.condition}",
            "timestamp": letter.at.isoformat(),
            "data": {
                "workspace": letter.workspace,
                "mode": letter.mode,
                "rule": letter.rule,
                "headline": headline(letter),
                "why": str(letter.why),
                "count": len(letter.lines),
                "calls": calls,
                "link": letter.link,
                "queue_link": letter.queue_link,
            },
        }
    )


def escaped(text: str) -> str:
    """Text that is only text in Slack's mrkdwn: https://docs.slack.dev/messaging/formatting-message-text

    Without an angle bracket there is no link and no mention; a backtick could begin code that
    swallows the lines after it.
    """
    return (
        text.replace("&", "&amp;")
        .replace("<", "&lt;")
        .replace(">", "&gt;")
        .replace("`", "\N{PRIME}")
    )


# Inside


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo:
    return ZoneInfo(name)


def _calls(letter: Letter) -> list[str]:
    if not letter.names_calls:
        return ["What they are is said on the desk alone: this channel names no call."]
    shown = letter.lines[:CALLS_NAMED_MAX]
    named = [f"{n}. {_line(letter, line)}\n   {line.link}" for n, line in enumerate(shown, start=1)]
    return [*named, *([rest] if (rest := _rest(letter)) else [])]


def _rest(letter: Letter) -> str:
    more = len(letter.lines) - CALLS_NAMED_MAX
    return f"And {more} more, less urgent." if letter.names_calls and more > 0 else ""


def _line(letter: Letter, line: Line) -> str:
    """Summary, amount, state and window of one call, in one line."""
    parts = [one_line(line.summary)]
    if line.money is not None and str(line.money) not in line.summary:
        parts.append(str(line.money))
    if line.state:
        parts.append(state_word(line.state).lower())
    if line.deadline is not None:
        gone = line.deadline <= letter.at
        words = relative_words(line.deadline, letter.at)
        parts.append(
            f"{'closed' if gone else 'closes'} {words} ({exact(line.deadline, letter.zone)})"
        )
    return "; ".join(parts)


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _amount(money: Money | None) -> str | None:
    return None if money is None else f"{money.amount:f}"


def _nearest(letter: Letter) -> datetime | None:
    ahead = (one.deadline for one in letter.lines if one.deadline and one.deadline > letter.at)
    return min(ahead, default=None)


def _lookups(lines: Sequence[Line]) -> str:
    calls = sum(1 for line in lines if line.state)
    accounts = len(lines) - calls
    parts = []
    if accounts:
        parts.append(f"{accounts} connection{'' if accounts == 1 else 's'} left alone")
    if calls:
        parts.append(f"asking has ended about {calls} call{'' if calls == 1 else 's'}")
    said = ", ".join(parts)
    return f"{said[:1].upper()}{said[1:]}"


def _sums(lines: Sequence[Line]) -> str:
    """One sum a currency, the one with the most calls first; currencies are never added up."""
    of: dict[str, Money] = {}
    counted: Counter[str] = Counter()
    for money in (line.money for line in lines):
        if money is None:
            continue
        known = of.get(money.currency)
        of[money.currency] = Money(
            amount=money.amount + (known.amount if known else Decimal(0)),
            currency=money.currency,
            places=max(money.places, known.places if known else 0),
        )
        counted[money.currency] += 1
    listed = [str(of[code]) for code, _ in counted.most_common(CURRENCIES_NAMED_MAX)]
    more = len(of) - len(listed)
    return " and ".join(listed) + (f" and {more} more currencies" if more > 0 else "")
