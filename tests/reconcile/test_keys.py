"""A person's own keys: what may be chosen, what is kept, and for whom."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Any

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from effects.core.vocabulary import Role
from effects.pages.keys import ACTIONS, BY_USUAL, OwnKeys, Refused, choose, read_kept
from effects.pages.shell import _NAVIGATION
from reconcile.models import PersonKeys
from tests.support import desk

USUAL = [action.usual for action in ACTIONS]


@given(st.dictionaries(st.sampled_from(USUAL), st.text(max_size=3)))
def test_keys_that_are_accepted_are_single_and_each_does_one_thing(typed: dict[str, str]) -> None:
    with suppress(Refused):
        check_accepted(OwnKeys(changed=choose(typed)))


def check_accepted(keys: OwnKeys) -> None:
    used = [keys.of(usual) for usual in USUAL if keys.of(usual)]
    assert len(set(used)) == len(used) == len(keys.by_key)
    assert all(len(key) == 1 and key.isprintable() and not key.isspace() for key in used)
    assert read_kept(keys.to_keep()) == keys


@pytest.mark.parametrize(
    ("typed", "at_fault", "says"),
    [
        ({"t": "a"}, {"t", "a"}, "the key a is that of “Ask the provider”, too"),
        ({"t": "X"}, {"t"}, "that of selecting a range, too"),
        ({"n": "no"}, {"n"}, "Write a note: one character, such as n"),
        ({"n": "\x07"}, {"n"}, "one character"),
    ],
)
def test_a_conflict_is_refused_and_names_both(
    typed: dict[str, str], at_fault: set[str], says: str
) -> None:
    with pytest.raises(Refused) as refused:
        choose(typed)
    assert refused.value.errors.keys() == at_fault
    assert says in str(refused.value)


def test_no_key_is_a_choice_and_two_may_change_places() -> None:
    keys = OwnKeys(changed=choose({"t": "", "j": "k", "k": "j"}))
    assert keys.by_key.get("t") is None
    assert (keys.by_key["j"], keys.by_key["k"]) == ("k", "j")


def test_no_usual_key_does_two_things_and_no_page_shares_its_key() -> None:
    assert len(BY_USUAL) == len(ACTIONS)
    pages = [key for _, _, key, _ in _NAVIGATION]
    assert len(set(pages)) == len(pages)


def sheet(client: Client) -> dict[str, Any]:
    page = client.get("/settings/").content.decode()
    found = re.search(r'data-keys="([^"]*)" data-keys-on="(\w+)"', page)
    assert found is not None
    return {"keys": json.loads(found[1].replace("&quot;", '"')), "on": found[2]}


@pytest.mark.django_db
def test_keys_are_kept_for_the_person_and_known_wherever_they_sign_in() -> None:
    shop = desk.a_workspace()
    person = desk.a_person(shop, Role.VIEWER, "ana")
    first, second, other = Client(), Client(), Client()
    first.force_login(person)
    other.force_login(desk.a_person(shop, Role.VIEWER, "ben"))
    usual = sheet(first)
    assert usual == {"keys": {one: one for one in USUAL}, "on": "yes"}
    assert first.post("/settings/keys/", {"key-t": "z"}).status_code == 302
    assert first.post("/settings/keys/", {"act": "switch"}).status_code == 302
    second.force_login(person)
    for client in (first, second):
        seen = sheet(client)
        assert (seen["keys"]["z"], "t" in seen["keys"], seen["on"]) == ("t", False, "no")
    assert sheet(other) == usual
    refused = first.post("/settings/keys/", {"key-t": "a", "key-n": "m"})
    assert refused.status_code == 422
    page = refused.content.decode()
    assert 'value="m"' in page
    assert "too. Each needs its own." in page
    assert PersonKeys.objects.get().keys == {"t": "z"}
    first.post("/settings/keys/", {"act": "usual"})
    assert sheet(first)["keys"] == usual["keys"]
