"""Variants of cases about providers, which the files say in sentences: each a story of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from tests.cases.fields import Fault
from tests.cases.provider_stories import Said, Story
from tests.cases.stub import items_of

PAGE_TWO: Final = "has_more true and the second object is on page two"
UNDONE: Final = "second object refunded or canceled"

_SAME_CLASS: Final = re.compile(r"(?P<status>\d{3}) (?P<code>\w+) is the same class")
_FIRST_REPLY: Final = re.compile(r"first reply (?P<status>5\d\d): outcome unknown\b.*")
_NOT_ALLOWED: Final = re.compile(r"(?P<status>40[1-9])( [a-z ]+)?")
_NO_HINT: Final = re.compile(r"404 without the hint, request sent without the account header")


def varied(
    where: str, variant: Any, story: Story, wanted: Mapping[str, Any]
) -> list[tuple[str, Story, dict[str, Any]]]:
    """The stories of a variant, each with what is expected of it. Raises `Fault` for one that
    nobody can read."""
    if not isinstance(variant, str):
        raise Fault(where, "is not interpreted")
    if variant == PAGE_TWO:
        return [("", _on_two_pages(where, story), dict(wanted))]
    if variant == UNDONE:
        return _with_the_second_undone(where, story, wanted)
    if said := _SAME_CLASS.fullmatch(variant):
        body = {"error": {"code": said["code"]}}
        changed = _with_statuses(story, {409}, int(said["status"]), body)
        return [("", changed, dict(wanted))]
    if said := _FIRST_REPLY.fullmatch(variant):
        statuses = {one.reply.status for one in story.said}
        changed = _with_statuses(story, statuses, int(said["status"]), None)
        states = ["outcome_unknown"] * len(story.writes)
        return [("", changed, {"states": states})]
    if _NO_HINT.fullmatch(variant):
        body = {"error": {"code": "resource_missing", "type": "invalid_request_error"}}
        changed = _with_statuses(story, {one.reply.status for one in story.said}, 404, body)
        bare = replace(changed.setting, account="")
        return [("", replace(changed, setting=bare), dict(wanted))]
    if said := _NOT_ALLOWED.fullmatch(variant):
        body = {"error": {"type": "invalid_request_error", "message": "You may not do that."}}
        statuses = {one.reply.status for one in story.said}
        return [("", _with_statuses(story, statuses, int(said["status"]), body), dict(wanted))]
    raise Fault(where, "is not interpreted")


def _with_statuses(story: Story, which: set[int], status: int, body: Any) -> Story:
    """Every reply with one of the statuses gets another, and a body where one is given."""

    def changed(said: Said) -> Said:
        if said.reply.status not in which:
            return said
        other = said.reply.body if body is None else body
        return replace(said, reply=replace(said.reply, status=status, body=other))

    return replace(story, said=tuple(changed(one) for one in story.said))


def _on_two_pages(where: str, story: Story) -> Story:
    reply = story.looks[0]
    items = items_of(reply.body)
    if len(items) < 2:
        raise Fault(where, "there is no second object")
    pages = [
        replace(reply, body={**reply.body, "data": [item], "has_more": item is not items[-1]})
        for item in items
    ]
    said = tuple(Said(reply=page, write=False) for page in pages)
    return replace(story, said=(*story.writes, *said), pages=True)


def _with_the_second_undone(
    where: str, story: Story, wanted: Mapping[str, Any]
) -> list[tuple[str, Story, dict[str, Any]]]:
    """Refunded money had moved, so that is a second effect all the same. A canceled payment never
    moved any: see ARGUED.md."""
    reply = story.looks[0]
    items = items_of(reply.body)
    if len(items) < 2:
        raise Fault(where, "there is no second object")

    def with_second(**changes: Any) -> Story:
        data = [items[0], {**items[1], **changes}, *items[2:]]
        body = {**reply.body, "data": data}
        return replace(
            story, said=(*story.writes, Said(reply=replace(reply, body=body), write=False))
        )

    refunded = with_second(amount_refunded=items[1].get("amount"), refunded=True)
    canceled = with_second(status="canceled")
    return [
        (" (refunded)", refunded, dict(wanted)),
        (" (canceled)", canceled, {**wanted, "state": "completed"}),
    ]
