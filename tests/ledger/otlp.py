"""Spans as exporters send them, in both encodings, built from one description."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import (
    AnyValue,
    ArrayValue,
    KeyValue,
    KeyValueList,
)

from tests.support.agents import Agent, Answer

JSON = "application/json"
PROTOBUF = "application/x-protobuf"
STRONG_ID = "call_mmmmmmmmmmmmmmmm"
BEGAN = 1_772_445_600_000_000_000  # 2026-03-02T10:00:00Z
SECOND = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """One span, as an exporter holds it."""

    number: int = 1
    trace: str = "4bf92f3577b34da6a3ce929d0e0e4736"
    name: str = "execute_tool refund"
    start: int = BEGAN
    end: int = BEGAN + SECOND
    status: int = 0
    message: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    events: tuple[Mapping[str, Any], ...] = ()

    @property
    def id(self) -> str:
        return f"{self.number:016x}"


def of_a_tool(number: int = 1, tool: str = "refund", **changes: Any) -> Sent:
    """A span of a tool that returned. `said` are further attributes; None takes one away."""
    usual = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": tool,
        "gen_ai.tool.call.id": STRONG_ID,
        "gen_ai.tool.call.arguments": '{"charge": "ch_1", "amount": 4200}',
        "gen_ai.conversation.id": "conversation-1",
    }
    said = {n: v for n, v in (usual | changes.pop("said", {})).items() if v is not None}
    return Sent(number=number, name=f"execute_tool {tool}", attributes=said, **changes)


def cut(number: int = 2, **changes: Any) -> Sent:
    """A span of a tool whose request was cut off."""
    said = {"error.type": "ReadTimeout", **changes.pop("said", {})}
    thrown = {"exception.type": "ReadTimeout", "exception.message": "timed out"}
    return of_a_tool(
        number, status=2, message="timed out", said=said,
        events=({"name": "exception", "attributes": thrown},), **changes,
    )  # fmt: skip


# Protobuf


def protobuf(spans: Iterable[Sent], worker: str = "worker-1") -> bytes:
    request = ExportTraceServiceRequest()
    resource_spans = request.resource_spans.add()
    resource_spans.resource.attributes.append(_pair("service.instance.id", worker))
    scope_spans = resource_spans.scope_spans.add()
    scope_spans.scope.name = "agent"
    for sent in spans:
        span = scope_spans.spans.add(
            trace_id=bytes.fromhex(sent.trace),
            span_id=bytes.fromhex(sent.id),
            name=sent.name,
            kind=1,
            start_time_unix_nano=sent.start,
            end_time_unix_nano=sent.end,
            attributes=[_pair(name, value) for name, value in sent.attributes.items()],
        )
        span.status.code = sent.status
        span.status.message = sent.message
        for event in sent.events:
            span.events.add(
                name=event["name"],
                time_unix_nano=sent.end,
                attributes=[_pair(n, v) for n, v in event["attributes"].items()],
            )
    return bytes(request.SerializeToString(deterministic=True))


def _pair(name: str, value: Any) -> KeyValue:
    return KeyValue(key=name, value=_any(value))


def _any(value: Any) -> AnyValue:
    return AnyValue() if value is None else _OF_TYPE[type(value)](value)


_OF_TYPE: dict[type, Callable[[Any], AnyValue]] = {
    bool: lambda value: AnyValue(bool_value=value),
    int: lambda value: AnyValue(int_value=value),
    float: lambda value: AnyValue(double_value=value),
    str: lambda value: AnyValue(string_value=value),
    bytes: lambda value: AnyValue(bytes_value=value),
    list: lambda value: AnyValue(array_value=ArrayValue(values=map(_any, value))),
    dict: lambda value: AnyValue(
        kvlist_value=KeyValueList(values=[_pair(name, inner) for name, inner in value.items()])
    ),
}


# JSON


def as_json(spans: Iterable[Sent], worker: str = "worker-1") -> bytes:
    return json.dumps(frame(map(json_span, spans), worker)).encode()


def frame(spans: Iterable[Any], worker: str = "worker-1") -> dict[str, Any]:
    resource = {"attributes": [_json_pair("service.instance.id", worker)]}
    scope = {"name": "agent"}
    scope_spans = [{"scope": scope, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": resource, "scopeSpans": scope_spans}]}


def json_span(sent: Sent) -> dict[str, Any]:
    """The span in OTLP/JSON, ids in upper case as the specification's own examples have them."""
    return {
        "traceId": sent.trace.upper(),
        "spanId": sent.id.upper(),
        "name": sent.name,
        "kind": 1,
        "startTimeUnixNano": str(sent.start),
        "endTimeUnixNano": str(sent.end),
        "attributes": [_json_pair(name, value) for name, value in sent.attributes.items()],
        "events": [
            {
                "name": event["name"],
                "timeUnixNano": str(sent.end),
                "attributes": [_json_pair(n, v) for n, v in event["attributes"].items()],
            }
            for event in sent.events
        ],
        "status": {"code": sent.status, "message": sent.message},
    }


def _json_pair(name: str, value: Any) -> dict[str, Any]:
    return {"key": name, "value": _json_any(value)}


def _json_any(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    name, write = _JSON_OF_TYPE[type(value)]
    return {name: write(value)}


_JSON_OF_TYPE: dict[type, tuple[str, Callable[[Any], Any]]] = {
    bool: ("boolValue", bool),
    int: ("intValue", str),
    float: ("doubleValue", float),
    str: ("stringValue", str),
    bytes: ("bytesValue", lambda value: base64.b64encode(value).decode()),
    list: ("arrayValue", lambda value: {"values": [*map(_json_any, value)]}),
    dict: (
        "kvlistValue",
        lambda value: {"values": [_json_pair(name, inner) for name, inner in value.items()]},
    ),
}


# Sending


def send(exporter: Agent, body: bytes, kind: str = PROTOBUF, **headers: str) -> Answer:
    """The answer to one request of an exporter, its body as it is given."""
    said = {"Authorization": f"Bearer {exporter.token}", "Content-Type": kind, **headers}
    return exporter.send("POST", "/v1/traces", said, body)


def export(exporter: Agent, *spans: Sent, kind: str = PROTOBUF) -> tuple[int, str]:
    """Sends spans as an exporter does; how many were rejected, and what was said."""
    body = protobuf(spans) if kind == PROTOBUF else as_json(spans)
    answer = send(exporter, gzip.compress(body), kind, **{"Content-Encoding": "gzip"})
    assert answer.status == 200, answer.body
    assert answer.headers["Content-Type"] == kind
    return told(answer, kind)


def told(answer: Answer, kind: str) -> tuple[int, str]:
    """The partial success of an answer, (0, "") where it is not set."""
    if kind == JSON:
        partial = answer.json.get("partialSuccess", {})
        return int(partial.get("rejectedSpans", 0)), partial.get("errorMessage", "")
    found = ExportTraceServiceResponse.FromString(answer.body)
    assert found.HasField("partial_success") == bool(answer.body)
    return found.partial_success.rejected_spans, found.partial_success.error_message
