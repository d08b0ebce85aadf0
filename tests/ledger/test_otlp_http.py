"""The door for spans as an exporter meets it: encodings, limits, and every refusal's form."""

import base64
import gzip
import json
import zlib
from typing import Any

import pytest
from django.db import OperationalError
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from effects.core.vocabulary import TokenScope
from ledger import ingest, otlp, otlp_http, otlp_json
from ledger.models import Claim, IngestItem
from ledger.otlp_span import Undecodable
from tests.ledger.otlp import (
    JSON,
    PROTOBUF,
    as_json,
    cut,
    export,
    frame,
    json_span,
    of_a_tool,
    protobuf,
    send,
    told,
)


@pytest.fixture
def exporter(hire, shop, refund):
    return hire(shop, TokenScope.INGEST)


def status_class():
    """`google.rpc.Status` from its published fields: 1 code, 2 message."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="s.proto", package="s", syntax="proto3")
    message = file.message_type.add(name="Status")
    message.field.add(name="code", number=1, type=kinds.TYPE_INT32, label=1)
    message.field.add(name="message", number=2, type=kinds.TYPE_STRING, label=1)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("s.Status"))


Status = status_class()


def refused(answer, kind):
    """Code and message of the `Status` that the answer is, in the encoding that was sent."""
    assert answer.headers["Content-Type"] == kind
    if kind == PROTOBUF:
        found = Status.FromString(answer.body)
        return found.code, found.message
    return answer.json["code"], answer.json["message"]


# Encodings

EXAMPLE_JSON = {
    "resourceSpans": [{
        "resource": {"attributes": [
            {"key": "service.name", "value": {"stringValue": "my.service"}},
        ]},
        "scopeSpans": [{
            "scope": {"name": "my.library", "version": "1.0.0", "attributes": []},
            "spans": [{
                "traceId": "5B8EFFF798038103D269B633813FC60C",
                "spanId": "EEE19B7EC3C1B174",
                "parentSpanId": "EEE19B7EC3C1B173",
                "name": "execute_tool refund",
                "startTimeUnixNano": "1544712660000000000",
                "endTimeUnixNano": 1544712661000000000,
                "kind": 1,
                "attributes": [
                    {"key": "gen_ai.operation.name", "value": {"stringValue": "execute_tool"}},
                    {"key": "gen_ai.tool.name", "value": {"stringValue": "refund"}},
                    {"key": "retries", "value": {"intValue": "9007199254740993"}},
                ],
                "status": {},
                "aFieldOfTomorrow": {"deep": [1, {"er": None}]},
            }],
        }],
        "schemaUrl": "https://opentelemetry.io/schemas/1.38.0",
    }],
    "anotherOne": 1,
}  # fmt: skip
"""The shape of the specification's own example, with members that nobody knows yet."""

GOLDEN = bytes.fromhex(
    "0a92020a1e0a1c0a0c736572766963652e6e616d65120c0a0a6d792e7365727669636512c6010a130a0a6d792e6c69"
    "62726172791205312e302e3012ae010a105b8efff798038103d269b633813fc60c1208eee19b7ec3c1b1742208eee1"
    "9b7ec3c1b1732a13657865637574655f746f6f6c20726566756e64300139004859e3faeb6f15410012f41efbeb6f15"
    "4a270a1567656e5f61692e6f7065726174696f6e2e6e616d65120e0a0c657865637574655f746f6f6c4a1c0a106765"
    "6e5f61692e746f6f6c2e6e616d6512080a06726566756e644a140a077265747269657312091881808080808080107a"
    "001a2768747470733a2f2f6f70656e74656c656d657472792e696f2f736368656d61732f312e33382e30"
)
"""The same request in protobuf, as its published schema serialises it."""


