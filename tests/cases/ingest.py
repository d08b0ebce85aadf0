"""Ingest cases: bodies as they were posted, sent through the API's real doors.

The files write events in a form of their own. Each is taken apart by its brackets alone and written
as the ledger's message, so that whatever stands in `args` and `result` arrives byte for byte: a
claim at the door for claims, everything else at the door for events.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final, override

from django.test import Client

from effects.core.vocabulary import EffectClass, TokenScope
from effects.models import Workspace
from ledger import auth
from ledger.models import IngestItem
from tests.cases.fields import Fault, Fields, Findings
from tests.support.agents import Agent, Answer, in_process
from tests.support.clock import START

BODY_BYTES_MAX: Final = 64 * 1024 * 1024
SOURCE: Final = "urn:counterfoil:case"

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:]', re.DOTALL)


class Broken(Exception):
    """A body that cannot be taken apart: it goes to the door as it is."""


def raw_members(raw: bytes) -> dict[str, bytes]:
    """The members of an object, each value as it stands. Raises `Broken`."""
    members: dict[str, bytes] = {}
    for piece in _pieces(raw, b"{", b"}"):
        name = _TOKEN.match(piece)
        colon = _TOKEN.search(piece, name.end()) if name else None
        if name is None or colon is None or colon[0] != b":":
            raise Broken
        members[_text(name[0])] = piece[colon.end() :].strip()
    return members


def raw_elements(raw: bytes) -> list[bytes]:
    """The elements of an array, each as it stands. Raises `Broken`."""
    return list(_pieces(raw, b"[", b"]"))


_DEEPER: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def _pieces(raw: bytes, opens: bytes, closes: bytes) -> Iterator[bytes]:
    """What stands between the commas of one object or array."""
    raw = raw.strip()
    if raw[:1] != opens or raw[-1:] != closes:
        raise Broken
    depth, begins = 0, 1
    for token in _TOKEN.finditer(raw):
        depth += _DEEPER.get(token[0], 0)
        if depth == 0 and token.end() != len(raw):
            raise Broken
        if depth == 0 or (depth == 1 and token[0] == b","):
            piece = raw[begins : token.start()].strip()
            begins = token.end()
            if piece:
                yield piece
    if depth:
        raise Broken


def events_of(raw: bytes) -> list[dict[str, bytes]]:
    """The events of a body. Raises `Broken` for a body that is none of the files' own form."""
    events = [raw_members(one) for one in raw_elements(raw_members(raw).get("events", b""))]
    if not events or any("event_id" not in event for event in events):
        raise Broken
    return events


def _text(raw: bytes) -> str:
    try:
        found = json.loads(raw.decode("utf-8", "surrogatepass"))
    except ValueError:
        raise Broken from None
    if not isinstance(found, str):
        raise Broken
    return found


# What comes back


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """The answer to one body, in the case files' words: `word` is accepted or a status."""

    word: str
    says: str
    code: str
    at: str | None
    mended: tuple[str, ...]
    kept: bool
    seconds: float

    @override
    def __str__(self) -> str:
        place = f" at {self.at}" if self.at else ""
        marks = f", mended {', '.join(self.mended)}" if self.mended else ""
        return f"{self.word}{marks}: {self.code}{place} {self.says}".strip()


NOT_JSON: Final = frozenset({"not_json", "nan_or_infinity", "body_unreadable"})


def _status(reason: str, says: str) -> str:
    """The status that the case files mean by an item that was kept and not read. One item must not
    cost its neighbours, so the answer itself is 200 with a word for each."""
    if reason in NOT_JSON:
        return "400"
    return "413" if reason == "limit_exceeded" and "BYTES_MAX" in says else "422"


