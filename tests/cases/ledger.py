"""Ledger cases: events in, and what the claims' answers and states must be."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from effects.core.fold import fold
from effects.core.messages import ClaimAnswer
from effects.core.vocabulary import AnswerCode, ClaimState
from ledger import queries
from tests.cases import classify
from tests.cases.asking import TOOL_POLICY
from tests.cases.bank import to_text
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.history import History
from tests.cases.streams import canonical
from tests.cases.words import NOT_RUN, NUMBERS, STATES, moment

ALSO_BATCH: Final = re.compile(r"\bbatch\b")
"""Asks for what is always done: the same claims through the batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What a case says of its world."""

    policy: Mapping[str, Any]
    window_seconds: int | None
    now: datetime | None


@contextmanager
def undone() -> Iterator[None]:
    """What happens in it never happened, the clock included."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def setting_of(given: Fields) -> Setting:
    policy = given.take("policy", dict, {})
    for name in policy:
        if name not in TOOL_POLICY:
            raise Fault(given.at(f"policy.{name}"), "is not interpreted")
    hours = given.take("provider_key_retention_hours", int, None)
    said_now = given.take("now", str, None)
    now = moment(said_now)
    if said_now is not None and now is None:
        raise Fault(given.at("now"), "names no moment")
    return Setting(policy=policy, window_seconds=hours and hours * 3600, now=now)


def judge_events(given: Fields, expected: Fields, found: Findings) -> None:
    """Plays the events once claim by claim and once through batches, and then every variant."""
    events, setting = given.take("events", list), setting_of(given)
    also = given.take("also", str, "")
    if also and not ALSO_BATCH.search(also):
        raise Fault(given.at("also"), "is not interpreted")
    variants = given.take("variants", list, [])
    wanted = {name: said for name, said in expected.rest().items() if name in _JUDGES}
    for name in wanted:
        expected.take(name, object)
    for batch in (False, True):
        _judge(events, setting, wanted, found, batch=batch)
    for number, variant in enumerate(variants):
        where = given.at(f"variants[{number}]")
        changed, changed_wanted = _varied(where, variant, events, wanted)
        _judge(changed, setting, changed_wanted, found, within=f"variant {number}: ")


def _judge(
    events: list[Any],
    setting: Setting,
    wanted: Mapping[str, Any],
    found: Findings,
    *,
    batch: bool = False,
    within: str = "",
) -> None:
    how = within + ("in batches: " if batch else "")
    moments = _moments(wanted)
    states: dict[str, dict[str, str]] = {}
    with undone():
        history = History(policy=setting.policy, window_seconds=setting.window_seconds, batch=batch)

        def look_back(now: datetime) -> None:
            for said, at in moments.items():
                if at < now and said not in states:
                    history.move_to(at)
                    states[said] = _states(history, wanted["state_at"][said])

        history.play(events, before=look_back)
        last = max([at for at in (setting.now, *moments.values()) if at], default=None)
        if last is not None:
            look_back(datetime.max.replace(tzinfo=last.tzinfo))
        if setting.now is not None:
            history.move_to(setting.now)
        for name, said in wanted.items():
            if name == "state_at":
                found.equal(f"{how}expected.state_at", said, states)
            else:
                _JUDGES[name](f"{how}expected.{name}", said, history, found)


def _moments(wanted: Mapping[str, Any]) -> dict[str, datetime]:
    found: dict[str, datetime] = {}
    said_at = wanted.get("state_at", {})
    if not isinstance(said_at, dict):
        raise Fault("expected.state_at", "is no object")
    for said in said_at:
        at = moment(said)
        if at is None:
            raise Fault(f"expected.state_at.{said[:60]}", "names no moment")
        found[said] = at
    return dict(sorted(found.items(), key=lambda pair: pair[1]))


# What is compared


def _states(history: History, names: Any) -> dict[str, str]:
    """The state of each claim, in the case's own word where that means it, else in ours."""
    if not isinstance(names, dict):
        raise Fault("expected.state", "is no object")
    said: dict[str, str] = {}
    for name, word in names.items():
        if word != NOT_RUN and word not in STATES:
            raise Fault(f"expected.state.{name[:60]}", f"{word!a} is no state")
        said[name] = word if _is_in(history, name, word) else _state_of(history, name)
    return said


def _is_in(history: History, name: str, word: str) -> bool:
    told = history.answer_now(name)
    if word == NOT_RUN:
        return told is None or told.state is ClaimState.NOT_EXECUTED
    return told is not None and told.state is STATES[word]


def _state_of(history: History, name: str) -> str:
    told = history.answer_now(name)
    if told is None:
        return f"no claim ({history.rejected.get(name, 'no answer')})"
    return str(told.state)


def _state(where: str, wanted: Any, history: History, found: Findings) -> None:
    found.equal(where, wanted, _states(history, wanted))


def _granted(where: str, wanted: Any, history: History, found: Findings) -> None:
    granted = history.granted()
    if granted != wanted and history.rejected:
        found.equal(f"{where} (why not)", {}, history.rejected)
    found.equal(where, wanted, granted)


def _duplicates(where: str, wanted: Any, history: History, found: Findings) -> None:
    found.equal(where, wanted, history.duplicates())


_WORD: Final = re.compile(r"[^\W_]+")


def _rejected(where: str, wanted: Any, history: History, found: Findings) -> None:
    if not isinstance(wanted, dict):
        raise Fault(where, "is no object")
    found.equal(f"{where} (which)", sorted(wanted), sorted(history.rejected))
    for name, why in wanted.items():
        came = history.rejected.get(name, "")
        words, heard = (set(_WORD.findall(text.lower())) for text in (str(why), came))
        found.check(f"{where}.{name}", str(why), came, holds=words <= heard)


