"""The API's description (OpenAPI 3.1) and the page that shows it to people.

The page is rendered here from the same document, without a script: the usual viewers bring inline
code or a foreign host, and our content policy allows neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from effects.core.events import EVENT_TYPES, IngestAnswer, ItemAnswer, StreamCursor
from effects.core.messages import (
    BatchAnswer,
    BatchItem,
    ClaimAnswer,
    ClaimBatch,
    ClaimRequest,
    Complete,
    Fail,
    Heartbeat,
    HeartbeatAnswer,
    OfflineCall,
    Problem,
    Sent,
    Unknown,
)
from effects.core.problems import KINDS, LedgerProblem
from effects.core.recovery_messages import RecoveryDecision, RecoveryRequest
from ledger.refusals import ANSWER_STATUS, NOT_GRANTED, OWN_KINDS, PROBLEM_TYPE

if TYPE_CHECKING:
    from ninja import NinjaAPI

PREFIX: Final = "api/v1/"
REFERENCE: Final = "#/components/schemas/{model}"

ANSWERS: Final[dict[int, type[BaseModel]]] = {200: ClaimAnswer}
CLAIM_ANSWERS: Final[dict[int, type[BaseModel]]] = {201: ClaimAnswer, 200: ClaimAnswer}

_READ: Final[tuple[type[BaseModel], ...]] = (
    *(ClaimRequest, ClaimBatch, Complete, Fail, Heartbeat, Sent, Unknown),
    *(OfflineCall, RecoveryRequest),
    *EVENT_TYPES.values(),
)
_WRITTEN: Final = (
    *(ClaimAnswer, HeartbeatAnswer, Problem, BatchAnswer, BatchItem),
    *(IngestAnswer, ItemAnswer, StreamCursor),
    RecoveryDecision,
)
_NOT_OF_THE_API: Final = frozenset({"stale", "not_offered"})


def reads(model: type[BaseModel]) -> dict[str, Any]:
    """The part of an endpoint's description that names the body it reads.

    The body is read by pydantic straight from JSON, where strictness still lets identifiers and
    times be strings; the framework's own reader would refuse those, so it never sees a body.
    """
    schema = {"$ref": REFERENCE.format(model=model.__name__)}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemKind:
    """One code that a problem document may carry."""

    code: str
    status: int
    title: str
    carries_answer: bool


def problem_kinds() -> tuple[ProblemKind, ...]:
    """Every code of the API, by status and name."""
    own = {kind for kind in (*KINDS, *OWN_KINDS) if kind.code not in _NOT_OF_THE_API}
    kinds = [_kind(kind) for kind in own]
    kinds += [
        ProblemKind(code=code, status=ANSWER_STATUS[code], title=title, carries_answer=True)
        for code, title in NOT_GRANTED.items()
    ]
    return tuple(sorted(kinds, key=lambda kind: (kind.status, kind.code)))


def _kind(kind: type[LedgerProblem]) -> ProblemKind:
    return ProblemKind(
        code=kind.code, status=kind.status, title=kind.sentence(), carries_answer=False
    )


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document. It depends on the code alone, so it is made once."""
    from ledger.api import api  # noqa: PLC0415 - the endpoints use `reads` above

    return _completed(api)


def _completed(api: NinjaAPI) -> dict[str, Any]:
    found: dict[str, Any] = dict(api.get_openapi_schema(path_prefix=PREFIX))
    modes: list[tuple[type[BaseModel], JsonSchemaMode]] = [
        *((model, "validation") for model in _READ),
        *((model, "serialization") for model in _WRITTEN),
    ]
    _, definitions = models_json_schema(modes, ref_template=REFERENCE)
    schemas = definitions["$defs"]
    schemas["Problem"]["properties"]["code"] |= {"enum": [kind.code for kind in problem_kinds()]}
    found["components"]["schemas"] |= schemas
    for operations in found["paths"].values():
        for operation in operations.values():
            operation["responses"] |= _problem_responses()
    return found


