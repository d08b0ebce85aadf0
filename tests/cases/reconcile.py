"""Reconcile cases: what a provider answers, and what the product must make of it.

Writes are sent and look-ups are asked over real sockets; the words are the adapter's, the judge's
and the ledger's. A reply to a POST is the worker's, any other is a look-up's. Where the case
expects one state for each look-up's reply, each reply is given to a call of its own; where it
expects one state, all of them belong to one call.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from effects.core.diagnosis.wire import RequestSeen, Wire, check_wire
from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EventKind,
    Outcome,
)
from ledger import queries
from reconcile.investigate import Looked
from reconcile.judge import Meaning
from tests.cases import polling, refusals
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.provider_stories import LOG, Story, story_of
from tests.cases.provider_variants import varied
from tests.cases.stub import Reply, items_of
from tests.cases.words import STATES
from tests.cases.world import QUIET_SECONDS, SEND_SECONDS, World, a_world

MEANT: Final = {
    "partially_applied": {Meaning.PARTLY},
    "not_applied_yet": {Meaning.NOT_YET},
    "mismatch": {Meaning.DIFFERS},
}
"""States of the files that are `unknown` here, and tell more in what the judge makes of it."""


@dataclass(slots=True)
class Came:
    """What came of one call: its state in words after each step, and what the last look was."""

    after_writes: list[str] = field(default_factory=list)
    state: str = ""
    looked: Looked | None = None
    evidence: str | None = None
    flags: set[str] = field(default_factory=set)


def judge(given: Fields, expected: Fields, found: Findings) -> None:
    """Judges one case and all its variants."""
    if given.has("replies"):
        refusals.judge(given, expected, found)
        return
    if given.has("poll"):
        polling.judge(given, expected, found)
        return
    variants = given.take("variants", list, [])
    story = story_of(given)
    wanted = {name: expected.take(name, object) for name in _WANTED if expected.has(name)}
    if not wanted:
        raise Fault("expected", "holds nothing that this kind of case is about")
    _compare(story, wanted, found, within="")
    for number, variant in enumerate(variants):
        where = given.at(f"variants[{number}]")
        for name, changed, changed_wanted in varied(where, variant, story, wanted):
            _compare(changed, changed_wanted, found, within=f"variant {number}{name}: ")


_WANTED: Final = (
    *("state", "states", "map", "flags", "reconcile_result"),
    *("after_first_reply", "after_lookup", "evidence"),
)


# Playing


def _play(story: Story, reply: Reply | None) -> Came:
    """One call, from its claim to its last answer. `reply` is the only look-up's, else all are."""
    came = Came()
    setting = story.setting
    if story.first_arguments is not None:
        setting = replace(setting, arguments=story.first_arguments)
    with a_world(setting, key=story.key) as world:
        _write(world, story, came)
        looks = [reply] if reply is not None else list(story.looks)
        if looks:
            _look(world, story, looks, came)
        came.state = came.state or _word_of(world, came.looked)
        came.evidence = world.claim.object
        came.flags = _flags(world)
    return came


def _write(world: World, story: Story, came: Came) -> None:
    started = world.clock.now
    if story.first_arguments is not None:
        # The changed call under the same key: it is never sent by us.
        again = world.ask(story.setting.arguments, story.key)
        came.flags |= {str(again.code)}
        assert again.code is AnswerCode.MISMATCH, again.code
    if not story.writes:
        world.later(SEND_SECONDS)
        world.report(Outcome.UNKNOWN)
    for number, said in enumerate(story.writes):
        world.at(started + timedelta(seconds=said.after_seconds or SEND_SECONDS))
        status, failure, body = world.send(said.reply)
        # The same worker asks again, if it is within the time that its tool allows one attempt.
        again_after = next((one.after_seconds for one in story.writes[number + 1 :]), math.inf)
        if failure is None:
            name = body.get("id") if isinstance(body, dict) else None
            replayed = "idempotent-replayed" in {n.lower() for n in said.reply.headers}
            world.report(Outcome.COMPLETED, provider_object=name, replayed=replayed or None)
        elif failure.outcome is Outcome.UNKNOWN and again_after < world.tool.attempt_seconds_max:
            world.stay_alive_until(started + timedelta(seconds=again_after))
        else:
            _report_failure(world, status, failure)
        came.after_writes.append(_word_of(world, None))


def _report_failure(world: World, status: int, failure: Any) -> None:
    """The report of the attempt that sent; one that comes after its claim was settled asked again
    first, as every redelivery does."""
    fence = world.answer.fence
    if world.claim.state == ClaimState.NOT_EXECUTED:
        again = world.ask(world.setting.arguments)
        fence = again.fence if again.code is AnswerCode.GRANTED else fence
    world.report(
        failure.outcome,
        fence=fence,
        http_status=status,
        provider_code=failure.provider_code,
        replayed=failure.replayed,
    )


