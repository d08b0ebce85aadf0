"""Notes: a small part of Markdown, people who are named, and never any markup but ours."""

import re
from html.parser import HTMLParser
from typing import override

import pytest
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from effects.core.vocabulary import Role
from effects.models import Membership
from reconcile import listing
from reconcile.models import Mention
from reconcile.notes.markdown import names_in, rendered
from reconcile.views.filters import Filters, View
from tests.support import desk

PEOPLE = {"bo": "/people/7/", "ana@example.org": "/people/8/"}


OUTSIDE = 'rel="noopener noreferrer nofollow" target="_blank"'


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("plain", "<p>plain</p>"),
        ("one\ntwo\n\nthree", "<p>one<br>two</p><p>three</p>"),
        ("**so** and *so*", "<p><strong>so</strong> and <em>so</em></p>"),
        ("2*3*4 and 2 * 3", "<p>2*3*4 and 2 * 3</p>"),
        ("- a\n- **b**", "<ul><li>a</li><li><strong>b</strong></li></ul>"),
        ("> said\nnot said", "<blockquote>said</blockquote><p>not said</p>"),
        ("`**a** @bo <b>`", "<p><code>**a** @bo &lt;b&gt;</code></p>"),
        ("```\n<b>\n@bo\n```\nrest", "<pre><code>&lt;b&gt;\n@bo</code></pre><p>rest</p>"),
        ("```\nnever closed", "<pre><code>never closed</code></pre>"),
        ("ask @bo.", '<p>ask <a class="mention" href="/people/7/">@bo</a>.</p>'),
        ("@Ana@Example.org", '<p><a class="mention" href="/people/8/">@Ana@Example.org</a></p>'),
        ("@nobody and x@bo.example", "<p>@nobody and x@bo.example</p>"),
        (
            "[x](https://a.test/?a=1&b=2)",
            f'<p><a href="https://a.test/?a=1&amp;b=2" {OUTSIDE}>x</a></p>',
        ),
        (
            "see https://a.test/_x_.",
            f'<p>see <a href="https://a.test/_x_" {OUTSIDE}>https://a.test/_x_</a>.</p>',
        ),
        ("[x](javascript:alert(5))", "<p>[x](javascript:alert(5))</p>"),
        ("<script>alert(1)</script>", "<p>&lt;script&gt;alert(1)&lt;/script&gt;</p>"),
        ("\u202egpj.exe", "<p>⟦U+202E⟧gpj.exe</p>"),
        ("\x000\x00", "<p>⟦U+0000⟧0⟦U+0000⟧</p>"),
    ],
)
def test_a_note_reads_as_it_is_meant(text: str, html: str) -> None:
    assert rendered(text, PEOPLE) == html


ALLOWED = {
    "p": set(),
    "br": set(),
    "ul": set(),
    "li": set(),
    "blockquote": set(),
    "pre": set(),
    "code": set(),
    "strong": set(),
    "em": set(),
    "a": {"href", "rel", "target", "class"},
}


class Marks(HTMLParser):
    """Every element and attribute of a text, as a browser would see them."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, list[tuple[str, str | None]]]] = []

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, attrs))


PIECES = st.sampled_from(
    [
        *"<>&\"'`*[]()@\n- ",
        "**",
        "```",
        "> ",
        "- ",
        "[a](https://b.test/)",
        "https://b.test/?q=",
        "javascript:",
        "onerror=",
        "<img src=x onerror=alert(1)>",
        '"><script>alert(2)</script>',
        "@bo",
        "\x00",
        "\x001\x00",
        "a",
    ]
)


@pytest.mark.case("U05")
@settings(deadline=None, max_examples=200)
@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_is_written_only_our_own_marks_come_out(text: str) -> None:
    marks = Marks()
    marks.feed(rendered(text, PEOPLE))
    for tag, attributes in marks.found:
        assert tag in ALLOWED
        for name, value in attributes:
            assert name in ALLOWED[tag]
            if name == "href":
                assert re.match(r"https?://|/people/", value or "")


def test_names_in_code_are_nobodys() -> None:
    assert names_in("`@bo` and\n```\n@ana\n```\nthen @Cy.") >= {"cy"}
    assert not {"bo", "ana"} & names_in("`@bo` and\n```\n@ana\n```\nthen @Cy.")


@pytest.mark.django_db
def test_who_is_named_in_a_note_finds_the_call_under_mentions() -> None:
    shop = desk.a_workspace()
    charge = desk.a_keyed_tool(shop)
    ana, bo = (desk.a_person(shop, Role.SUPPORT, name) for name in ("ana", "bo"))
    desk.a_person(desk.a_workspace("other"), Role.SUPPORT, "cy")
    claim_id, other = desk.a_lost_call(charge), desk.a_lost_call(charge)
    hers = Client()
    hers.force_login(ana)
    for _ in range(2):  # sent twice it is one note
        hers.post(f"/calls/{claim_id}/note", {"note": "@Bo, have you seen it? Not @cy. @bo!"})
    hers.post(f"/calls/{other}/note", {"note": "nobody@bo.example"})
    assert [(one.claim_id, one.user) for one in Mention.objects.all()] == [(claim_id, bo)]
    found = listing.queue_page(shop.pk, Filters(view=View.MENTIONS, user_id=bo.pk))
    assert [row.claim_id for row in found.rows] == [claim_id]
    assert not listing.queue_page(shop.pk, Filters(view=View.MENTIONS, user_id=ana.pk)).rows
    where = Membership.objects.get(user=bo).pk
    page = hers.get(f"/calls/{claim_id}").text
    assert f'<a class="mention" href="/people/{where}/">@Bo</a>, have you' in page
