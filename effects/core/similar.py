"""Arguments that are not equal and still look like the same intention.

Never an identity: a call is the same only if its arguments are equal by their exact values
(`effects.core.canonical`). A person who reads about a possible repeat wants to know that two calls
differ by a space or by the way in which a character is composed, and in which way.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from enum import StrEnum

from effects.core.canonical import Value, canonical_text, utc_moment


class Resemblance(StrEnum):
    """In what alone two argument lists differ."""

    EQUAL = "equal"
    UNICODE_FORM = "unicode_form"  # the same characters, composed in another way
    OUTER_SPACE = "outer_space"  # white space at an end of a text
    SAME_MOMENT = "same_moment"  # one moment, written in two ways
    NULL_OR_ABSENT = "null_or_absent"  # a member that is null, or is not there
    ONLY_IN_ONE = "only_in_one"  # a member that only one of them says


class _Unlike(Exception):
    """The two are not alike."""


def similar(one: Mapping[str, Value], other: Mapping[str, Value]) -> frozenset[Resemblance]:
    """In what two argument lists differ, where they differ in nothing else; empty if they do.

    Arguments are what `parse_arguments` gives. Members that only one side says are forgiven where
    the other side says nothing that this one lacks and both have a member in common: a default
    that the model wrote the second time.
    """
    try:
        return frozenset(_members(one, other)) or frozenset({Resemblance.EQUAL})
    except _Unlike:
        return frozenset()


def _members(one: Mapping[str, Value], other: Mapping[str, Value]) -> Iterator[Resemblance]:
    only_one = {name for name in one.keys() - other.keys() if one[name] is not None}
    only_other = {name for name in other.keys() - one.keys() if other[name] is not None}
    if only_one or only_other:
        if (only_one and only_other) or not one.keys() & other.keys():
            raise _Unlike
        yield Resemblance.ONLY_IN_ONE
    if len(one.keys() ^ other.keys()) > len(only_one | only_other):
        yield Resemblance.NULL_OR_ABSENT
    for name in one.keys() & other.keys():
        yield from _values(one[name], other[name])


def _values(one: Value, other: Value) -> Iterator[Resemblance]:
    if isinstance(one, dict) and isinstance(other, dict):
        yield from _members(one, other)
    elif isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            raise _Unlike
        for left, right in zip(one, other, strict=True):
            yield from _values(left, right)
    elif isinstance(one, str) and isinstance(other, str):
        yield from _texts(one, other)
    elif canonical_text(one) != canonical_text(other):
        raise _Unlike


def _texts(one: str, other: str) -> Iterator[Resemblance]:
    if one == other:
        return
    if utc_moment(one) == utc_moment(other):
        yield Resemblance.SAME_MOMENT
        return
    trimmed = (one.strip(), other.strip())
    if unicodedata.normalize("NFC", trimmed[0]) != unicodedata.normalize("NFC", trimmed[1]):
        raise _Unlike
    if trimmed != (one, other):
        yield Resemblance.OUTER_SPACE
    if trimmed[0] != trimmed[1]:
        yield Resemblance.UNICODE_FORM