def _look(world: World, story: Story, looks: Sequence[Reply], came: Came) -> None:
    world.later(QUIET_SECONDS)
    pages = story.pages or _is_paged(looks)
    for turn in [looks] if pages else [[one] for one in looks]:
        world.stub.pages = list(turn)
        came.looked = world.look()
        world.later(QUIET_SECONDS)


def _is_paged(looks: Sequence[Reply]) -> bool:
    body = looks[0].body
    return isinstance(body, dict) and body.get("has_more") is True and len(looks) > 1


# What came of it


def _word_of(world: World, looked: Looked | None) -> str:
    """The claim's state in the product's word, and what the judge made of the last answer."""
    state = queries.status(world.claim, now=world.clock.now).state
    meaning = looked.judgement.meaning if looked and looked.judgement else None
    return f"{state}/{meaning or ''}"


def _means(word: str, came: str) -> bool:
    """Whether what came is what the file's word says."""
    state, _, meaning = came.partition("/")
    if word not in STATES:
        raise Fault("expected", f"{word!a} is no state")
    return state == STATES[word] and (word not in MEANT or Meaning(meaning) in MEANT[word])


def _flags(world: World) -> set[str]:
    flags = set()
    reports = [e for e in queries.events(world.claim) if e.kind == EventKind.REPORTED]
    if any(e.replayed and e.word == Outcome.REFUSED_STORED for e in reports):
        flags.add("replayed_error")
    if _wire_of(world) is Wire.MISSING:
        flags.add("key_not_on_wire")
    return flags


def _wire_of(world: World) -> Wire:
    """What the provider's own log of requests, where a look-up kept one, says of our key."""
    logs = [raw for e in world.sightings if isinstance(raw := world.raw(e.seq), dict)]
    return check_wire(
        RequestSeen(
            operation=str(world.claim_id),
            granted=frozenset({str(world.answer.key)}),
            key=request["idempotency_key"],
        )
        for raw in logs
        for request in raw.get(LOG, [])
        if "idempotency_key" in request
    ).word


def _compare(story: Story, wanted: Mapping[str, Any], found: Findings, *, within: str) -> None:
    if "map" in wanted:
        _compare_map(story, wanted["map"], found, within)
    if "states" in wanted and story.looks:
        _compare_each(story, wanted["states"], found, within)
    rest = {n: said for n, said in wanted.items() if n not in {"map", "states"}}
    if "states" in wanted and not story.looks:
        rest["states"] = wanted["states"]
    if rest:
        came = _play(story, None)
        for name, said in rest.items():
            _COMPARES[name](f"{within}expected.{name}", said, came, found)


def _compare_map(story: Story, said: Any, found: Findings, within: str) -> None:
    for reply in story.looks:
        (item,) = items_of(reply.body) or [{}]
        status = item.get("status")
        if not isinstance(said, dict) or status not in said:
            raise Fault("expected.map", f"says nothing of {status!a}")
        _check(f"{within}expected.map.{status}", said[status], _play(story, reply).state, found)


def _compare_each(story: Story, said: Any, found: Findings, within: str) -> None:
    if not isinstance(said, list) or len(said) != len(story.looks):
        raise Fault("expected.states", "names not one state for each reply")
    for number, (word, reply) in enumerate(zip(said, story.looks, strict=True)):
        _check(f"{within}expected.states[{number}]", word, _play(story, reply).state, found)


def _check(where: str, word: Any, came: str, found: Findings) -> None:
    found.check(where, str(word), came, holds=_means(str(word), came))


def _state(where: str, said: Any, came: Came, found: Findings) -> None:
    _check(where, said, came.state, found)


def _states(where: str, said: Any, came: Came, found: Findings) -> None:
    if not isinstance(said, list) or len(said) != len(came.after_writes):
        raise Fault("expected.states", "names not one state for each reply")
    for number, (word, after) in enumerate(zip(said, came.after_writes, strict=True)):
        _check(f"{where}[{number}]", word, after, found)


def _after_first(where: str, said: Any, came: Came, found: Findings) -> None:
    _check(where, said, (came.after_writes or [came.state])[0], found)


def _evidence(where: str, said: Any, came: Came, found: Findings) -> None:
    found.equal(where, said, came.evidence)


def _flagged(where: str, said: Any, came: Came, found: Findings) -> None:
    for flag in said if isinstance(said, list) else [said]:
        found.check(where, str(flag), sorted(came.flags), holds=flag in came.flags)


def _result(where: str, said: Any, came: Came, found: Findings) -> None:
    found.equal(where, said, str(came.looked.word) if came.looked else None)


_COMPARES: Final[dict[str, Any]] = {
    "state": _state,
    "states": _states,
    "flags": _flagged,
    "reconcile_result": _result,
    "after_first_reply": _after_first,
    "after_lookup": _state,
    "evidence": _evidence,
}
