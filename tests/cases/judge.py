"""What becomes of one case: everything that it says is interpreted and compared, or it fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Final

from django.db import DatabaseError

from effects.core.identity import identities
from effects.core.streams import Dispatched, StreamRecord
from effects.core.streams.record import CallRecord
from ledger.models import Claim
from tests.cases import canonical, ingest, ledger, streams
from tests.cases.bank import Case, Digits
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.history import History
from tests.cases.kinds import asks_providers, kind_of
from tests.cases.words import MAY_RUN, NOT_RUN, STATES

SHOWN_CHARACTERS_MAX: Final = 160
DIFFERENCES_SHOWN_MAX: Final = 3
NOTHING: Final = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`failures` are sentences: where, what was expected and what came."""

    case_id: str
    failures: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return not self.failures


def judge(case: Case) -> Verdict:
    """Judges one case against the database of this process; what it did there is undone. Total:
    a case that cannot be judged fails with the reason."""
    found = Findings()
    try:
        with nullcontext() if asks_providers(case) else ledger.undone():
            _judge(case, found)
        says = [_sentence(d.where, d.expected, d.got) for d in found.differences]
    except Fault as fault:
        says = [_plain(str(fault))]
    except RecursionError:
        says = ["it is nested too deep to be judged"]
    except (DatabaseError, LookupError, TypeError, ValueError, AssertionError) as error:
        says = [_plain(f"it could not be judged: {type(error).__name__}: {error}")]
    return Verdict(case_id=case.id, failures=tuple(says))


def _judge(case: Case, found: Findings) -> None:
    given, expected = Fields("input", case.input), Fields("expected", case.expected)
    kind = kind_of(case)
    if kind is None:
        _judge_members(given, expected, found)
    else:
        kind.judge(given, expected, found)
    given.finish()
    expected.finish()


def _judge_members(given: Fields, expected: Fields, found: Findings) -> None:
    """Judges a case of any other kind by the members that its input has."""
    judged = False
    if given.rest().get("protocol") == "ledger":
        given.take("protocol", str)
    if _is_stream(given):
        _judge_streams(given, expected, found)
        judged = True
    if given.has("args_pairs"):
        canonical.judge_pairs(given, expected, found)
        judged = True
    if any(given.has(name) for name in ("raw_bodies", "raw_body_recipe", "raw_body_recipes")):
        ingest.judge_bodies(given, expected, found)
        judged = True
    if given.has("events"):
        ledger.judge_events(given, expected, found)
        judged = True
    given.finish()
    expected.finish()
    if not judged:
        raise Fault("input", "holds nothing that this kind of case is about")


# Streams, and what the ledger makes of them


def _is_stream(given: Fields) -> bool:
    variants = given.rest().get("variants")
    has_variants = isinstance(variants, list) and any(
        isinstance(one, dict) and {"sse", "sse_chunks_b64", "segments"} & one.keys()
        for one in variants
    )
    return has_variants or streams.describes_a_response(given)


ALSO_BYTEWISE: Final = "one byte at a time"
"""Asks for what is always done."""


def _judge_streams(given: Fields, expected: Fields, found: Findings) -> None:
    wanted = {
        name: expected.take(name, object)
        for name in ("stream", "advice", "ledger_state", "reissued")
        if expected.has(name)
    }
    if "stream" not in wanted:
        raise Fault("expected.stream", "is missing")
    also = given.take("also", str, "")
    if also and ALSO_BYTEWISE not in also:
        raise Fault(given.at("also"), "is not interpreted")
    common = {name: given.take(name, object) for name in _ABOUT_A_RESPONSE if given.has(name)}
    variants = given.take("variants", list, [{}])
    records: list[StreamRecord] = []
    for number, variant in enumerate(variants):
        where = f"input.variants[{number}]" if given.has("variants") else "input"
        if not isinstance(variant, dict):
            raise Fault(where, "is no object")
        one = Fields(where, common | variant)
        records.append(_judge_response(one, wanted, found))
        one.finish()
    # Several ways of saying one response are one response.
    said = [[streams.canonical(call.arguments) for call in record.calls] for record in records]
    found.equal("the arguments of all variants", said[:1] * len(said), said)


_ABOUT_A_RESPONSE: Final = (
    *("protocol", "http_status", "eof", "sse", "sse_chunks_b64", "segments", "stream_recipe"),
    *("dispatched", "conversation_id", "turn_index", "reissued_sse"),
)


