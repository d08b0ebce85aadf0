"""The audit log: who did what to what, when and why, newest first, from every history there is."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.auth.models import User
from django.db import connection

from effects.access import shown_name
from effects.exporting import ROWS_MAX
from reconcile.audit.log_sources import SOURCES, Family, Source

ROWS_PER_PAGE: Final = 50
TEXT_CHARACTERS_MAX: Final = 200
MACHINE: Final = "machine"
"""Who acted from a shell of the machine."""
RULES: Final = "rules"
"""Decisions that a named rule made, not a person."""

_ACTS: Final = {
    "decision.happened": "decided that it happened",
    "decision.not_happened": "decided that it did not happen",
    "decision.release_same": "released with the same key",
    "decision.release_new": "released with a new key",
    "decision.lost": "declared the worker lost",
    "decision.close": "stopped it, no retry",
    "decision.settle": "settled the conflict",
    "decision.reopen": "reopened",
    "decision.allow": "allowed a held request",
    "decision.withdraw": "took a decision back",
    "second_person.asked": "asked a second person",
    "second_person.refused": "refused as the second person",
    "call.taken_over": "took the call over",
    "member.link": "made a link to set a password",
    "member.password": "set a password",
    "member.role": "changed the role",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a page starts: after this entry."""

    at: datetime
    source: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is asked of the log. Empty words filter nothing; `until` is not included."""

    family: Family | None = None
    who: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None
    after: Place | None = None
    said: Mapping[str, str] = field(default_factory=dict)  # as the address said it, for links

    @property
    def narrowed(self) -> bool:
        return bool(self.family or self.who or self.text or self.since or self.until)

    def address(self, *, after: Place | None = None) -> str:
        """The query string of the same question, from the first page or from `after`."""
        words = {name: word for name, word in self.said.items() if word}
        return "?" + urlencode(words | ({"after": cursor_of(after)} if after else {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field before and after, as text; None where it was or is not there."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One act. `who` is a person, "rule …" or "the machine"; `page` and `ref` say where its target
    is seen: the name of an address and its argument, or no name and the address itself."""

    place: Place
    at: datetime
    who: str
    act: str
    words: str
    target: str
    page: str
    ref: str
    differences: tuple[Difference, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPage:
    entries: tuple[Entry, ...]
    next_place: Place | None


def log_page(workspace_id: int, asked: Asked, *, rows: int = ROWS_PER_PAGE) -> LogPage:
    """One page of the log, newest first."""
    found = _read(workspace_id, asked, rows + 1)
    names = _names(row["user_id"] for row in found)
    entries = tuple(_entry(row, names) for row in found[:rows])
    return LogPage(entries=entries, next_place=entries[-1].place if len(found) > rows else None)


def every_entry(workspace_id: int, asked: Asked) -> Iterator[Entry]:
    """The log as asked, page by page, at most ROWS_MAX entries."""
    left, here = ROWS_MAX, replace(asked, after=None)
    while left > 0:
        page = log_page(workspace_id, here, rows=min(left, 1000))
        yield from page.entries
        left -= len(page.entries)
        if page.next_place is None:
            return
        here = replace(here, after=page.next_place)


def actors(workspace_id: int) -> list[tuple[str, str]]:
    """Who may be asked for: people of the workspace, past and present, rules and the machine."""
    changed = User.objects.filter(
        pk__in=_ids(
            "SELECT user_id FROM effects_memberchange WHERE workspace_id = %s", workspace_id
        )
        | _ids("SELECT user_id FROM effects_membership WHERE workspace_id = %s", workspace_id)
    )
    people = sorted((shown_name(user), str(user.pk)) for user in changed)
    others = [(RULES, "Rules"), (MACHINE, "From the machine")]
    return [(pk, name) for name, pk in people] + others


# Inside


def _ids(statement: str, workspace_id: int) -> set[int]:
    with connection.cursor() as cursor:
        cursor.execute(statement, [workspace_id])
        return {row[0] for row in cursor.fetchall()}


def _read(workspace_id: int, asked: Asked, limit: int) -> list[dict[str, Any]]:
    values: dict[str, Any] = {"workspace_id": workspace_id, "limit": limit}
    conditions = _conditions(asked, values)
    sources = [one for one in SOURCES if asked.family in {None, one.family}]
    branches = " UNION ALL ".join(_branch(one, conditions, asked.after) for one in sources)
    statement = (
        f"SELECT * FROM ({branches}) log ORDER BY at DESC, source DESC, id DESC LIMIT %(limit)s"  # noqa: S608 - every word is ours
    )
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def _conditions(asked: Asked, values: dict[str, Any]) -> list[str]:
    found = []
    if asked.since:
        values["since"] = asked.since
        found.append("s.at >= %(since)s")
    if asked.until:
        values["until"] = asked.until
        found.append("s.at < %(until)s")
    if asked.text:
        values["text"] = "%" + _literally(asked.text) + "%"
        found.append("(s.target ILIKE %(text)s OR s.reason ILIKE %(text)s OR s.act ILIKE %(text)s)")
    if asked.who in {RULES, MACHINE}:
        found.append("s.user_id IS NULL")
        found.append(f"s.rule IS {'NOT ' if asked.who == RULES else ''}NULL")
    elif asked.who:
        values["user_id"] = int(asked.who)
        found.append("s.user_id = %(user_id)s")
    if asked.after:
        values |= {"at": asked.after.at, "number": asked.after.number}
    return found


def _branch(source: Source, conditions: list[str], after: Place | None) -> str:
    """The newest rows of one history, so that only so many of each have to be sorted together."""
    mine = list(conditions)
    if after is not None:
        # Of one instant the histories come in the order of their words, the last one first.
        if source.word == after.source:
            same = "s.at = %(at)s AND s.id < %(number)s"
        else:
            same = "s.at = %(at)s" if source.word < after.source else "false"
        mine.append(f"s.at <= %(at)s AND (s.at < %(at)s OR {same})")
    where = f"WHERE {' AND '.join(mine)}" if mine else ""
    return f"""(SELECT '{source.word}' AS source, s.* FROM ({source.rows}) s {where}
  ORDER BY s.at DESC, s.id DESC LIMIT %(limit)s)"""  # noqa: S608 - every word is ours


def _literally(text: str) -> str:
    return text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _names(ids: Iterator[int | None]) -> dict[int, str]:
    wanted = {one for one in ids if one is not None}
    return {user.pk: shown_name(user) for user in User.objects.filter(pk__in=wanted)}


def _entry(row: Mapping[str, Any], names: Mapping[int, str]) -> Entry:
    who = f"rule {row['rule']}" if row["rule"] else "the machine"
    if row["user_id"] is not None:
        who = names.get(row["user_id"], f"person {row['user_id']}")
    act = str(row["act"])
    return Entry(
        place=Place(at=row["at"], source=row["source"], number=row["id"]),
        at=row["at"],
        who=who,
        act=act,
        words=_ACTS.get(act, act.replace(".", " ").replace("_", " ")),
        target=row["target"] or "",
        page=row["page"],
        ref=row["ref"] or "",
        differences=tuple(differences(_read_json(row["before"]), _read_json(row["after"]))),
        reason=row["reason"] or "",
    )


def _read_json(kept: Any) -> Any:
    return json.loads(kept, parse_float=str, parse_int=str) if isinstance(kept, str) else kept


def differences(before: Any, after: Any) -> Iterator[Difference]:
    """What differs, field by field; a value that is no object is one field without a name."""
    old = before if isinstance(before, dict) else {"": before}
    new = after if isinstance(after, dict) else {"": after}
    for name in dict.fromkeys((*old, *new)):
        was, now = _text(old.get(name)), _text(new.get(name))
        if was != now:
            yield Difference(field=name, before=was, after=now)


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def cursor_of(place: Place) -> str:
    said = json.dumps([place.at.isoformat(), place.source, place.number])
    return base64.urlsafe_b64encode(said.encode()).decode().rstrip("=")


def place_of(cursor: str) -> Place | None:
    """The place in a cursor, or None (the first page) where it is not one of ours."""
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        at, source, number = json.loads(base64.urlsafe_b64decode(padded))
        place = Place(at=datetime.fromisoformat(at), source=str(source), number=int(number))
    except (ValueError, TypeError, AttributeError, binascii.Error):
        return None
    return place if place.at.tzinfo is not None and 0 <= place.number < 2**63 else None