@dataclass(slots=True)
class Doors:
    """A workspace with an agent that may do everything at both doors."""

    agent: Agent
    known: set[str]
    sent: int = 0

    @classmethod
    def open(cls) -> Doors:
        workspace = Workspace.objects.create(name="Case", slug="case", created_at=START)
        scopes = (TokenScope.CLAIM, TokenScope.INGEST, TokenScope.READ)
        _, token = auth.issue(workspace, "case", scopes, user=None)
        return cls(agent=Agent(token=token, send=in_process(Client())), known=set())

    def post(self, raw: bytes) -> Came:
        """One body, by the doors that its events belong to."""
        began = time.monotonic()
        try:
            events = events_of(raw)
        except Broken:
            return self._came(self.agent.post("events", raw), began)
        came = [self._came_of(event, began) for event in events]
        return next((one for one in came if one.word != "accepted"), came[0])

    def _came_of(self, event: dict[str, bytes], began: float) -> Came:
        if event.get("type") == b'"claim"':
            return self._came(self.agent.post("claims", _claim(event)), began)
        self._make_known(event)
        answer = self.agent.post("events", _event(event))
        return self._came(answer, began, event.get("result"))

    def _make_known(self, event: dict[str, bytes]) -> None:
        """A claim that no event of the case opens was made before, and its attempt began."""
        ref, attempt = _said(event, "ref", "none"), _said(event, "attempt_id", "a1")
        made = {"claim": ref, "tool": "case", "conversation": f"c-{ref}", "turn_index": 1}
        for kind, data in (
            ("claim.made", made | {"arguments": "{}"}),
            ("attempt.started", {"claim": ref, "attempt": attempt}),
        ):
            name = f"{kind}-{ref}-{attempt}"
            if name not in self.known:
                self.known.add(name)
                envelope = {"id": name, "source": SOURCE, "type": kind, "data": data}
                self.agent.post("events", envelope)

    def _came(self, answer: Answer, began: float, result: bytes | None = None) -> Came:
        seconds = time.monotonic() - began
        said = answer.json if isinstance(answer.json, dict) else {}
        items = said.get("items", [])
        if answer.status < 400 and items:
            return self._item(items[0], seconds, result)
        word = "accepted" if answer.status < 400 else str(answer.status)
        place = said.get("at", _offset(said.get("detail", "")))
        code = str(said.get("refusal", said.get("code", "")))
        return Came(
            word=word,
            says=said.get("detail", ""),
            code=code,
            at=None if place is None else str(place),
            mended=(),
            kept=bool(said.get("kept")),
            seconds=seconds,
        )

    def _item(self, item: dict[str, Any], seconds: float, result: bytes | None) -> Came:
        reason = item.get("reason") or ""
        word = "accepted"
        if item["state"] in {"unreadable", "conflict", "failed"}:
            word = _status(reason, item.get("says") or "")
        says = item.get("says") or ""
        if word == "accepted":
            says = self._unlike(item, result) or says
            word = "500" if says.startswith("cannot be read back") else word
        return Came(
            word=word,
            says=says,
            code=reason,
            at=item.get("at") or _offset(says),
            mended=tuple(item.get("mended", ())),
            kept=bool(IngestItem.objects.get(pk=item["item"]).raw),
            seconds=seconds,
        )

    def _unlike(self, item: dict[str, Any], result: bytes | None) -> str | None:
        """What was accepted must be readable afterwards, digit by digit, as JSON for everybody."""
        if not item.get("claim_id"):
            return None
        status = self.agent.get(f"claims/{item['claim_id']}")
        try:
            told = json.loads(status.body, parse_constant=_refuse)
        except ValueError as error:
            return f"cannot be read back: {error}"
        if status.status != 200:
            return f"cannot be read back: status {status.status}"
        if result is not None and told.get("result_stored") and not item.get("mended"):
            as_sent = "".join(result.decode("utf-8", "surrogatepass").split())
            as_told = "".join(told["result"].split())
            if json.loads(as_sent, parse_int=str, parse_float=str) != json.loads(
                as_told, parse_int=str, parse_float=str
            ):
                return f"cannot be read back: the result became {as_told[:60]!a}"
        return None


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _offset(says: str) -> str | None:
    found = re.search(r"offset \d+", says)
    return found[0] if found else None


def _said(event: dict[str, bytes], name: str, default: str) -> str:
    try:
        return _text(event[name])
    except (Broken, KeyError):
        return default


def _claim(event: dict[str, bytes]) -> dict[str, Any]:
    """The request of a claim event. Its arguments are the very text that stood there."""
    said = {
        "tool": "tool",
        "conversation_id": "conversation",
        "turn_index": "turn_index",
        "ordinal": "position",
        "tool_call_id": "call_id",
        "response_id": "response_id",
        "key": "caller_key",
        "tool_class": "effect_class",
    }
    request: dict[str, Any] = {"effect_class": str(EffectClass.UNKEYED_WRITE)}
    request |= {ours: json.loads(event[theirs]) for theirs, ours in said.items() if theirs in event}
    request["arguments"] = event.get("args", b"null").decode("utf-8", "surrogatepass")
    return request


KINDS: Final = {"complete": "attempt.completed", "fail": "attempt.unknown"}


def _event(event: dict[str, bytes]) -> bytes:
    """A report as the ledger's message, its result as it stood."""
    kind = KINDS.get(_said(event, "type", ""))
    if kind is None:
        raise Fault("input", f"an event of type {event.get('type')!r} in a body is not interpreted")
    data: list[bytes] = [
        b'"claim":' + event.get("ref", b'"none"'),
        b'"attempt":' + event.get("attempt_id", b'"a1"'),
        *(b'"%s":' % name.encode() + event[name] for name in ("result", "error") if name in event),
    ]
    head: bytes = b'{"id":' + event["event_id"] + f',"source":"{SOURCE}","type":"{kind}"'.encode()
    return head + b',"data":{' + b",".join(data) + b"}}"