def _judge_response(given: Fields, wanted: Mapping[str, Any], found: Findings) -> StreamRecord:
    response = streams.response_of(given)
    record = streams.compare("expected.stream", wanted["stream"], response, found)
    dispatched = streams.dispatched_of(given, record)
    if "advice" in wanted:
        advice = str(record.where_it_died(dispatched).advice)
        found.equal("expected.advice", wanted["advice"], advice)
    conversation = given.take("conversation_id", str, "case")
    turn_index = given.take("turn_index", int, 0)
    turn = {"conversation_id": conversation, "turn_index": turn_index}
    reissued = None
    if given.has("reissued_sse"):
        again = {"sse": given.take("reissued_sse", str), "protocol": str(response.protocol)}
        reissued = streams.response_of(Fields(given.at("reissued_sse"), again))
    _judge_ledger(_Turn(record, dispatched, turn), reissued, wanted, found)
    return record


@dataclass(frozen=True, slots=True)
class _Turn:
    record: StreamRecord
    dispatched: Mapping[int, Dispatched]
    said: Mapping[str, Any]

    def claim(self, call: CallRecord, name: str) -> dict[str, Any]:
        """The claim that the dispatcher makes for a call before it runs."""
        return {
            "event_id": name,
            "type": "claim",
            "tool": call.name,
            "tool_call_id": call.call_id,
            "ordinal": call.position,
            "args": Digits(call.arguments or "null"),
            **self.said,
        }


def _judge_ledger(
    turn: _Turn, reissued: streams.Response | None, wanted: Mapping[str, Any], found: Findings
) -> None:
    """Claims what was dispatched, asks again for what was re-issued, and lets the lease pass: an
    agent whose stream was cut may be gone with it."""
    history = History()
    events: list[dict[str, Any]] = []
    for position, state in sorted(turn.dispatched.items()):
        if state is Dispatched.NOT_STARTED:
            continue
        name = f"call-{position}"
        events += [
            turn.claim(turn.record.calls[position], name),
            {"event_id": f"{name}-a", "type": "attempt", "ref": name, "attempt_id": name},
        ]
        if state is Dispatched.RETURNED:
            result = {"type": "complete", "ref": name, "attempt_id": name, "result": {}}
            events.append({"event_id": f"{name}-r", **result})
    history.play(events)
    if "reissued" in wanted:
        _judge_reissued(turn, reissued, wanted["reissued"], history, found)
    if "ledger_state" in wanted:
        found.equal("expected.ledger_state", wanted["ledger_state"], _state_after(history))


LEASE_PASSED_SECONDS: Final = 3600


def _state_after(history: History) -> str:
    """The worst that is true of the claims once every lease has passed."""
    history.clock.advance(LEASE_PASSED_SECONDS)
    states = {str(told.state) for name in history.answers if (told := history.answer_now(name))}
    if not states:
        return NOT_RUN if not Claim.objects.exists() else "a claim that nobody dispatched"
    for word in ("conflict_two_effects", "outcome_unknown", "in_flight", "completed", "failed"):
        if STATES[word] in states:
            return word
    return ", ".join(sorted(states))


def _judge_reissued(
    turn: _Turn,
    reissued: streams.Response | None,
    said: Any,
    history: History,
    found: Findings,
) -> None:
    expected = Fields("expected.reissued", said)
    if reissued is None:
        raise Fault("input.reissued_sse", "is missing")
    (_, record), *_ = list(reissued.readings())
    if not record.calls or not turn.record.calls:
        raise Fault("input.reissued_sse", "announces no call")
    history.play([turn.claim(record.calls[0], "reissued")])
    told = ledger.answered(history, "reissued")
    if expected.has("same_key_as_first"):
        first, again = history.asked.get("call-0"), history.asked["reissued"]
        facts = [one.facts for one in (first, again) if one is not None]
        keys = {identities(one).turn for one in facts}
        same = len(facts) == 2 and len(keys) == 1
        found.equal(
            expected.at("same_key_as_first"), expected.take("same_key_as_first", bool), same
        )
    if expected.has("granted"):
        found.equal(expected.at("granted"), expected.take("granted", bool), told.code in MAY_RUN)
    expected.finish()


# Sentences


def _sentence(where: str, expected: Any, got: Any) -> str:
    return f"{where}: expected {_shown(expected)}, got {_shown(got)}"


def _shown(value: Any) -> str:
    if isinstance(value, str):
        text = value
    else:
        try:
            text = json.dumps(value, default=str)
        except (TypeError, ValueError):
            text = str(value)
    return _plain(text)


def _plain(text: str) -> str:
    """On one line, without control characters, and short."""
    shown = text.encode("ascii", "backslashreplace").decode()
    shown = "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in shown)
    short = shown[:SHOWN_CHARACTERS_MAX]
    return short if len(shown) == len(short) else f"{short}..."


def line(verdict: Verdict) -> str:
    """One line about a case that failed."""
    shown = "; ".join(verdict.failures[:DIFFERENCES_SHOWN_MAX])
    more = len(verdict.failures) - DIFFERENCES_SHOWN_MAX
    rest = f"; and {more} more" if more > 0 else ""
    return f"FAIL {_plain(verdict.case_id)}  {shown}{rest}"