def _flags(where: str, wanted: Any, history: History, found: Findings) -> None:
    if not isinstance(wanted, dict):
        raise Fault(where, "is no object")
    for name, said in wanted.items():
        flags = _flags_of(history, name)
        for flag in [said] if isinstance(said, str) else said:
            found.check(f"{where}.{name}", str(flag), flags, holds=flag in flags)


def _flags_of(history: History, name: str) -> list[str]:
    told, row = history.answer_now(name), history.row(name)
    if told is None or row is None:
        return []
    flags = [str(flag) for flag in told.flags]
    unresolved = len(fold(queries.event_log(row)).open_attempts)
    if told.state is ClaimState.COMPLETED and 0 < unresolved < len(NUMBERS):
        flags.append(f"{NUMBERS[unresolved]}_earlier_attempts_unresolved")
    return flags


def _replayed(where: str, wanted: Any, history: History, found: Findings) -> None:
    results = [
        canonical(told.result)
        for told in history.answers.values()
        if told.code is AnswerCode.REPLAYED
    ]
    found.equal(where, {canonical(to_text(wanted))}, set(results))


def _operations(where: str, wanted: Any, history: History, found: Findings) -> None:
    found.equal(where, wanted, len(history.claims))


def _attempts(where: str, wanted: Any, history: History, found: Findings) -> None:
    rows = [history.row(known.first) for known in history.claims.values()]
    count = sum(len(queries.attempts(row)) for row in rows if row is not None)
    found.equal(where, wanted, count)


def _allowed(where: str, wanted: Any, history: History, found: Findings) -> None:
    found.equal(where, wanted, history.allowed_attempts)


_JUDGES: Final[dict[str, Any]] = {
    "granted": _granted,
    "duplicates_of": _duplicates,
    "rejected": _rejected,
    "state": _state,
    "state_at": None,  # judged while the events are played
    "flags": _flags,
    "replayed_result": _replayed,
    "operations": _operations,
    "attempts": _attempts,
    "allowed_attempts": _allowed,
    "classification": classify.classification,
    "suspected": classify.suspected,
}


# Variants, in sentences or as objects

_SETS: Final = re.compile(
    r"(?P<name>\w+) (?P<value>true|false): attempt (?P<number>\d) (?P<word>allowed|refused)"
)
_TOOL_ERROR: Final = re.compile(
    r"(?P<event>\w+) replaced by a tool error result: failed, no replay"
)


def _varied(
    where: str, variant: Any, events: list[Any], wanted: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The events and the expectation of a variant. Raises `Fault` for one that nobody can read."""
    if isinstance(variant, str):
        if said := _SETS.fullmatch(variant):
            return _with_value(where, said, events, wanted)
        if said := _TOOL_ERROR.fullmatch(variant):
            return _with_tool_error(where, said["event"], events, wanted)
        raise Fault(where, "is not interpreted")
    fields = Fields(where, variant)
    changes, expected = fields.take("events", dict), fields.take("expected", dict)
    fields.finish()
    for name in expected:
        if name not in _JUDGES:
            raise Fault(f"{where}.expected.{name}", "is not interpreted")
    unknown = changes.keys() - {event["event_id"] for event in events}
    if unknown:
        raise Fault(f"{where}.events", f"names no event: {sorted(unknown)}")
    changed = [event | changes.get(event["event_id"], {}) for event in events]
    # A member that a variant sets to null is taken away.
    kept = [{name: said for name, said in one.items() if said is not None} for one in changed]
    return kept, dict(expected)


def _with_value(
    where: str, said: re.Match[str], events: list[Any], wanted: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    name, value = said["name"], said["value"] == "true"
    changed = [_changed(event, name, value=value) for event in events]
    if changed == events:
        raise Fault(where, f"no event has {name!a} with another value")
    attempts = [event["attempt_id"] for event in events if event.get("type") == "attempt"]
    number = int(said["number"])
    if not 1 <= number <= len(attempts):
        raise Fault(where, f"there is no attempt {number}")
    allowed = list(wanted.get("allowed_attempts", attempts[:1]))
    second = attempts[number - 1]
    allowed = [a for a in attempts if a in allowed or (a == second and said["word"] == "allowed")]
    return changed, {"allowed_attempts": allowed}


def _changed(event: dict[str, Any], name: str, *, value: bool) -> dict[str, Any]:
    if name in event:
        return event | {name: value}
    hints = event.get("annotations")
    if isinstance(hints, dict) and name in hints:
        return event | {"annotations": hints | {name: value}}
    return event


def _with_tool_error(
    where: str, name: str, events: list[Any], wanted: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """A tool's own error is an end of the attempt and no proof that nothing was done, so the claim
    is unknown: see ARGUED.md. What must hold is that the attempt is not repeated."""
    kept = ("event_id", "occurred_at", "ref", "attempt_id")
    if not any(event.get("event_id") == name for event in events):
        raise Fault(where, f"there is no event {name!a}")
    changed = [
        {member: event[member] for member in kept if member in event}
        | {"type": "fail", "error": "the tool answered with an error", "dispatched": True}
        if event.get("event_id") == name
        else event
        for event in events
    ]
    ref = next(event["ref"] for event in events if event.get("event_id") == name)
    allowed = {n: said for n, said in wanted.items() if n == "allowed_attempts"}
    return changed, {"state": {ref: "outcome_unknown"}, **allowed}


def answered(history: History, name: str) -> ClaimAnswer:
    """The answer to one claim. Raises `Fault` where it was refused."""
    told = history.answers.get(name)
    if told is None:
        raise Fault("input", f"the call {name} was refused: {history.rejected.get(name)}")
    return told
