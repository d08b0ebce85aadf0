"""Reconcile cases: what a provider answers, and what the product must make of it.

Writes are sent and look-ups are asked over real sockets; the words are the adapter's, the judge's
and the ledger's. A reply to a POST is the worker's, any other is a look-up's. Where the case
expects one state for each look-up's reply, each reply is given to a call of its own; where it
expects one state, all of them belong to one call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from effects.core.vocabulary import (
    AnswerCode,
    ClaimState,
    EffectClass,
    EventKind,
    Outcome,
    SightingWord,
)
from ledger import queries
from reconcile.investigate import Looked
from reconcile.judge import Meaning
from tests.cases import refusals
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.stub import PREFIXES, Reply, items_of
from tests.cases.words import CLASSES, STATES, moment
from tests.cases.world import QUIET_SECONDS, SEND_SECONDS, Setting, World, a_world

MAPPED: Final = {
    "completed": "found",
    "failed": "absent",
    "pending": "pending",
    "mismatch": "found_different",
}
"""What a case's own mapping of a provider's words says, as a registry entry says it."""
MEANT: Final = {
    "partially_applied": {Meaning.PARTLY},
    "not_applied_yet": {Meaning.NOT_YET},
    "mismatch": {Meaning.DIFFERS},
}
"""States of the files that are `unknown` here, and tell more in what the judge makes of it."""
LOG: Final = "requests"
"""The member of an answer that is a provider's log of requests."""
LOOKS_MAX: Final = 200
PAGE_TWO: Final = "has_more true and the second object is on page two"
UNDONE: Final = "second object refunded or canceled"

_SAME_CLASS: Final = re.compile(r"(?P<status>\d{3}) (?P<code>\w+) is the same class")
_FIRST_REPLY: Final = re.compile(r"first reply (?P<status>5\d\d): outcome unknown\b.*")
_NOT_ALLOWED: Final = re.compile(r"(?P<status>40[1-9])( [a-z ]+)?")
_NO_HINT: Final = re.compile(r"404 without the hint, request sent without the account header")


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """One scripted reply as the file has it: `write` where the worker gets it, `after_seconds`
    from the first send on."""

    reply: Reply
    write: bool
    after_seconds: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One case, or one variant of it, read."""

    setting: Setting
    said: tuple[Said, ...]
    key: str = ""
    first_arguments: Mapping[str, Any] | None = None
    own_key_in_metadata: str = ""
    pages: bool = False

    @property
    def looks(self) -> tuple[Reply, ...]:
        return tuple(one.reply for one in self.said if not one.write)

    @property
    def writes(self) -> tuple[Said, ...]:
        return tuple(one for one in self.said if one.write)


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
        _judge_polling(given, expected, found)
        return
    variants = given.take("variants", list, [])
    story = _story(given)
    wanted = {name: expected.take(name, object) for name in _WANTED if expected.has(name)}
    if not wanted:
        raise Fault("expected", "holds nothing that this kind of case is about")
    _compare(story, wanted, found, within="")
    for number, variant in enumerate(variants):
        where = given.at(f"variants[{number}]")
        for name, changed, changed_wanted in _varied(where, variant, story, wanted):
            _compare(changed, changed_wanted, found, within=f"variant {number}{name}: ")


_WANTED: Final = (
    *("state", "states", "map", "flags", "reconcile_result"),
    *("after_first_reply", "after_lookup", "evidence"),
)


# Reading


def _story(given: Fields) -> Story:
    operation = Fields(given.at("operation"), given.take("operation", dict))
    replies = given.take("provider_replies", (list, str))
    said = tuple(
        _said(Fields(f"{given.where}.provider_replies[{n}]", one))
        for n, one in enumerate(replies if isinstance(replies, list) else [])
    )
    if not said:
        raise Fault(given.at("provider_replies"), "holds no reply")
    key = operation.take("key", str)
    setting = _setting(operation, said)
    first = given.take("first_args", dict, None)
    operation.finish()
    return Story(
        setting=setting,
        said=tuple(_marked(one, key) for one in said),
        key=key if first is not None else "",
        first_arguments=first,
    )


def _said(reply: Fields) -> Said:
    request = reply.take("request", str, "")
    after = reply.take("after_s", int, 0)
    status = reply.take("status", int)
    headers = reply.take("headers", dict, {})
    body = reply.take("body", object, None)
    reply.finish()
    return Said(
        reply=Reply(status=status, body=body, headers=headers),
        write=request.upper().startswith("POST"),
        after_seconds=after,
    )


def _marked(said: Said, key: str) -> Said:
    """The case's key in metadata stands for our marker, which the stub writes there."""
    body = said.reply.body
    text = json.dumps(body)
    items = items_of(body)
    if not items or f'"key": {json.dumps(key)}' not in text:
        return said
    kept = [
        {**item, "metadata": {n: v for n, v in item["metadata"].items() if n != "key"}}
        if isinstance(item.get("metadata"), dict)
        else item
        for item in items
    ]
    whole = {**body, "data": kept} if isinstance(body.get("data"), list) else kept[0]
    return replace(said, reply=replace(said.reply, body=whole))