def test_the_specifications_shapes_are_one_span_in_both_encodings(exporter):
    assert told(send(exporter, json.dumps(EXAMPLE_JSON).encode(), JSON), JSON) == (0, "")
    assert told(send(exporter, GOLDEN), PROTOBUF) == (0, "")
    item = IngestItem.objects.get()
    assert (item.source, item.event_id, item.times_seen) == (
        "otel:5b8efff798038103d269b633813fc60c", "eee19b7ec3c1b174", 2,
    )  # fmt: skip
    assert json.loads(bytes(item.raw or b"")) == {
        "source": "otel:5b8efff798038103d269b633813fc60c",
        "id": "eee19b7ec3c1b174",
        "type": "span.execute_tool",
        "time": "2018-12-13T14:51:01.000000000Z",
        "data": {
            "name": "execute_tool refund",
            "parent": "eee19b7ec3c1b173",
            "start": 1544712660000000000,
            "end": 1544712661000000000,
            "status": 0,
            "attributes": {
                "gen_ai.operation.name": "execute_tool",
                "gen_ai.tool.name": "refund",
                "retries": 9007199254740993,
            },
            "events": [],
            "worker": "my.service",
        },
    }


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_success_leaves_the_partial_success_unset(exporter, kind):
    body = protobuf([of_a_tool()]) if kind == PROTOBUF else as_json([of_a_tool()])
    answer = send(exporter, body, kind)
    assert (answer.status, answer.headers["Content-Type"]) == (200, kind)
    assert answer.body == (b"" if kind == PROTOBUF else b"{}")


@pytest.mark.parametrize(
    ("body", "kind"),
    [(protobuf([]), PROTOBUF), (b"{}", JSON), (b"null", JSON), (b'{"resourceSpans": null}', JSON)],
)
def test_an_empty_request_is_a_success(exporter, body, kind):
    assert told(send(exporter, body, kind), kind) == (0, "")


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "identity", ""])
def test_a_body_is_unpacked_as_its_header_says(exporter, encoding):
    body = protobuf([of_a_tool()])
    packed = gzip.compress(body) if encoding.lower() == "gzip" else body
    answer = send(exporter, packed, **{"Content-Encoding": encoding})
    assert (answer.status, Claim.objects.count()) == (200, 1)


def test_json_may_name_its_charset_and_begin_with_a_mark(exporter):
    body = b"\xef\xbb\xbf" + as_json([of_a_tool()])
    answer = send(exporter, body, "application/json; charset=utf-8")
    assert (answer.status, answer.headers["Content-Type"]) == (200, JSON)
    assert Claim.objects.count() == 1


def changed(**changes):
    return json.dumps(frame([json_span(cut()) | changes, json_span(of_a_tool(9))])).encode()


