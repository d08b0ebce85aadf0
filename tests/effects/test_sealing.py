"""Secrets at rest: only this installation opens them, and only where they were kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from effects.sealing import CannotOpen, opened, seal

NEW, OLD = "n" * 50, "o" * 50


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_what_is_sealed_opens_where_it_was_kept_and_shows_nothing(text: str) -> None:
    sealed = seal(text, place="connection:1")
    assert opened(sealed, place="connection:1") == text
    assert len(text) < 4 or text.encode() not in sealed
    assert seal(text, place="connection:1") != sealed


def test_what_was_sealed_for_one_row_does_not_open_as_another_s() -> None:
    with pytest.raises(CannotOpen, match="another place"):
        opened(seal("sk_live_1", place="connection:1"), place="connection:2")


def test_a_changed_byte_anywhere_is_noticed() -> None:
    sealed = seal("sk_live_1", place="connection:1")
    for at in range(len(sealed)):
        changed = bytearray(sealed)
        changed[at] ^= 1
        with pytest.raises(CannotOpen):
            opened(bytes(changed), place="connection:1")
    for length in range(len(sealed)):
        with pytest.raises(CannotOpen):
            opened(sealed[:length], place="connection:1")


def test_a_key_is_replaced_by_putting_a_new_one_in_front(settings: Any) -> None:
    settings.COUNTERFOIL_SEALING_KEYS = [OLD]
    before = seal("sk_live_1", place="connection:1")
    settings.COUNTERFOIL_SEALING_KEYS = [NEW, OLD]
    after = seal("sk_live_1", place="connection:1")
    assert {opened(one, place="connection:1") for one in (before, after)} == {"sk_live_1"}
    settings.COUNTERFOIL_SEALING_KEYS = [NEW]
    assert opened(after, place="connection:1") == "sk_live_1"
    with pytest.raises(CannotOpen, match="does not have"):
        opened(before, place="connection:1")