def _setting(operation: Fields, said: Sequence[Said]) -> Setting:
    tool = operation.take("tool", str, "pay")
    kind = operation.take("tool_class", str, "keyed_write")
    if kind not in CLASSES:
        raise Fault(operation.at("tool_class"), f"{kind!a} is none of {', '.join(CLASSES)}")
    arguments = operation.take("args", dict, {})
    account = operation.take("account", str, "")
    adapter = operation.take("adapter", str, "")
    mapping = operation.take("mapping", dict, {})
    intent = operation.take("intent", str, "")
    named = operation.take("object", str, "")
    operation.pass_over("first_attempt_at")
    if adapter not in {"", "generic_http", "stripe"}:
        raise Fault(operation.at("adapter"), f"{adapter[:60]!a} is not interpreted")
    logged = any(isinstance(one.reply.body, dict) and LOG in one.reply.body for one in said)
    lists = _lists_of(tool, named, said)
    generic = adapter == "generic_http" or bool(mapping) or logged or lists is None
    items = [item for one in said for item in items_of(one.reply.body)]
    live = [item["livemode"] for item in items if "livemode" in item]
    return Setting(
        lookup_kind="http" if generic else f"stripe.{lists}",
        lookup=_http(mapping, said) if generic else _stripes(intent),
        effect_class=EffectClass(kind),
        tool=tool,
        arguments=arguments,
        account=account,
        mode="live" if live and live[0] is True else "test",
    )


def _lists_of(tool: str, named: str, said: Sequence[Said]) -> str | None:
    """Stripe's list that the case is about, or None where it is another provider's."""
    names = [named, *(item["id"] for one in said for item in items_of(one.reply.body))]
    for prefix, lists in PREFIXES.items():
        if any(str(name).startswith(prefix) for name in names):
            return lists
    if tool.startswith("stripe."):
        noun = tool.removeprefix("stripe.")
        return next((one for one in PREFIXES.values() if one.rstrip("s") == noun), None)
    writes_alone = all(one.write for one in said)
    return "payment_intents" if writes_alone else None


def _stripes(intent: str) -> dict[str, Any]:
    """A tool that charges says of a canceled payment that it took nothing and never will."""
    return {"map": {"canceled": "absent"}} if intent == "charge" else {}