# What a case says


def bodies_of(given: Fields) -> list[bytes]:
    """Every body that the input holds or describes."""
    found: list[bytes] = []
    for number, body in enumerate(given.take("raw_bodies", list, [])):
        if not isinstance(body, str):
            raise Fault(given.at(f"raw_bodies[{number}]"), "is no text")
        found.append(body.encode("utf-8", "surrogatepass"))
    recipes = given.take("raw_body_recipes", list, [])
    if given.has("raw_body_recipe"):
        recipes = [*recipes, given.take("raw_body_recipe", dict)]
    for number, recipe in enumerate(recipes):
        found.append(_cooked(Fields(given.at(f"raw_body_recipes[{number}]"), recipe)))
    return found


def _cooked(recipe: Fields) -> bytes:
    times: int = recipe.take("times", int)
    parts: dict[str, bytes] = {
        name: recipe.take(name, str, "").encode("utf-8", "surrogatepass")
        for name in ("prefix", "repeat", "middle", "repeat_close", "suffix")
    }
    recipe.finish()
    if times < 0 or (len(parts["repeat"]) + len(parts["repeat_close"])) * times > BODY_BYTES_MAX:
        raise Fault(recipe.at("times"), f"is negative, or makes more than {BODY_BYTES_MAX} bytes")
    middle = parts["repeat"] * times + parts["middle"] + parts["repeat_close"] * times
    return parts["prefix"] + middle + parts["suffix"]


_ALTERNATIVES: Final = re.compile(
    r"\baccepted\b|\b[45]xx\b|\b[1-5]\d\d\b(?! (?:ms|s|levels?|digits|bytes|kB|items|characters)\b)"
)
_WITHIN: Final = re.compile(r"within (\d+) (m?s)\b")
_MEMBER: Final = re.compile(r'duplicate member ("[^"]*")')

_PHRASES: Final[dict[str, tuple[str, Callable[[Came], bool]]]] = {
    "marker": ("accepted", lambda came: bool(came.mended)),
    "replace": ("accepted", lambda came: bool(came.mended)),
    "unchanged": ("accepted", lambda came: not came.mended),
    "position": ("4", lambda came: came.at is not None),
    "kept raw": ("4", lambda came: came.kept),
    "field named": ("4", lambda came: came.at is not None),
    "naming the field": ("4", lambda came: came.at is not None),
    "depth": ("4", lambda came: "deep" in came.code + came.says or came.word == "413"),
}
"""Words of an expectation, the answers that they are about, and what must be true of those."""


def compare(where: str, wanted: Any, came: Came, found: Findings) -> None:
    """One answer beside one sentence: the answers that it allows, and what else it says of them."""
    said = str(wanted)
    allowed = _ALTERNATIVES.findall(said)
    if not allowed:
        raise Fault(where, f"{said[:80]!a} names no answer: accepted, or a status")
    holds = any(_is_allowed(came.word, one) for one in allowed)
    holds = holds and all(
        check(came)
        for phrase, (about, check) in _PHRASES.items()
        if phrase in said and came.word.startswith(about)
    )
    if named := _MEMBER.search(said):
        holds = holds and came.code == "duplicate_member" and named[1] in came.says
    if within := _WITHIN.search(said):
        holds = holds and came.seconds <= int(within[1]) / (1000 if within[2] == "ms" else 1)
    found.check(where, said, str(came), holds=holds)


def _is_allowed(word: str, allowed: str) -> bool:
    if allowed == "accepted" or (allowed.isdecimal() and allowed.startswith("2")):
        return word == "accepted"
    return word == allowed or (allowed.endswith("xx") and word.startswith(allowed[0]))


def judge_bodies(given: Fields, expected: Fields, found: Findings) -> None:
    bodies = bodies_of(given)
    wanted = expected.take("responses", list, None)
    if wanted is None:
        wanted = [expected.take("response", (str, int))]
    if len(wanted) != len(bodies):
        raise Fault(expected.at("responses"), f"are {len(wanted)}, for {len(bodies)} bodies")
    doors = Doors.open()
    previous: str | None = None
    for number, (body, said) in enumerate(zip(bodies, wanted, strict=True)):
        # "Likewise" is said of an answer like the one before it.
        if isinstance(said, str) and "likewise" in said and previous is not None:
            said = f"{said}; {previous}"  # noqa: PLW2901 - the sentence, completed.
        compare(expected.at(f"responses[{number}]"), said, doors.post(body), found)
        previous = str(said)