def _problem_responses() -> dict[str, Any]:
    content = {PROBLEM_TYPE: {"schema": {"$ref": REFERENCE.format(model="Problem")}}}
    by_status: dict[int, list[str]] = {}
    for kind in problem_kinds():
        by_status.setdefault(kind.status, []).append(kind.code)
    return {
        str(status): {
            "description": f"{HTTPStatus(status).phrase}: {', '.join(codes)}",
            "content": content,
        }
        for status, codes in by_status.items()
    }


# The page


@require_safe
def openapi_json(_request: HttpRequest) -> HttpResponse:
    """The document for programs."""
    return JsonResponse(document())


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The document for people."""
    context = {
        "endpoints": endpoints(document()),
        "messages_described": messages(document()),
        "problems": problem_kinds(),
    }
    return render(request, "ledger/api_docs.html", context)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    name: str
    place: str
    kind: str
    required: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One method of one address. `body` and `answer` name a message, or are empty."""

    anchor: str
    method: str
    path: str
    description: str
    parameters: tuple[Parameter, ...]
    body: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    name: str
    kind: str
    required: bool
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageDescribed:
    name: str
    description: str
    members: tuple[Member, ...]


def endpoints(found: dict[str, Any]) -> list[Endpoint]:
    """The endpoints of a document, in its order."""
    return [
        Endpoint(
            anchor=operation["operationId"],
            method=method.upper(),
            path=path,
            description=operation.get("description", ""),
            parameters=tuple(_parameter(p) for p in operation["parameters"]),
            body=_message_name(operation.get("requestBody")),
            answer=_message_name(
                operation["responses"].get("200") or operation["responses"].get(200)
            ),
        )
        for path, operations in found["paths"].items()
        for method, operation in operations.items()
    ]


def messages(found: dict[str, Any]) -> list[MessageDescribed]:
    """The messages of a document that have members, by name."""
    schemas = found["components"]["schemas"]
    return [
        MessageDescribed(
            name=name,
            description=schema.get("description", ""),
            members=tuple(
                Member(
                    name=member,
                    kind=kind_in_words(inner, schemas),
                    required=member in schema.get("required", ()),
                    description=inner.get("description", ""),
                )
                for member, inner in schema["properties"].items()
            ),
        )
        for name, schema in sorted(schemas.items())
        if schema.get("properties")
    ]


def kind_in_words(schema: dict[str, Any], schemas: dict[str, Any]) -> str:
    """One JSON schema as a few words: "string, 1 to 255 characters, or null"."""
    if "anyOf" in schema:
        return " or ".join(kind_in_words(choice, schemas) for choice in schema["anyOf"])
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        named = schemas.get(name, {})
        return kind_in_words(named, schemas) if "enum" in named else name
    if "enum" in schema:
        return "one of " + ", ".join(map(str, schema["enum"]))
    if schema.get("type") == "array":
        return f"list of {kind_in_words(schema.get('items', {}), schemas)}"
    kind = schema.get("const") or schema.get("format") or schema.get("type") or "any value"
    return ", ".join([str(kind), *_bounds(schema)])


def _bounds(schema: dict[str, Any]) -> list[str]:
    bounds = []
    for low, high, unit in (("minLength", "maxLength", " characters"), ("minimum", "maximum", "")):
        if low in schema and high in schema:
            bounds.append(f"{schema[low]} to {schema[high]}{unit}")
        elif low in schema:
            bounds.append(f"from {schema[low]}{unit}")
        elif high in schema:
            bounds.append(f"at most {schema[high]}{unit}")
    return bounds


def _parameter(found: dict[str, Any]) -> Parameter:
    return Parameter(
        name=found["name"],
        place=found["in"],
        kind=kind_in_words(found["schema"], {}),
        required=found["required"],
    )


def _message_name(part: dict[str, Any] | None) -> str:
    for content in (part or {}).get("content", {}).values():
        return str(content["schema"].get("$ref", "")).rsplit("/", 1)[-1]
    return ""
