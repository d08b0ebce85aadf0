"""What a message says, and what the text of a model can do in it: nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.money import Money
from reconcile.notify.composing import (
    Letter,
    Line,
    data_of,
    escaped,
    headline,
    slack_of,
    subject_of,
    text_of,
)
from reconcile.notify.facts import Condition, Why

AT = datetime(2027, 1, 15, 12, 10, tzinfo=UTC)
C = Condition


def line(summary: str = "Charge 149.00 EUR to cus_1", **more: Any) -> Line:
    usual: dict[str, Any] = {
        "state": "unknown",
        "money": Money(amount=Decimal(149), currency="EUR"),
        "deadline": AT + timedelta(minutes=34),
        "link": "https://desk.example.com/calls/1",
    }
    return Line(summary=summary, **(usual | more))


def letter(*lines: Line, condition: Condition = C.CLOSING, **more: Any) -> Letter:
    usual: dict[str, Any] = {
        "workspace": "Halden",
        "mode": "live",
        "rule": "Closing soon",
        "within_seconds": 7200,
        "limit": None,
        "zone": "Europe/Berlin",
        "at": AT,
        "why": Why.TRUE,
        "quiet_until": None,
        "total": None,
        "link": "https://desk.example.com/notifications/7/",
        "queue_link": "https://desk.example.com/queue/?view=closing",
    }
    return Letter(condition=condition, lines=lines, **(usual | more))


def test_the_subject_has_counts_money_and_the_first_deadline_with_its_zone() -> None:
    dollars = line(money=Money(amount=Decimal("3.5"), currency="USD"), deadline=None)
    assert subject_of(letter(line(), line(), dollars)) == (
        "[Halden] 3 calls close within 2 h: 298.00 EUR and 3.50 USD, first at 13:44 CET"
    )


@pytest.mark.parametrize(
    ("condition", "lines", "said"),
    [
        (C.CLOSING, [line()], "1 call closes within 2 h: 149.00 EUR"),
        (C.UNTAKEN, [line(), line(money=None)], "2 calls with nobody for 2 h: 149.00 EUR"),
        (C.EXPOSURE, [line()], "Exposure is 900.00 EUR, above 500.00 EUR: 1 call to look at"),
        (C.OTHERWISE, [line(money=None)], "1 call contradicts what was told"),
        (C.LOOKUPS, [line(state="")], "1 connection left alone"),
        (C.LOOKUPS, [line(), line()], "Asking has ended about 2 calls"),
        (C.SECOND_PERSON, [line()], "1 call waits for a second person: 149.00 EUR"),
    ],
)
def test_each_condition_has_its_own_line(condition: C, lines: list[Line], said: str) -> None:
    def euros(amount: int) -> Money:
        return Money(amount=Decimal(amount), currency="EUR")

    assert headline(letter(*lines, condition=condition, total=euros(900), limit=euros(500))) == said


def test_a_mail_names_each_call_in_one_line_with_its_exact_end_and_a_link() -> None:
    said = text_of(letter(line("Refund to cus_1"), *[line()] * 11))
    assert "as of 15 Jan 2027 13:10 CET." in said
    assert (
        "1. Refund to cus_1; 149.00 EUR; unknown; closes in 34 m (15 Jan 2027 13:44 CET)\n"
        "   https://desk.example.com/calls/1\n" in said
    )
    assert "10. Charge" in said
    assert "11. Charge" not in said
    assert "And 2 more, less urgent." in said
    assert "https://desk.example.com/notifications/7/" in said
    assert 'the rule "Closing soon"' in said


def test_a_message_in_quiet_hours_says_why_it_comes() -> None:
    until = AT + timedelta(hours=8)
    said = text_of(letter(line(), why=Why.CLOSES_FIRST, quiet_until=until))
    assert "quiet hours (until 15 Jan 2027 21:10 CET): after them it would come too late." in said


def test_a_channel_that_names_no_calls_says_nothing_of_them() -> None:
    quiet = letter(line("Refund to cus_SECRET"), names_calls=False)
    for said in (text_of(quiet), slack_of(quiet), data_of(quiet)):
        assert "cus_SECRET" not in said
        assert "1 call closes within 2 h" in said
    assert json.loads(data_of(quiet))["data"]["calls"][0]["amount"] is None


def test_text_of_a_model_adds_no_line_turns_none_round_and_mentions_nobody() -> None:
    hostile = "a\r\nBcc: eve@example.com\n\n2. fake; \u202ecte \u2028 <!channel> <http://evil|x> `"
    mail = text_of(letter(line(hostile)))
    assert sum(one.startswith(("Bcc", "2. ")) for one in mail.splitlines()) == 0
    assert not {"\u202e", "\u2028", "\r"} & set(mail)
    said = json.loads(slack_of(letter(line(hostile))))
    assert "<!" not in said["text"]
    assert "<http://evil" not in said["text"]
    assert "&lt;!channel&gt;" in said["text"]
    sections = [one["text"] for one in said["blocks"] if "accessory" in one]
    assert [one["type"] for one in sections] == ["plain_text"], "where nothing is a mention"
    assert (said["unfurl_links"], said["unfurl_media"]) == (False, False)


@given(st.text(max_size=300))
def test_no_text_breaks_out_of_its_line(text: str) -> None:
    plain, hostile = text_of(letter(line("x"))), text_of(letter(line(text or "x")))
    assert len(plain.splitlines()) == len(hostile.splitlines())
    assert not set("<>`") & set(escaped(text))
    assert json.loads(data_of(letter(line(text))))["data"]["count"] == 1