def attribute(**value):
    return [
        *json_span(cut())["attributes"],
        {"key": "x", "value": value},
    ]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        pytest.param({"traceId": base64.b64encode(b"t" * 16).decode()}, "not hex", id="base64"),
        pytest.param({"traceId": "ab"}, "traceId is not 16 bytes", id="a short id"),
        pytest.param({"spanId": None}, "spanId is not 8 bytes", id="no id"),
        pytest.param({"spanId": 5}, "spanId is no string", id="a number as id"),
        pytest.param({"status": {"code": "STATUS_CODE_ERROR"}}, "enum", id="an enum by its name"),
        pytest.param({"status": {"code": "2"}}, "enum", id="an enum as a string"),
        pytest.param({"endTimeUnixNano": None}, "not ended", id="no end"),
        pytest.param({"endTimeUnixNano": "soon"}, "no whole number", id="a time in words"),
        pytest.param({"endTimeUnixNano": 2**64}, "64 bits", id="a time beyond 64 bits"),
        pytest.param({"startTimeUnixNano": -1}, "64 bits", id="a time before 1970"),
        pytest.param({"attributes": {"a": 1}}, "attributes is no array", id="pairs as an object"),
        pytest.param({"attributes": attribute(boolValue=1)}, "boolValue", id="1 for true"),
        pytest.param({"attributes": attribute(intValue="1.5")}, "intValue", id="half an int"),
        pytest.param({"attributes": attribute(doubleValue="1_0")}, "doubleValue", id="Python's"),
        pytest.param({"attributes": attribute(bytesValue="*")}, "bytesValue", id="no base64"),
        pytest.param({"attributes": attribute(stringValue=5)}, "stringValue", id="no string"),
    ],
)
def test_a_span_that_breaks_the_rules_of_otlp_json_is_named_alone(exporter, changes, says):
    rejected, told_why = told(send(exporter, changed(**changes), JSON), JSON)
    assert (rejected, says in told_why) == (1, True), told_why
    assert sorted(i.state for i in IngestItem.objects.all()) == ["applied", "unreadable"]


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"endTimeUnixNano": "1772445601000000000"}, id="a time as a string"),
        pytest.param({"endTimeUnixNano": 1772445601000000000}, id="as a number"),
        pytest.param({"startTimeUnixNano": "", "traceState": 5}, id="an empty one"),
        pytest.param({"status": None, "events": None, "links": None}, id="null for absent"),
        pytest.param({"attributes": attribute(intValue=5)}, id="an int as a number"),
        pytest.param({"attributes": attribute(intValue="9" * 30_000)}, id="a number too long"),
        pytest.param({"attributes": attribute(doubleValue="NaN")}, id="what is no number"),
        pytest.param({"attributes": attribute(doubleValue=float("inf"))}, id="as Python has it"),
        pytest.param({"attributes": attribute(ofTomorrow=1)}, id="a kind of value of tomorrow"),
        pytest.param({"attributes": attribute()}, id="no value"),
        pytest.param({"attributes": [*attribute(intValue=1), *attribute(intValue=2)]}, id="twice"),
    ],
)
def test_what_otlp_json_allows_or_what_does_not_matter_costs_no_span(exporter, changes):
    assert told(send(exporter, changed(**changes), JSON), JSON) == (0, "")
    assert {i.state for i in IngestItem.objects.all()} == {"applied"}


def test_an_attribute_with_two_values_is_refused_where_it_matters(exporter):
    pairs = [*json_span(cut())["attributes"]]
    pairs.append({"key": "gen_ai.tool.name", "value": {"stringValue": "charge"}})
    rejected, says = told(send(exporter, changed(attributes=pairs), JSON), JSON)
    assert (rejected, "gen_ai.tool.name appears twice" in says) == (1, True)


def nested(levels):
    value: dict[str, Any] = {"stringValue": "x"}
    for _ in range(levels):
        value = {"arrayValue": {"values": [value]}}
    return [*json_span(cut())["attributes"], {"key": "deep", "value": value}]


@pytest.mark.parametrize(("levels", "rejected"), [(60, 0), (150, 1), (300, 1)])
def test_a_span_that_is_nested_too_deep_costs_only_itself(exporter, levels, rejected):
    many, says = told(send(exporter, changed(attributes=nested(levels)), JSON), JSON)
    assert (many, bool(says)) == (rejected, bool(rejected))
    assert IngestItem.objects.filter(state="applied").count() == 2 - rejected


def test_a_broken_span_in_protobuf_costs_only_itself(exporter):
    request = ExportTraceServiceRequest.FromString(protobuf([of_a_tool(1), cut(2), cut(3)]))
    spans = [s.SerializeToString() for s in request.resource_spans[0].scope_spans[0].spans]
    spans[1] = spans[1][:-1] + b"\xff"
    scope = b"".join(b"\x12" + varint(len(s)) + s for s in spans)
    framed = b"\x12" + varint(len(scope)) + scope
    rejected, says = told(send(exporter, b"\x0a" + varint(len(framed)) + framed), PROTOBUF)
    assert (rejected, "not protobuf" in says) == (1, True)
    (bad,) = IngestItem.objects.filter(state="unreadable")
    assert bytes(bad.raw or b"") == spans[1]


def varint(number):
    out = b""
    while number > 127:
        out, number = out + bytes([number & 127 | 128]), number >> 7
    return out + bytes([number])


# Refusals

