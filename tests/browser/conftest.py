"""A fresh browser context for each test, and what every page is asked."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from playwright.sync_api import Browser, Page

STEP_MILLISECONDS = 8000
"""Longest wait for one step of a test; a page of ours takes a small part of it."""


@dataclass(slots=True)
class Heard:
    """What the browser complained about while a test ran."""

    violations: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)


@pytest.fixture
def heard() -> Heard:
    return Heard()


@pytest.fixture
def page(browser: Browser, live_desk: str, heard: Heard) -> Iterator[Page]:
    """A page at the real desk. A breach of the content policy or a script error fails the test."""
    context = browser.new_context(base_url=live_desk, viewport={"width": 1440, "height": 900})
    context.set_default_timeout(STEP_MILLISECONDS)
    opened = context.new_page()
    opened.on("console", lambda message: _listen(heard, message.type, message.text))
    opened.on("pageerror", lambda error: heard.errors.append(str(error)))
    yield opened
    context.close()
    assert heard.violations == []
    assert heard.errors == []


def _listen(heard: Heard, kind: str, text: str) -> None:
    if "Content Security Policy" in text:
        heard.violations.append(text)
    elif kind == "error" and "Failed to load resource" not in text:
        heard.errors.append(text)
