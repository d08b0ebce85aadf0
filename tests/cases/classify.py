"""Which layer repeated a call: evidence as it stands in a case, or what the ledger kept of events.

Evidence is put into the product's own words here; every answer is the diagnosis's.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from effects.core.delivery import retries_of
from effects.core.diagnosis import (
    Diagnosis,
    Execution,
    GatewayRecord,
    Group,
    GroupDiagnosis,
    Layer,
    Source,
    Upstream,
    diagnose,
)
from effects.core.vocabulary import AnswerCode
from ledger import asked_again
from reconcile.duplicates.executions import asked_name, attempt_name, executions
from reconcile.duplicates.finding import alike
from tests.cases import classify_looking
from tests.cases.fields import Fault, Fields, Findings
from tests.cases.history import History
from tests.cases.words import moment

EVIDENCE_MAX: Final = 10_000
LAYERS: Final = frozenset(str(layer) for layer in Layer)
WITHOUT_GATEWAY: Final = "without_gateway_log"
ENDS: Final = frozenset({"complete", "fail"})
BEAT_SECONDS: Final = 30
"""A third of the shortest lease, as the helper does it."""
BEATS_MAX: Final = 1_000
SUSPECT: Final = frozenset({AnswerCode.HELD, AnswerCode.ALREADY_DONE})


# Evidence as it stands in the case


def judge(given: Fields, expected: Fields, found: Findings) -> None:
    """A case of this kind holds evidence, or events that the ledger is asked about."""
    from tests.cases.ledger import judge_events  # noqa: PLC0415 - it compares what is said here

    if not given.has("evidence"):
        if given.has("provider_replies"):
            classify_looking.judge(given, expected, found)
        judge_events(_kept_alive(given), expected, found)
        return
    group = _group(given.take("evidence", list))
    _compare("expected", expected, diagnose(group), found)
    if given.has(WITHOUT_GATEWAY):
        # The sentence says what is taken away; it is always the same two things.
        given.take(WITHOUT_GATEWAY, str)
        less = Fields(expected.at(WITHOUT_GATEWAY), expected.take(WITHOUT_GATEWAY, dict))
        _compare(less.where, less, diagnose(_without_gateway(group)), found)
        less.finish()


def diagnosed(evidence: list[Any]) -> GroupDiagnosis:
    """What the product makes of evidence as a case writes it. Raises `Fault`."""
    return diagnose(_group(evidence))


def _kept_alive(given: Fields) -> Fields:
    """The case's input with the signs of life that the agent's helper gives beside a running tool:
    whoever reports an end in the case was alive until then, and whoever does not may be dead."""
    events = given.take("events", list)
    rest = {name: given.take(name, object) for name in given.rest()}
    return Fields(given.where, rest | {"events": living(events)})


def living(events: list[Any]) -> list[Any]:
    """The events, and between an attempt and its end a heartbeat every `BEAT_SECONDS`."""
    ends = {one.get("attempt_id"): one for one in events if one.get("type") in ENDS}
    beats = [
        (at, _beat(one, at))
        for one in events
        if one.get("type") == "attempt" and (end := ends.get(one.get("attempt_id")))
        for at in _beats(one, end)
    ]
    played: list[Any] = []
    for event in events:
        now = moment(event.get("occurred_at"))
        while now and beats and beats[0][0] < now:
            played.append(beats.pop(0)[1])
        played.append(event)
    return played


def _beats(attempt: dict[str, Any], end: dict[str, Any]) -> list[datetime]:
    begun, over = moment(attempt.get("occurred_at")), moment(end.get("occurred_at"))
    if begun is None or over is None:
        return []
    count = int((over - begun).total_seconds() // BEAT_SECONDS)
    return [begun + timedelta(seconds=BEAT_SECONDS * n) for n in range(1, min(count, BEATS_MAX))]


_OF_A_BEAT: Final = ("ref", "attempt_id", "tenant")


def _beat(attempt: dict[str, Any], at: datetime) -> dict[str, Any]:
    said: dict[str, Any] = {name: attempt[name] for name in _OF_A_BEAT if name in attempt}
    name = f"beat {attempt.get('attempt_id')} {at.isoformat()}"
    return {"event_id": name, "type": "heartbeat", "occurred_at": at.isoformat(), **said}


def _group(records: list[Any]) -> Group:
    if len(records) > EVIDENCE_MAX:
        raise Fault("input.evidence", f"are more than the limit EVIDENCE_MAX, {EVIDENCE_MAX}")
    seen: list[Execution] = []
    gateway: list[GatewayRecord] = []
    for number, record in enumerate(records):
        fields = Fields(f"input.evidence[{number}]", record)
        source = fields.take("source", str)
        match source:
            case "app":
                seen.append(_attempt(fields))
            case "provider_log":
                seen.append(_request(fields))
            case "gateway_log":
                gateway.append(_gateway(fields))
            case _:
                raise Fault(fields.at("source"), f"{source[:60]!a} is not interpreted")
        fields.finish()
    return Group(executions=tuple(seen), gateway=tuple(gateway))


def _at(fields: Fields) -> datetime:
    at = moment(fields.take("at", str))
    if at is None:
        raise Fault(fields.at("at"), "names no moment")
    return at


def _attempt(fields: Fields) -> Execution:
    kind = fields.take("kind", str, "attempt")
    if kind != "attempt":
        raise Fault(fields.at("kind"), f"{kind[:60]!a} is not interpreted")
    return Execution(
        name=fields.take("attempt_id", str),
        at=_at(fields),
        requests_sent=_number(fields, "http_requests_sent"),
        **_said(fields),
    )


def _request(fields: Fields) -> Execution:
    request_id = fields.take("request_id", str)
    # What the provider answered says nothing about who asked again.
    fields.pass_over("status")
    by_header = retries_of(fields.take("headers", dict, {}))
    said = _said(fields)
    said["retry_count"] = by_header if said["retry_count"] is None else said["retry_count"]
    return Execution(
        name=request_id,
        at=_at(fields),
        source=Source.PROVIDER,
        request_id=request_id,
        attempt=fields.take("attempt_id", str, None),
        client_request_id=fields.take("client_request_id", str, None),
        body=fields.take("body_sha", str, None),
        key_seen=fields.has("idempotency_key"),
        key=fields.take("idempotency_key", (str, type(None)), None),
        **said,
    )


def _said(fields: Fields) -> dict[str, Any]:
    """What either source may say."""
    return {
        "call_id": fields.take("tool_call_id", str, None),
        "conversation": fields.take("conversation_id", str, None),
        "turn_index": _number(fields, "turn_index"),
        "agent": fields.take("agent", str, None),
        "worker": fields.take("worker", str, None),
        "delivery_count": _number(fields, "delivery_count"),
        "retry_count": _number(fields, "retry_count"),
        "checkpoint": fields.take("checkpoint", str, None),
        "user_spoke": fields.take("user_message_between", bool, None),
    }


def _number(fields: Fields, name: str) -> int | None:
    said = fields.take(name, int, None)
    assert said is None or isinstance(said, int)
    return said


def _gateway(fields: Fields) -> GatewayRecord:
    upstreams = []
    for number, one in enumerate(fields.take("upstreams", list)):
        said = Fields(f"{fields.where}.upstreams[{number}]", one)
        upstreams.append(
            Upstream(host=said.take("host", str), at=_at(said), status=_number(said, "status"))
        )
        said.finish()
    return GatewayRecord(
        request_id=fields.take("request_id", str), at=_at(fields), upstreams=tuple(upstreams)
    )


def _without_gateway(group: Group) -> Group:
    return Group(executions=tuple(replace(one, requests_sent=None) for one in group.executions))


def _compare(where: str, expected: Fields, got: GroupDiagnosis, found: Findings) -> None:
    for name, number in (
        ("operations", got.operations),
        ("app_attempts", got.app_attempts),
        ("provider_requests", got.provider_requests),
    ):
        if expected.has(name):
            found.equal(f"{where}.{name}", expected.take(name, int), number)
    pairs = {one.between: one for one in got.pairs}
    for number, said in enumerate(expected.take("pairs", list, [])):
        fields = Fields(f"{where}.pairs[{number}]", said)
        between = tuple(fields.take("between", list))
        _compare_pair(fields, pairs.get(between), found)
        fields.finish()
    if expected.has("layer"):
        _compare_all(where, expected, got.pairs, found)


def _compare_all(
    where: str, expected: Fields, pairs: tuple[Diagnosis, ...], found: Findings
) -> None:
    """One layer for all pairs of the case, and what it names of them."""
    if not pairs:
        found.equal(f"{where}.layer", expected.take("layer", str), "there is no pair")
    layer = expected.take("layer", str)
    wanted = {"layer": layer} | {
        name: expected.take(name, list) for name in _ABOUT_A_PAIR if expected.has(name)
    }
    for one in pairs:
        fields = Fields(where, wanted)
        _compare_pair(fields, one, found)


_ABOUT_A_PAIR: Final = ("candidates", "decided_by", "missing")


def _compare_pair(fields: Fields, got: Diagnosis | None, found: Findings) -> None:
    layer = fields.take("layer", str)
    if layer not in LAYERS:
        raise Fault(fields.at("layer"), f"{layer[:60]!a} is no layer")
    if got is None:
        found.equal(fields.at("layer"), layer, "no pair of neighbours")
        return
    found.equal(fields.at("layer"), layer, str(got.layer))
    if fields.has("candidates"):
        wanted = sorted(fields.take("candidates", list))
        found.equal(fields.at("candidates"), wanted, sorted(map(str, got.candidates)))
    for name, said in (("decided_by", got.decided_by), ("missing", got.missing)):
        if fields.has(name):
            # The case names what must be among them.
            wanted = fields.take(name, list)
            found.check(fields.at(name), str(wanted), list(said), holds=set(wanted) <= set(said))
    if str(got.layer) == layer != Layer.UNDETERMINED:
        where = f"{fields.where}: what decided"
        found.check(where, "at least one name", [], holds=bool(got.decided_by))


# What the ledger kept of a case's events


def classification(where: str, wanted: Any, history: History, found: Findings) -> None:
    """One layer for every pair of the case, or pairs with the layer of each."""
    if isinstance(wanted, str):
        pairs = [one for name in history.asked for one in pairs_of(history, name)]
        found.equal(where, {wanted}, {str(one.layer) for one in pairs})
        return
    for number, said in enumerate(wanted if isinstance(wanted, list) else [wanted]):
        fields = Fields(f"{where}[{number}]" if isinstance(wanted, list) else where, said)
        first, second = fields.take("pair", list)
        between = _execution(history, first), _execution(history, second)
        of_both = {one.between: one for name in (first, second) for one in pairs_of(history, name)}
        _compare_pair(fields, of_both.get(between), found)
        fields.finish()


def suspected(where: str, wanted: Any, history: History, found: Findings) -> None:
    """The calls that were held or warned of before they ran, because they look like a repeat."""
    got = [
        name
        for name, told in history.answers.items()
        if told.code in SUSPECT or {"repeat_of", "same_as_earlier"} & set(map(str, told.flags))
    ]
    found.equal(where, wanted, got)


def pairs_of(history: History, name: str) -> tuple[Diagnosis, ...]:
    """The pairs of everything that was executed for the same thing as this call."""
    asked = history.asked[name]
    claims = _alike(history, name)
    seen = executions(asked.workspace_id, claims)
    return diagnose(Group(executions=seen)).pairs


def _alike(history: History, name: str) -> list[UUID]:
    return alike(history.asked[name].workspace_id, _claim_of(history, name))


def _claim_of(history: History, name: str) -> UUID:
    told = history.answers.get(name)
    claim_id = (told.claim_id or told.blocker) if told else None
    if claim_id is None:
        raise Fault("input.events", f"{name} met no claim: {history.rejected.get(name)}")
    return claim_id


def _execution(history: History, name: str) -> str:
    """What the product calls the execution that an event of the case began."""
    if name not in history.asked:
        raise Fault("expected.classification", f"{name!a} names no claim of the case")
    told, asked = history.answers[name], history.asked[name]
    if told.code in {AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN}:
        assert told.claim_id
        return attempt_name(told.claim_id, told.fence)
    kept = asked_again.of_claims(asked.workspace_id, [_claim_of(history, name)])
    return next((asked_name(one) for one in kept if one.nonce == asked.request.nonce), "not kept")
