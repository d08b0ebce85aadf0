"""How much of ours a browser fetches on the first visit of a page."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from django.urls import NoReverseMatch, get_resolver, reverse

from effects.core.vocabulary import Role
from tests.browser.test_every_page import NOT_PAGES, ONLY_TAKE_A_FORM, a_full_desk, plain_addresses
from tests.support.desk import a_person

pytestmark = pytest.mark.django_db

FIRST_LOAD_BYTES_MAX = 60_000
CHARTS_BYTES_MAX = 25_000
"""Further bytes for the pages that draw curves."""
WITH_CHARTS = ("exposure", "trends")
_FETCHED = re.compile(
    r'<link [^>]*rel="(?:stylesheet|icon)"[^>]*href="/static/([^"]+)"'
    r'|<script src="/static/([^"]+)"|<use href="/static/([^"#]+)|<img [^>]*src="/static/([^"]+)"'
)
"""What a page names: styles, scripts, the drawings' file, pictures."""


def fetched(page: str) -> set[str]:
    """The static files that a browser fetches for this page."""
    return {name for found in _FETCHED.findall(page) for name in found if name}


def compressed(name: str) -> int:
    path = finders.find(name)
    assert isinstance(path, str), f"{name} is linked and not there"
    return len(gzip.compress(Path(path).read_bytes(), compresslevel=9))


def test_no_page_fetches_more_than_60_kb_the_first_time(client: Client) -> None:
    charge, with_ids = a_full_desk()
    client.force_login(a_person(charge.workspace, Role.ADMIN, "ada"))
    plain = set(plain_addresses(get_resolver().url_patterns)) - NOT_PAGES - ONLY_TAKE_A_FORM
    charts = set()
    for name in WITH_CHARTS:
        try:
            charts.add(reverse(name))
        except NoReverseMatch:
            continue  # Not part of this installation.
    sizes = {}
    for address in [*sorted(plain), *with_ids]:
        files = fetched(client.get(address, follow=True).text)
        sizes[address] = sum(map(compressed, files))
        assert {"app.css", "app.js"} <= files or address.startswith("/api/"), address
        further = CHARTS_BYTES_MAX if address in charts else 0
        if sizes[address] > FIRST_LOAD_BYTES_MAX + further:
            each = {name: compressed(name) for name in sorted(files)}
            pytest.fail(f"{address} fetches {sizes[address]} bytes: {each}")
    assert max(sizes.values()) > FIRST_LOAD_BYTES_MAX / 2, "the files were not found in the pages"
