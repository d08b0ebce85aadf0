"""Asks any provider's own status endpoint, as the tool's registry entry describes it.

Nothing is assumed about the provider: a status that the map does not name is `unmapped`, and not
finding the call is an absence only where the entry says how absence looks.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import quote

import jmespath
from jmespath.exceptions import JMESPathError

from effects.core.canonical import Number, Value
from effects.core.vocabulary import SightingWord
from effects.money import Money, from_major, from_minor
from reconcile.adapters.base import (
    Delay,
    KeyLife,
    Look,
    Lookup,
    MatchedBy,
    Probe,
    kept,
    literal,
    looked_in_vain,
)
from reconcile.adapters.door import Answered, NoAnswer, NotAllowed, get
from reconcile.adapters.http_config import ARGUMENT_PREFIX, AbsentWhen, HttpLookup, read_config
from reconcile.adapters.matching import Match, Seen, seen

REFERENCES_MAX: Final = 5
"""Most references that one look-up asks about: one for each generation of the key."""
ITEMS_MAX: Final = 1000
OBJECT_CHARACTERS_MAX: Final = 255


@dataclass(frozen=True, slots=True, kw_only=True)
class _Question:
    """One reference to ask about, and the generation of the key that it belongs to, if to one."""

    path: str
    reference: str
    life: KeyLife | None


def look_by_url(probe: Probe) -> Look:
    """`lookup_kind` "http". Never raises for anything that a provider does."""
    route = "Status endpoint"
    try:
        config = read_config(probe.config)
        questions = list(_questions(probe, config))
    except ValueError as error:
        return _misconfigured(probe, f"This tool's look-up cannot be used: {error}.", route)
    if not probe.place.secret:
        why = "The secret of this connection is not set in the environment of the worker."
        return _misconfigured(probe, why, route)
    if len(questions) > REFERENCES_MAX:
        # Asking about some of them alone would pass silence about the others for an absence.
        why = f"It would take {len(questions)} questions; at most {REFERENCES_MAX} are asked."
        return _misconfigured(probe, why, route)
    return _Asking(probe, config).ask(questions)


LOOKUPS: Final = (
    Lookup(
        kind="http",
        label="A status endpoint of your own",
        connection_kind="http",
        look=look_by_url,
        read_config=read_config,
    ),
)


class _Asking:
    """All questions of one look-up, and what their answers amount to together."""

    def __init__(self, probe: Probe, config: HttpLookup) -> None:
        self.probe = probe
        self.config = config
        self.kept: list[bytes] = []
        self.base = Look(
            word=SightingWord.LOOKUP_FAILED,
            why="",
            route="Status endpoint",
            asked_at=probe.asked_at,
            delay_class=Delay(config.delay_class),
            matched_by=MatchedBy.REFERENCE,
            interval_to=probe.asked_at,
            account=probe.place.account,
            mode=probe.place.mode,
        )

    def ask(self, questions: list[_Question]) -> Look:
        matches: list[Match] = []
        for question in questions:
            answer = self._answer(question)
            if isinstance(answer, Look):
                return answer
            said = self._read(question, answer)
            if isinstance(said, Look):
                return said
            matches += said
        return self._look(seen(matches, noun="Object"), questions)

    def _answer(self, question: _Question) -> Answered | Look:
        """The answer that can be read, or the look that says why there is none."""
        place = self.probe.place
        secret = f"{self.config.auth_prefix}{place.secret}"
        self.base = replace(self.base, query=f"GET {question.path}")
        try:
            answer = get(
                place.base_url.rstrip("/") + question.path,
                way=place.way,
                headers={"Accept": "application/json", self.config.auth_header: secret},
            )
        except (NoAnswer, NotAllowed) as error:
            return looked_in_vain(self.probe, error, route=self.base.route, query=self.base.query)
        retry_after = answer.headers.get("retry-after", "")
        self.base = replace(
            self.base,
            http_status=answer.status,
            request_id=answer.headers.get("x-request-id", ""),
            retry_after_seconds=int(retry_after) if retry_after.isdecimal() else None,
        )
        fault = _fault_of_status(answer.status)
        if fault is None or _says_absent(self.config.absent_when, answer):
            return answer
        return replace(self.base, word=fault[0], why=fault[1], raw=kept(answer.body))

    def _read(self, question: _Question, answer: Answered) -> list[Match] | Look:
        """The objects of one answer, none where the contract says so, or the look of a fault."""
        if _says_absent(self.config.absent_when, answer):
            self.kept.append(answer.body)
            return []
        try:
            items = self._items(answer.body)
            ours = [item for item in items if self._is_ours(item, question.reference)]
            matches = [self._match(item, question.life) for item in ours]
        except ValueError as error:
            return self._unmapped(f"The answer cannot be read: {error}", raw=answer.body)
        if items and not ours:
            # What is kept as evidence of one call never shows another call's objects.
            return self._unmapped("Only other calls' objects are in the answer.", raw=None)
        if not ours and not self.config.absent_when.empty:
            why = "Nothing is there, and this tool's look-up does not say what that means."
            return self._unmapped(why, raw=answer.body)
        only_ours = len(ours) == len(items)
        self.kept.append(answer.body if only_ours else json.dumps(ours, default=str).encode())
        return matches

    def _unmapped(self, why: str, *, raw: bytes | None) -> Look:
        raw = None if raw is None else kept(raw)
        return replace(self.base, word=SightingWord.UNMAPPED, why=why, raw=raw)

    def _items(self, body: bytes) -> list[Any]:
        answer = _decoded(body)
        if self.config.more and _search(self.config.more, answer):
            raise ValueError("there are further pages, which this look-up does not read.")
        found = _search(self.config.items, answer) if self.config.items else answer
        items = found if self.config.items else [found]
        if not isinstance(items, list):
            gives = f"{self.config.items} gives {literal(items)}, not a list."
            raise ValueError(gives)  # noqa: TRY004 - it is the answer that is wrong, not the code
        if len(items) > ITEMS_MAX:
            raise ValueError(f"it lists {len(items)} objects; at most {ITEMS_MAX} are read.")
        if not all(isinstance(item, dict) and item for item in items):
            raise ValueError("it holds something that is not an object.")
        return items

    def _is_ours(self, item: Any, reference: str) -> bool:
        """A filter that a provider ignores would show everybody's objects as ours."""
        if not self.config.reference_field:
            return True
        return str(_search(self.config.reference_field, item)) == reference

    def _match(self, item: Any, life: KeyLife | None) -> Match:
        status = _search(self.config.status, item)
        word = self.config.map.get(status) if isinstance(status, str) else None
        requested, found = self._compared(item)
        return Match(
            id=_object_id(_search(self.config.id, item)),
            status=status if isinstance(status, str) else literal(_plain(status)),
            word=SightingWord(word) if word else None,
            open=life is None or life.open,
            requested=requested,
            found=found,
        )

    def _compared(self, item: Any) -> tuple[dict[str, str], dict[str, str]]:
        requested, found = {}, {}
        asked, there = self.probe.amount, self._money(item)
        if asked is not None and self.config.amount:
            requested["amount"] = asked.figure
            found["amount"] = "nothing" if there is None else there.figure
        if asked is not None and self.config.currency:
            requested["currency"] = asked.currency
            found["currency"] = str(_search(self.config.currency, item)).upper()
        if self.probe.customer and self.config.customer:
            requested["customer"] = self.probe.customer
            found["customer"] = str(_plain(_search(self.config.customer, item)))
        return requested, found

    def _money(self, item: Any) -> Money | None:
        asked = self.probe.amount
        figure = _decimal(_search(self.config.amount, item)) if self.config.amount else None
        if asked is None or figure is None:
            return None
        currency = _search(self.config.currency, item) if self.config.currency else None
        make = from_minor if self.config.amount_is_minor else from_major
        there = make(figure, currency if isinstance(currency, str) else asked.currency)
        return Money(amount=there.amount, currency=there.currency, places=asked.places)

    def _look(self, said: Seen, questions: list[_Question]) -> Look:
        return replace(
            self.base,
            word=said.word,
            why=said.why,
            query="; ".join(f"GET {question.path}" for question in questions),
            pages_complete=True,
            partly=said.partly,
            status=said.status,
            objects=said.objects,
            others=said.others,
            requested=said.requested,
            found=said.found,
            raw=kept(b"\n".join(self.kept)),
        )


