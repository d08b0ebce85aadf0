"""Addresses with a conversation in them: its name may hold any character, slashes among them."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote, urlencode

from django.urls import register_converter
from django.urls.converters import StringConverter

DOTS: Final = frozenset({".", ".."})


class AnyText(StringConverter):
    """A part of an address that may hold slashes and line ends."""

    regex = r"[\s\S]+"


register_converter(AnyText, "any")


def turn_address(conversation: str, index: int) -> str:
    """The page of a turn. A browser would resolve a part that is only dots, so that goes behind the
    question mark."""
    if conversation in DOTS:
        return "/turns/?" + urlencode({"conversation": conversation, "turn": index})
    return f"/turns/{quote(conversation, safe='')}/{index}"


def conversation_address(conversation: str) -> str:
    """The page that lists a conversation's turns."""
    return "/turns/?" + urlencode({"conversation": conversation})