def _http(mapping: Mapping[str, Any], said: Sequence[Said]) -> dict[str, Any]:
    """A status endpoint as its tool's owner would enter it."""
    odd = {word for word in mapping.values() if word not in MAPPED}
    if odd:
        raise Fault("input.operation.mapping", f"maps to {sorted(odd)}, which is no word of a map")
    lookup: dict[str, Any] = {
        "url": "/status?reference={marker}",
        "map": {name: MAPPED[word] for name, word in mapping.items()} or {"logged": "found"},
        "delay_class": "none",
        # A status endpoint that names no object speaks of the call itself.
        "id": "id || 'the call'",
    }
    logs = [one.reply.body for one in said if isinstance(one.reply.body, dict)]
    if any(LOG in body for body in logs):
        lookup |= {"items": LOG, "id": "object", "status": "'logged'"}
    elif any("data" in body for body in logs):
        lookup |= {"items": "data", "more": "has_more"}
    return lookup


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
        following = story.writes[number + 1] if number + 1 < len(story.writes) else None
        if failure is None:
            name = body.get("id") if isinstance(body, dict) else None
            replayed = "idempotent-replayed" in {n.lower() for n in said.reply.headers}
            world.report(Outcome.COMPLETED, provider_object=name, replayed=replayed or None)
        elif failure.outcome is Outcome.UNKNOWN and _waits(world, following, started):
            world.beat()
        else:
            _report_failure(world, status, failure)
        came.after_writes.append(_word_of(world, None))


def _waits(world: World, following: Said | None, started: datetime) -> bool:
    """Whether the same worker asks again while it holds its attempt."""
    if following is None:
        return False
    at = started + timedelta(seconds=following.after_seconds)
    return at < world.claim.lease_until


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
    if any(
        _keyless(world.raw(e.seq)) for e in world.sightings if e.word == SightingWord.FOUND_MANY
    ):
        flags.add("key_not_on_wire")
    return flags


def _keyless(raw: Any) -> bool:
    """Whether a provider's own log of requests shows none of our keys."""
    requests = raw.get(LOG) if isinstance(raw, dict) else None
    return bool(requests) and all(
        "idempotency_key" in one and one["idempotency_key"] is None for one in requests
    )


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


# Variants, in sentences


def _varied(
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


# A status that never settles

_ALWAYS: Final = re.compile(r"always (?P<body>\{.*\})")


def _judge_polling(given: Fields, expected: Fields, found: Findings) -> None:
    """Asks as the schedule says until it says no more, or until `now`."""
    operation = Fields(given.at("operation"), given.take("operation", dict))
    poll = Fields(given.at("poll"), given.take("poll", dict))
    said = _ALWAYS.fullmatch(given.take("provider_replies", str))
    if said is None:
        raise Fault(given.at("provider_replies"), "is not interpreted")
    body = json.loads(said["body"])
    started, now = moment(operation.take("first_attempt_at", str)), moment(given.take("now", str))
    if started is None or now is None:
        raise Fault(given.where, "names no moment")
    every, age = poll.take("every_s", int), poll.take("max_age_s", int)
    operation.pass_over("key")
    for one in (operation, poll):
        one.finish()
    state, flags = expected.take("state", str), expected.take("flags", list, [])
    days = max(1, age // 86_400)
    setting = Setting(
        lookup_kind="http",
        lookup=_http({str(body.get("status")): "pending"}, []),
        policy={"horizon_days": days},
    )
    with a_world(setting, started_at=started) as world:
        ended_at, looks = _poll(world, Reply(status=200, body=body), now)
        came = _word_of(world, None)
    _check("expected.state", state, came, found)
    came_flags = ["reconciliation_ended"] if ended_at is not None and ended_at <= now else []
    for flag in flags:
        found.check("expected.flags", str(flag), came_flags, holds=flag in came_flags)
    asked_for = timedelta(seconds=age) / timedelta(seconds=every)
    found.check(
        "the number of look-ups", f"at most {asked_for:.0f}", looks, holds=looks <= asked_for
    )


def _poll(world: World, reply: Reply, now: datetime) -> tuple[datetime | None, int]:
    """When asking ended by itself, None if it never did, and how often the provider was asked."""
    world.later(SEND_SECONDS)
    world.report(Outcome.UNKNOWN)
    world.stub.pages = [reply]
    for looks in range(1, LOOKS_MAX):
        looked = world.look()
        if looked.next_at is None:
            return world.clock.now, looks
        if looked.next_at > now:
            return None, looks
        world.at(looked.next_at)
    return None, LOOKS_MAX
