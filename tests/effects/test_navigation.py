"""Where the navigation leads: several pages to an entry, as far as a role may see them."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from effects.core.vocabulary import Role
from tests.support import desk

pytestmark = pytest.mark.django_db

BELOW = re.compile(r'<nav class="tabs below" aria-label="(.*?)">(.*?)</nav>')
LINK = re.compile(r'<a href="([^"]*)"( aria-current="page")?>(.*?)</a>')


def page_for(role: Role, address: str) -> str:
    client = Client()
    client.force_login(desk.a_person(desk.a_workspace(f"of-{role}"), role))
    return client.get(address).content.decode()


@pytest.mark.parametrize(
    ("address", "entry", "here"),
    [
        ("/tools/", "Tools", "Tools"),
        ("/tools/new/", "Tools", "Tools"),
        ("/contracts/", "Tools", "Contracts"),
        ("/contracts/stripe.v1/", "Tools", "Contracts"),
        ("/outbox/", "Messages", "Outbox"),
        ("/second-person/", "People", "Second person"),
        ("/customer-texts/", "Tools", "Customer texts"),
    ],
)
def test_an_entry_of_several_pages_shows_them_and_marks_the_one_that_is_open(address, entry, here):
    (name, links), *others = BELOW.findall(page_for(Role.ADMIN, address))
    assert (name, others) == (entry, [])
    assert [word for _, current, word in LINK.findall(links) if current] == [here]


def test_an_entry_leads_to_the_first_page_that_the_person_may_see():
    seen_by = {role: page_for(role, "/people/") for role in (Role.ADMIN, Role.VIEWER)}
    assert "/tokens/" in seen_by[Role.ADMIN]
    assert "/tokens/" not in seen_by[Role.VIEWER]
    assert "<span>Messages</span>" in seen_by[Role.ADMIN]
    assert "<span>Messages</span>" not in seen_by[Role.VIEWER], "nothing of it may be seen"


def test_a_page_of_its_own_has_no_row_of_others():
    assert not BELOW.findall(page_for(Role.ADMIN, "/queue/"))