BROKEN = [
    pytest.param(b"\xff\xff\xff", PROTOBUF, {}, id="no protobuf"),
    pytest.param(protobuf([of_a_tool()])[:-3], PROTOBUF, {}, id="cut protobuf"),
    pytest.param(b"\x08\x01", PROTOBUF, {}, id="another message"),
    pytest.param(b"{", JSON, {}, id="no JSON"),
    pytest.param(b"[]", JSON, {}, id="no object"),
    pytest.param(b'{"resourceSpans": {}}', JSON, {}, id="no array"),
    pytest.param(b'{"resourceSpans": [{"scopeSpans": [5]}]}', JSON, {}, id="no scope"),
    pytest.param(b'{"resource_spans": []}', JSON, {}, id="the names of protobuf"),
    pytest.param(b"[" * 200_000, JSON, {}, id="too deep"),
    pytest.param(b"{}", JSON, {"Content-Encoding": "gzip"}, id="no gzip"),
    pytest.param(gzip.compress(b"{}")[:-4], JSON, {"Content-Encoding": "gzip"}, id="cut gzip"),
    pytest.param(gzip.compress(b"{}") + b"x", JSON, {"Content-Encoding": "gzip"}, id="more"),
]


@pytest.mark.parametrize(("body", "kind", "headers"), BROKEN)
def test_an_undecodable_body_is_a_status_and_is_kept(exporter, body, kind, headers):
    answer = send(exporter, body, kind, **headers)
    code, says = refused(answer, kind)
    assert (answer.status, code, "cannot be decoded" in says) == (400, 3, True)
    item = IngestItem.objects.get()
    assert (bytes(item.raw or b""), item.state, str(item.pk) in says) == (body, "unreadable", True)


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
@pytest.mark.parametrize("token", ["", "Basic eA==", "Bearer cf_no"])
def test_without_a_token_nothing_is_read(exporter, monkeypatch, kind, token):
    monkeypatch.setattr(otlp_http, "read_body", None)
    answer = send(exporter, b"?", kind, Authorization=token)
    assert (answer.status, refused(answer, kind)[0]) == (401, 16)
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
def test_a_token_of_another_scope_may_not_send_spans(agent, monkeypatch, kind):
    monkeypatch.setattr(otlp_http, "read_body", None)
    answer = send(agent, b"?", kind)
    assert (answer.status, refused(answer, kind)[0]) == (403, 7)


@pytest.mark.parametrize(
    ("kind", "headers", "status", "expected"),
    [
        pytest.param("text/plain", {}, 415, ("Content-Type", JSON), id="another kind"),
        pytest.param(
            PROTOBUF, {"Content-Encoding": "zstd"}, 415, ("Accept-Encoding", "gzip"), id="zstd"
        ),
        pytest.param(JSON, {"Content-Encoding": "gzip, gzip"}, 415, ("Accept-Encoding", "gzip"),
                     id="twice"),
    ],
)  # fmt: skip
def test_what_is_not_read_here_is_refused_with_what_is(exporter, kind, headers, status, expected):
    answer = send(exporter, b"?", kind, **headers)
    assert (answer.status, answer.headers[expected[0]]) == (status, expected[1])
    assert refused(answer, PROTOBUF if kind == PROTOBUF else JSON)[1]


@pytest.mark.parametrize("method", ["GET", "PUT"])
def test_only_post_is_taken(exporter, method):
    answer = exporter.send(method, "/v1/traces", {"Content-Type": JSON}, b"")
    assert (answer.status, answer.headers["Allow"]) == (405, "POST")


def test_a_body_longer_than_the_limit_is_refused_by_its_length_alone(exporter, monkeypatch):
    monkeypatch.setattr(otlp_http, "OTLP_BODY_BYTES_MAX", 1000)
    answer = send(exporter, b" " * 1001, JSON)
    code, says = refused(answer, JSON)
    assert (answer.status, code, "OTLP_BODY_BYTES_MAX, 1000" in says) == (413, 8, True)


def test_the_limit_is_64_mib():
    assert otlp_http.OTLP_BODY_BYTES_MAX == 64 * 1024 * 1024


