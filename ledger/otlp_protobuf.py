"""OTLP in protobuf: the spans of a request in bytes, and the two messages that are answered.

The frame of a request is taken apart field by field and each span is then read by itself, so that
one span that cannot be read does not cost its neighbours. Spans are read with the schema that
OpenTelemetry publishes, but for its strings, which are taken as bytes: protobuf refuses a whole
message for one text that is no UTF-8, and exporters that cut long attributes do send such texts.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, empty_pb2, message_factory
from google.protobuf.message import DecodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.proto.common.v1 import common_pb2
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from ledger.ingest_json import Digits, Members, Unreadable
from ledger.otlp_span import (
    TELLING,
    Read,
    Span,
    Undecodable,
    attributes,
    bad,
    double,
    ended,
    ids,
    is_of_a_tool,
    worker_of,
)

_LENGTH_DELIMITED: Final = 2
# Numbers of fields in opentelemetry/proto/collector/trace/v1 and opentelemetry/proto/trace/v1.
_RESOURCE_SPANS: Final = 1
_RESOURCE: Final = 1
_SCOPE_SPANS: Final = 2
_SPANS: Final = 2


def _with_bytes_for_strings() -> descriptor_pool.DescriptorPool:
    pool = descriptor_pool.DescriptorPool()
    for module in (common_pb2, resource_pb2, trace_pb2):
        file = descriptor_pb2.FileDescriptorProto()
        module.DESCRIPTOR.CopyToProto(file)
        todo = list(file.message_type)
        while todo:
            message = todo.pop()
            todo += message.nested_type
            for field in message.field:
                if field.type == field.TYPE_STRING:
                    field.type = field.TYPE_BYTES
        pool.Add(file)
    return pool


def _status_pool() -> descriptor_pool.DescriptorPool:
    """`google.rpc.Status`, of which OTLP's refusals need the code and the message."""
    kinds = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="google/rpc/status.proto", package="google.rpc", syntax="proto3"
    )
    status = file.message_type.add(name="Status")
    for number, (name, kind) in enumerate(
        (("code", kinds.TYPE_INT32), ("message", kinds.TYPE_STRING)), start=1
    ):
        status.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


def _class_of(pool: descriptor_pool.DescriptorPool, name: str) -> Any:
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


_POOL: Final = _with_bytes_for_strings()
_Span: Final = _class_of(_POOL, "opentelemetry.proto.trace.v1.Span")
_Resource: Final = _class_of(_POOL, "opentelemetry.proto.resource.v1.Resource")
_Status: Final = _class_of(_status_pool(), "google.rpc.Status")


def spans(raw: bytes) -> Iterator[Read]:
    """The spans of a body, in order. Raises `Undecodable`; a fault of one span costs only it."""
    for resource_spans in _fields(raw, _RESOURCE_SPANS):
        worker = _worker(resource_spans)
        for scope_spans in _fields(resource_spans, _SCOPE_SPANS):
            for span in _fields(scope_spans, _SPANS):
                yield _read(span, worker)


def _fields(raw: bytes, number: int) -> Iterator[bytes]:
    """The messages of one repeated field. What else a message holds is passed over."""
    try:
        found = UnknownFieldSet(empty_pb2.Empty.FromString(raw))
    except DecodeError:
        raise Undecodable("it is not protobuf, or ends inside a message") from None
    for field in found:
        if field.field_number == number:
            if field.wire_type != _LENGTH_DELIMITED:
                raise Undecodable("it is protobuf, but no ExportTraceServiceRequest")
            yield field.data


def _worker(resource_spans: bytes) -> str:
    """What the resource says of the process. A resource that cannot be read costs no span."""
    try:
        # A message that comes in parts is all of its parts, one after the other.
        resource = _Resource.FromString(b"".join(_fields(resource_spans, _RESOURCE)))
        return worker_of(_attributes(resource.attributes))
    except (DecodeError, Unreadable):
        return ""


def _read(raw: bytes, worker: str) -> Read:
    known = ("", "")
    try:
        found = _Span.FromString(raw)
        if not is_of_a_tool(_attributes(found.attributes, TELLING), _text(found.name)):
            return None
        known = ids(found.trace_id, found.span_id)
        return _span(found, known, worker)
    except Unreadable as unreadable:
        fault = unreadable
    except DecodeError:
        fault = Unreadable("span_undecodable", "The span is not protobuf, or is nested too deep.")
    return bad(raw, fault, known)


def _span(found: Any, known: tuple[str, str], worker: str) -> Span:
    return Span(
        trace_id=known[0],
        span_id=known[1],
        parent_id=found.parent_span_id.hex(),
        name=_text(found.name),
        start=found.start_time_unix_nano,
        end=ended(found.end_time_unix_nano),
        status=found.status.code,
        message=_text(found.status.message),
        attributes=_attributes(found.attributes),
        events=tuple(map(_event, found.events)),
        worker=worker,
    )


def _event(found: Any) -> Members:
    return Members([
        ("name", _text(found.name)),
        ("time", Digits(found.time_unix_nano)),
        ("attributes", _attributes(found.attributes)),
    ])  # fmt: skip


def _text(raw: bytes) -> str:
    # What is no UTF-8 is kept as it came, and mended where the item is read.
    return raw.decode("utf-8", "surrogateescape")


def _attributes(pairs: Iterable[Any], only: Container[str] | None = None) -> Members:
    named = ((_text(pair.key), pair.value) for pair in pairs)
    return attributes((n, _any(value)) for n, value in named if only is None or n in only)


def _any(value: Any) -> Any:
    """One value as the JSON that it stands for; null where nothing was set."""
    kind = value.WhichOneof("value")
    return _KINDS[kind](getattr(value, kind)) if kind in _KINDS else None


_KINDS: Final[dict[str, Callable[[Any], Any]]] = {
    "string_value": _text,
    "bool_value": bool,
    "int_value": Digits,
    "double_value": double,
    "array_value": lambda array: [_any(inner) for inner in array.values],
    "kvlist_value": lambda pairs: _attributes(pairs.values),
    "bytes_value": lambda raw: base64.b64encode(raw).decode(),
}


# What is answered


def response(rejected: int, says: str) -> bytes:
    """`ExportTraceServiceResponse`; without a word to say its partial success stays unset."""
    answer = ExportTraceServiceResponse()
    if says:
        answer.partial_success.rejected_spans = rejected
        answer.partial_success.error_message = says
    return _written(answer)


def status(code: int, says: str) -> bytes:
    """`google.rpc.Status`: `code` is one of gRPC's."""
    return _written(_Status(code=code, message=says))


def _written(message: Message) -> bytes:
    return bytes(message.SerializeToString(deterministic=True))