# The question


def _questions(probe: Probe, config: HttpLookup) -> Iterator[_Question]:
    """One question for each generation of the key, or one in all where they share a reference."""
    asked: set[str] = set()
    for life in probe.generations:
        reference = _reference(probe, config, life)
        path = config.url.format(
            reference=quote(reference, safe=""),
            key=quote(life.key, safe=""),
            marker=quote(life.marker, safe=""),
            claim=str(probe.claim_id),
        )
        if path not in asked:
            asked.add(path)
            shared = config.reference not in {"marker", "key"}
            yield _Question(path=path, reference=reference, life=None if shared else life)


def _reference(probe: Probe, config: HttpLookup, life: KeyLife) -> str:
    match config.reference:
        case "marker":
            return life.marker
        case "key":
            return life.key
        case "claim":
            return str(probe.claim_id)
        case path if path.startswith(ARGUMENT_PREFIX):
            value = _search(path.removeprefix(ARGUMENT_PREFIX), probe.arguments)
            if isinstance(value, str) and value:
                return value
            # 7 and 7.0 are the same argument and two references: a number cannot be asked about.
            raise ValueError(f"the arguments hold no text at {path}")
        case odd:
            raise ValueError(f"reference is {odd!r}; say marker, key, claim or arguments.<member>")