def test_a_bomb_is_not_unpacked_beyond_the_limit(exporter, monkeypatch):
    """Counted is what zlib was asked to give of twice the limit."""
    given = []

    class Counting:
        def __init__(self, **how):
            self.inner = real(**how)

        def decompress(self, raw, length):
            given.append(len(found := self.inner.decompress(raw, length)))
            return found

    real = zlib.decompressobj
    packed = gzip.compress(b" " * 2**27)
    monkeypatch.setattr(zlib, "decompressobj", Counting)
    answer = send(exporter, packed, JSON, **{"Content-Encoding": "gzip"})
    assert (answer.status, refused(answer, JSON)[0]) == (413, 8)
    assert given == [otlp_http.OTLP_BODY_BYTES_MAX + 1]
    assert not IngestItem.objects.exists()


def test_what_just_fits_is_unpacked(monkeypatch):
    monkeypatch.setattr(otlp_http, "OTLP_BODY_BYTES_MAX", 1000)
    assert otlp_http.unpacked(gzip.compress(b"x" * 1000)) == b"x" * 1000
    with pytest.raises(otlp_http.Refused):
        otlp_http.unpacked(gzip.compress(b"x" * 1001))


def test_the_parts_of_a_json_body_are_limited(monkeypatch):
    monkeypatch.setattr(otlp_json, "PARTS_MAX", 100)
    with pytest.raises(Undecodable, match="PARTS_MAX, 100"):
        list(otlp_json.spans(b"[" + b"0," * 100 + b"0]"))


def test_more_spans_of_tools_than_the_limit_are_refused_by_its_name(exporter, monkeypatch):
    monkeypatch.setattr(otlp_http, "TOOL_SPANS_PER_REQUEST_MAX", 2)
    answer = send(exporter, protobuf([of_a_tool(1), of_a_tool(2), of_a_tool(3)]))
    assert answer.status == 413
    assert "TOOL_SPANS_PER_REQUEST_MAX" in refused(answer, PROTOBUF)[1]


@pytest.mark.parametrize("kind", [PROTOBUF, JSON])
@pytest.mark.parametrize("step", ["keep", "apply"])
def test_a_lost_database_asks_the_exporter_to_come_again(exporter, monkeypatch, kind, step):
    body = protobuf([of_a_tool()]) if kind == PROTOBUF else as_json([of_a_tool()])

    def lost(*_):
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(ingest, step, lost)
        answer = send(exporter, body, kind)
    assert (answer.status, refused(answer, kind)[0]) == (503, 14)
    assert int(answer.headers["Retry-After"]) > 0
    assert told(send(exporter, body, kind), kind) == (0, "")
    assert Claim.objects.get().fence == 1


def test_a_fault_of_ours_is_a_status_too(exporter, monkeypatch):
    monkeypatch.setattr(otlp, "take", None)
    answer = send(exporter, protobuf([]))
    assert (answer.status, refused(answer, PROTOBUF)[0]) == (500, 13)


# What is kept and not applied


def test_a_span_whose_applying_failed_is_kept_and_warned_of(exporter, monkeypatch):
    def breaks(*_):
        raise RuntimeError

    with monkeypatch.context() as patched:
        patched.setattr(ingest, "apply_message", breaks)
        rejected, says = export(exporter, of_a_tool())
    assert (rejected, "tried again" in says) == (0, True)
    assert export(exporter, of_a_tool()) == (0, "")
    assert IngestItem.objects.get().state == "applied"


def test_what_takes_too_long_is_kept_for_the_worker(exporter, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(otlp, "ANSWER_SECONDS_MAX", -1)
        assert export(exporter, of_a_tool(), cut()) == (0, "")
    assert {i.state for i in IngestItem.objects.all()} == {"received"}
    IngestItem.objects.update(last_seen_at="2020-01-01T00:00Z")
    assert ingest.retry(10) == 2
    assert Claim.objects.get().fence == 2


def test_the_reasons_of_a_partial_success_are_bounded(exporter):
    spans = [
        of_a_tool(n, said={f"x{n}": 1, "gen_ai.tool.name": "t" * (300 + n)}) for n in range(1, 40)
    ]
    rejected, says = export(exporter, *spans, of_a_tool(50, end=0))
    assert rejected == 40
    assert len(says) <= otlp_http.MESSAGE_CHARACTERS_MAX
