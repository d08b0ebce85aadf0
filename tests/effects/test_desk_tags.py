"""The parts that pages are made of: a word and a drawing for each thing; text stays text."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, override

import pytest
from django.template import Context, Template
from django.test import RequestFactory

from effects.core.vocabulary import ClaimState, EffectClass, Reason
from effects.money import from_minor
from effects.templatetags.desk import STATE_PARTS

NOW = datetime(2026, 11, 29, 21, 40, 3, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class ToolSeen:
    window_seconds: int | None = 86_400


@dataclass(frozen=True, kw_only=True)
class ClaimSeen:
    effect_class: str = EffectClass.KEYED_WRITE
    granted_at: datetime = NOW - timedelta(hours=23)
    window_until: datetime | None = NOW + timedelta(hours=1)
    tool: ToolSeen = ToolSeen()


def drawn(source: str, *, session: dict[str, str] | None = None, **context: Any) -> str:
    request = RequestFactory().get("/")
    request.session = session or {}  # type: ignore[assignment]  # all that the tags read of it
    template = Template("{% load desk %}" + source)
    html = template.render(Context({"now": NOW, "request": request, **context}))
    return " ".join(html.split())


class TextReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.kept: list[str] = []

    @override
    def handle_data(self, data: str) -> None:
        self.kept.append(data)


def words(html: str) -> str:
    reader = TextReader()
    reader.feed(html)
    return " ".join("".join(reader.kept).split())


@pytest.mark.parametrize("state", list(ClaimState))
def test_each_state_has_a_word_and_a_drawing_of_its_own(state: ClaimState) -> None:
    word, drawing, style = STATE_PARTS[state]
    html = drawn("{% badge state %}", state=state)
    assert words(html) == word
    assert f"#{drawing}" in html
    assert style in html
    assert len({parts[1] for parts in STATE_PARTS.values()}) == len(ClaimState)


def test_a_conflict_is_a_duplicate_or_a_contradiction() -> None:
    source = "{% badge state reason %}"
    state = ClaimState.CONFLICTED
    assert words(drawn(source, state=state, reason=None)) == "Duplicate"
    assert words(drawn(source, state=state, reason=Reason.TOLD_OTHERWISE)) == "Contradiction"


@pytest.mark.parametrize(
    ("effect_class", "text"),
    [("read", "read"), ("keyed_write", "keyed write"), ("unkeyed_write", "unkeyed write")],
)
def test_classes_are_words(effect_class: str, text: str) -> None:
    assert words(drawn("{% chip effect_class %}", effect_class=effect_class)) == text


@pytest.mark.parametrize(
    ("word", "bars", "text"),
    [
        ("strong", 3, "strong"),
        ("fair", 2, "fair"),
        ("weak", 1, "weak"),
        ("says_nothing", 0, "says nothing"),
    ],
)
def test_strength_is_bars_and_a_word(word: str, bars: int, text: str) -> None:
    html = drawn("{% strength word %}", word=word)
    assert html.count('class="on"') == bars
    assert words(html) == text


@pytest.mark.parametrize(
    ("claim", "text", "kind"),
    [
        pytest.param(ClaimSeen(), "closes in 1 h", "soon", id="the last hour of a day"),
        pytest.param(
            ClaimSeen(window_until=NOW + timedelta(hours=20)), "closes in 20 h", "open", id="open"
        ),
        pytest.param(
            ClaimSeen(window_until=NOW - timedelta(minutes=40)),
            "closed 40 m ago",
            "gone",
            id="closed",
        ),
        pytest.param(ClaimSeen(window_until=None), "not published", "unpub", id="not published"),
        pytest.param(
            ClaimSeen(effect_class=EffectClass.UNKEYED_WRITE, window_until=None),
            "no key",
            "none",
            id="no key",
        ),
    ],
)
def test_the_window_is_told_in_words(claim: ClaimSeen, text: str, kind: str) -> None:
    html = drawn("{% window claim now %}", claim=claim)
    assert words(html) == text
    assert f'class="win {kind}"' in html
    assert 'aria-hidden="true"' in html


def test_the_bar_of_a_later_generation_starts_with_its_own_first_grant() -> None:
    claim = ClaimSeen(granted_at=NOW - timedelta(days=3), window_until=NOW + timedelta(hours=12))
    assert 'width="56.0"' in drawn("{% window claim now %}", claim=claim)


@pytest.mark.parametrize(
    ("session", "shown"),
    [
        pytest.param({}, "in 34 m", id="relative unless chosen otherwise"),
        pytest.param({"times": "utc"}, "29 Nov 2026 22:14:03 UTC", id="UTC"),
        pytest.param(
            {"times": "local", "zone": "Europe/Berlin"}, "29 Nov 2026 23:14:03 CET", id="local"
        ),
        pytest.param({"times": "x", "zone": "../../etc/passwd"}, "in 34 m", id="nonsense"),
    ],
)
def test_times_are_shown_as_the_person_chose(session: dict[str, str], shown: str) -> None:
    html = drawn("{% when at %}", session=session, at=NOW + timedelta(minutes=34))
    assert words(html) == shown
    assert 'datetime="2026-11-29T22:14:03.000Z"' in html


def test_a_relative_time_carries_the_exact_one() -> None:
    html = drawn("{% when at %}", session={"zone": "Asia/Tokyo"}, at=NOW)
    assert 'title="30 Nov 2026 06:40:03 JST"' in html
    assert "data-relative" in html


def test_no_time_is_no_element() -> None:
    assert drawn("{% when at %}", at=None) == ""


def test_money_has_the_places_of_its_currency() -> None:
    assert words(drawn("{% money 14900 'eur' %}")) == "149.00 EUR"
    assert words(drawn("{% money 18400 'JPY' %}")) == "18,400 JPY"
    assert words(drawn("{% money paid %}", paid=from_minor(1500, "KWD"))) == "1.500 KWD"
    assert words(drawn("{% money paid %}", paid=None)) == "none"


def test_icons_are_drawings_that_exist() -> None:
    source = (Path(__file__).parents[2] / "static" / "icons.svg").read_text()
    for _, drawing, _ in STATE_PARTS.values():
        assert f'id="{drawing}"' in source


def test_what_a_model_wrote_is_escaped_everywhere() -> None:
    evil = '"><script>alert(1)</script>'
    for source in ("{% strength evil %}", "{% icon evil %}", "{% copy evil evil %}"):
        assert "<script" not in drawn(source, evil=evil)
    dialog = "{% dialog name='d' title=evil %}{{ evil }}{% enddialog %}"
    assert "<script" not in drawn(dialog, evil=evil)


def test_a_dialog_is_open_by_its_address_and_closed_by_a_link() -> None:
    html = drawn(
        "{% dialog name='release' title='Release?' close='/queue/' %}<p>x</p>{% enddialog %}"
    )
    assert 'id="release"' in html
    assert " open data-modal" in html
    assert '<a class="iconbtn push" href="/queue/"' in html
    assert "<p>x</p>" in html
