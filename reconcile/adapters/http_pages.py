"""Reads a list of a provider's over HTTP, page after page, as the registry entry describes it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlencode, urljoin, urlsplit, urlunsplit

from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import CannotSay, Page, Told, fault_of_status, unreadable
from reconcile.adapters.base import Place, literal
from reconcile.adapters.door import Answered, get
from reconcile.adapters.http_config import AbsentWhen, HttpList, HttpLookup
from reconcile.adapters.object_rules import checked_items, decoded, search

_NEXT = re.compile(r'<([^<>]{1,2000})>\s*;[^,]*\brel="?next"?')


class HttpPages:
    """One question of one look-up. `path` is asked first. `account` is whose the last answer is."""

    def __init__(self, place: Place, rules: HttpLookup | HttpList, path: str, told: Told) -> None:
        self._place = place
        self._rules = rules
        self._first = place.base_url.rstrip("/") + path
        if rules.pages is not None and rules.pages.by == "number":
            self._first = _with(self._first, rules.pages.parameter, str(rules.pages.first))
        self._told = told
        self.account: Any = None

    def ask(self, following: str | None) -> Page:
        """One page. Raises `CannotSay`, and what the door raises."""
        answered = self._get(following or self._first)
        absent_when = self._absent_when()
        if _says_absent(absent_when, answered):
            if answered.body.strip():
                self._note_account(decoded(answered.body))
            return Page(items=(), body=answered.body, absent=True)
        fault = fault_of_status(answered.status)
        if fault is not None:
            raise CannotSay(*fault, answered.body)
        try:
            answer = decoded(answered.body)
            self._note_account(answer)
            items = self._items(answer)
            follows = self._following(answered, answer, items, following)
        except ValueError as error:
            raise CannotSay(SightingWord.UNMAPPED, unreadable(error), answered.body) from None
        return Page(
            items=items,
            body=answered.body,
            following=follows,
            absent=absent_when.empty and not items,
        )

    def _note_account(self, answer: Any) -> None:
        self.account = search(self._rules.account, answer) if self._rules.account else None

    def _get(self, url: str) -> Answered:
        secret = f"{self._rules.auth_prefix}{self._place.secret}"
        self._told.reads += 1
        answered = get(
            url,
            way=self._place.way,
            headers={"Accept": "application/json", self._rules.auth_header: secret},
        )
        self._told.note(answered)
        return answered

    def _absent_when(self) -> AbsentWhen:
        # A list of the time in question that is there and empty says that nothing was made then.
        rules = self._rules
        return AbsentWhen(empty=True) if isinstance(rules, HttpList) else rules.absent_when

    def _items(self, answer: Any) -> list[Any]:
        rules = self._rules
        found = search(rules.items, answer) if rules.items else [answer]
        return checked_items(found, named=rules.items)

    def _following(
        self, answered: Answered, answer: Any, items: list[Any], asked: str | None
    ) -> str | None:
        """The address of the next page, None where this one is the last. Raises ValueError."""
        rules = self._rules
        more = search(rules.more, answer) if rules.more else None
        if rules.pages is None:
            if more:
                raise ValueError("there are further pages, which this look-up does not read.")
            return None
        if rules.more and not more:
            return None
        following = self._address(answered, answer, items, asked)
        if following is None and more:
            raise ValueError("it says that there are further pages, and not where.")
        return following

    def _address(
        self, answered: Answered, answer: Any, items: list[Any], asked: str | None
    ) -> str | None:
        pages = self._rules.pages
        assert pages is not None
        if pages.by == "number":
            return self._next_number(asked or self._first) if items else None
        if pages.by == "header":
            found: Any = _NEXT.search(answered.headers.get("link", ""))
            found = found[1] if found else None
        else:
            found = search(pages.at, answer)
        if found is None or found in ("", False):
            return None
        if isinstance(found, bool) or not isinstance(found, str | int):
            odd = f"{pages.at} gives {literal(found)}, which leads to no page."
            raise ValueError(odd)  # noqa: TRY004 - it is the answer that is wrong, not the code
        if pages.by == "cursor":
            return _with(self._first, pages.parameter, str(found))
        # The door asks at the connection's host alone, wherever a link leads.
        return urljoin(self._first, str(found))

    def _next_number(self, asked: str) -> str:
        pages = self._rules.pages
        assert pages is not None
        number = dict(parse_qsl(urlsplit(asked).query))[pages.parameter]
        return _with(self._first, pages.parameter, str(int(number) + 1))


def _says_absent(absent_when: AbsentWhen, answer: Answered) -> bool:
    if answer.status != absent_when.http_status:
        return False
    try:
        body = decoded(answer.body) if answer.body.strip() else None
    except ValueError:
        return False
    return not absent_when.body or bool(search(absent_when.body, body))


def _with(url: str, parameter: str, value: str) -> str:
    """The address with one parameter set."""
    parts = urlsplit(url)
    query = [(name, old) for name, old in parse_qsl(parts.query, True) if name != parameter]
    return urlunsplit(parts._replace(query=urlencode([*query, (parameter, value)])))