def _misconfigured(probe: Probe, why: str, route: str) -> Look:
    return Look(
        word=SightingWord.MISCONFIGURED,
        why=why,
        route=route,
        asked_at=probe.asked_at,
        account=probe.place.account,
        mode=probe.place.mode,
    )


# The answer


def _fault_of_status(status: int) -> tuple[SightingWord, str] | None:
    """What an HTTP status says before the body is read; None where the body says it."""
    if status == 200:
        return None
    if status in {401, 403}:
        return SightingWord.MISCONFIGURED, f"The provider does not let us ask (HTTP {status})."
    if status == 429:
        return SightingWord.RATE_LIMITED, "The provider asks for fewer questions (HTTP 429)."
    if 300 <= status < 400:
        why = f"The provider sends us elsewhere (HTTP {status}), which is never followed."
        return SightingWord.MISCONFIGURED, f"{why} Register the address that answers."
    if status in {408, 425} or status >= 500:
        return SightingWord.LOOKUP_FAILED, f"The provider could not answer (HTTP {status})."
    why = (
        f"The provider answered HTTP {status}, and this tool's look-up does not say what it means."
    )
    return SightingWord.UNMAPPED, why


def _says_absent(absent_when: AbsentWhen, answer: Answered) -> bool:
    if answer.status != absent_when.http_status:
        return False
    try:
        body = _decoded(answer.body) if answer.body.strip() else None
    except ValueError:
        return False
    return not absent_when.body or bool(_search(absent_when.body, body))


def _decoded(body: bytes) -> Any:
    try:
        # Through `Decimal`, because an amount that passed through a float is another amount.
        return json.loads(body, parse_float=Decimal)
    except (ValueError, RecursionError, InvalidOperation):
        raise ValueError(f"it is not JSON but {literal(body[:60])}.") from None


def _search(expression: str, value: Any) -> Any:
    try:
        return jmespath.search(expression, value)
    except (JMESPathError, TypeError, ValueError, ArithmeticError):
        # A function that meets another type than it expects finds nothing.
        return None


def _plain(value: Value | Any) -> Any:
    return value.text if isinstance(value, Number) else value


def _object_id(value: Any) -> str:
    """The name of a provider object. Raises ValueError where there is none: two effects without a
    name could not be told from one."""
    if isinstance(value, bool) or not isinstance(value, int | str) or value == "":
        raise ValueError(f"an object is named {literal(value)}, which is no name.")
    name = str(value)
    if len(name) > OBJECT_CHARACTERS_MAX:
        raise ValueError(f"an object's name is longer than {OBJECT_CHARACTERS_MAX} characters.")
    return name


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return None
    try:
        number = Decimal(value)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 30 else None
