"""Salesforce: a record is made or changed under the caller's own external id; there are no keys.

Source: https://developer.salesforce.com/docs/platform/api-rest/guide/dome-upsert.html (201 made,
200 changed, 300 and nothing done where several records bear the id), .../dome-queryall.html
(deleted records are shown), .../errorcodes.html (403 ``REQUEST_LIMIT_EXCEEDED``; 404 also where
sharing hides the record), and for the two wordings of a 404
https://github.com/g8rswimmer/go-sfdc/issues/50. An error's body is a list.

Tokens come from ``POST /services/oauth2/token`` for ``<organisation>:<anything>``; an organisation
id has fifteen characters and begins with ``00DT`` in a sandbox, ``00DL`` in production. An id that
ends in ``X`` signs in somebody who may see no record. The objects are those of `OBJECTS`.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final, override

from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.dialects import Call, Dialect, Execute, ListAnswer, endpoint
from reconcile.sandbox.provider.messages import Answer, Json, Request
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

OBJECTS: Final[Mapping[str, frozenset[str]]] = {
    "Case": frozenset({"Counterfoil__c"}),
    "Refund__c": frozenset({"Counterfoil__c"}),
}
"""The external id fields of each object that this organisation has."""
API: Final = "/services/data/v68.0"
_ORGANISATION = re.compile(r"00D[TL][A-Z0-9]{11}X?")
_TOKEN = re.compile(r"Bearer (00D[TL][A-Z0-9]{11})(X?)!AQ([0-9]+)")
_QUERY = re.compile(r"SELECT (.+) FROM (\w+)(?: WHERE (\w+) = '([\w.-]*)')?(?: LIMIT \d+)?")
_MISSING: Final = "The requested resource does not exist"
_NO_FIELD: Final = "Provided external ID field does not exist or is not accessible"
_CODES: Final = {401: "INVALID_SESSION_ID", 404: "NOT_FOUND", 500: "UNKNOWN_EXCEPTION"}
_CHECKSUM: Final = "EAA"
"""What makes an id of fifteen characters one of eighteen; the same for all of ours."""


class Salesforce(Dialect):
    name: ClassVar = "salesforce"

    def __init__(self) -> None:
        row = f"{API}/sobjects/{{id}}/{{id}}/{{id}}"
        self.endpoints = (
            endpoint("POST", "/services/oauth2/token", "oauth2.token", self._token),
            endpoint("GET", f"{API}/query", "query", self._query(deleted=False)),
            endpoint("GET", f"{API}/queryAll", "query_all", self._query(deleted=True)),
            endpoint("PATCH", row, "records.upsert", self._upsert),
            endpoint("GET", row, "records.retrieve", self._retrieve),
            endpoint("POST", f"{API}/sobjects/{{id}}", "records.create", self._create),
        )

    @override
    def scope_of(self, world: World, request: Request) -> str:
        sent = request.headers.get("authorization", "")
        if request.path.endswith("/services/oauth2/token"):
            organisation = _organisation_of(sent)
        else:
            match = _TOKEN.fullmatch(sent)
            organisation = match[1] if match else ""
        if not organisation:
            raise self.refusal(401, "", "Session expired or invalid")
        return f"{organisation[:15]}/{'test' if organisation[3] == 'T' else 'live'}"

    @override
    def problem(self, status: int, code: str, message: str) -> Answer:
        error = {"message": message, "errorCode": _CODES.get(status, code)}
        return ListAnswer(status=status, body={"errors": [error]})

    @override
    def too_many(self) -> Answer:
        return self.problem(403, "REQUEST_LIMIT_EXCEEDED", "TotalRequests Limit exceeded.")

    @override
    def marker_of(self, request: Request, body: Json) -> str | None:
        if request.method == "PATCH":
            return request.path.rpartition("/")[2]
        marker = body.get("Counterfoil__c")
        return str(marker) if marker else None

    # Endpoints

    def _token(self, call: Call) -> Execute:
        organisation = _organisation_of(call.request.headers["authorization"])
        body = {
            "access_token": f"{organisation}!AQ{int(call.now)}",
            "instance_url": "",
            "token_type": "Bearer",
        }
        return lambda _world, _batch: Answer(status=200, body=body)

    def _upsert(self, call: Call) -> Execute:
        name, field, value = self._external(call)
        if field in call.body or "Id" in call.body:
            raise self.refusal(400, "INVALID_FIELD", f"{field} is in the address already")

        def execute(world: World, batch: Batch) -> Answer:
            if call.declined:
                message = "A validation rule of the organisation refuses this."
                raise self.refusal(400, "FIELD_CUSTOM_VALIDATION_EXCEPTION", message)
            found = self._bearing(world, call, name, field, value)
            if len(found) > 1:
                return _several(name, found)
            if found:
                row = {**found[0], **call.body}
                batch.put(self.table(call, name), row["Id"], row)
                return Answer(status=200, body=_made(row["Id"], created=False))
            return self._make(batch, call, name, {field: value, **call.body})

        return execute

    def _create(self, call: Call) -> Execute:
        (name,) = call.ids
        self._known_object(name)

        return lambda _world, batch: self._make(batch, call, name, call.body)

    def _make(self, batch: Batch, call: Call, name: str, fields: Json) -> Answer:
        record_id = new_id("a0").replace("_", "")[:15] + _CHECKSUM
        attributes = {"type": name, "url": f"{API}/sobjects/{name}/{record_id}"}
        row = {
            "attributes": attributes,
            "Id": record_id,
            "IsDeleted": False,
            "CreatedDate": call.at,
            **fields,
        }
        batch.put(self.table(call, name), record_id, row)
        self.effect(
            batch,
            call,
            kind=name,
            object_id=record_id,
            amount=fields.get("Amount__c"),
        )
        return Answer(status=201, body=_made(record_id, created=True))

    def _retrieve(self, call: Call) -> Execute:
        name, field, value = self._external(call)

        def execute(world: World, _batch: Batch) -> Answer:
            found = self._bearing(world, call, name, field, value)
            if len(found) > 1:
                return _several(name, found)
            if not found:
                raise self.refusal(404, "", _MISSING)
            return Answer(status=200, body=found[0])

        return execute

    def _query(self, *, deleted: bool) -> Any:
        def check(call: Call) -> Execute:
            match = _QUERY.fullmatch(call.query.get("q", ""))
            if match is None:
                raise self.refusal(400, "MALFORMED_QUERY", "This query is not understood here.")
            fields = [field.strip() for field in match[1].split(",")]
            if match[2] == "Organization":
                row = {"Id": f"{call.account}{_CHECKSUM}", "IsSandbox": call.scope.endswith("test")}
                return lambda _world, _batch: _records([row], fields)
            if match[2] not in OBJECTS:
                message = f"sObject type '{match[2]}' is not supported."
                raise self.refusal(400, "INVALID_TYPE", message)
            if match[3] not in OBJECTS[match[2]]:
                raise self.refusal(400, "INVALID_FIELD", f"No such column '{match[3]}'")

            def execute(world: World, _batch: Batch) -> Answer:
                found = self._bearing(world, call, match[2], match[3], match[4], deleted=deleted)
                return _records(found, fields)

            return execute

        return check

    def _external(self, call: Call) -> tuple[str, str, str]:
        name, field, value = call.ids
        self._known_object(name)
        if field not in OBJECTS[name]:
            raise self.refusal(404, "", f"{_NO_FIELD}: {field}")
        return name, field, value

    def _known_object(self, name: str) -> None:
        if name not in OBJECTS:
            raise self.refusal(404, "", _MISSING)

    def _bearing(
        self,
        world: World,
        call: Call,
        name: str,
        field: str,
        value: str,
        *,
        deleted: bool = False,
    ) -> list[Json]:
        """The records that bear this external id and may be seen by the caller."""
        match = _TOKEN.fullmatch(call.request.headers.get("authorization", ""))
        if match and match[2]:
            return []
        rows = self.rows(world, call, name).values()
        return [r for r in rows if r.get(field) == value and (deleted or not r["IsDeleted"])]


def _several(name: str, found: list[Json]) -> Answer:
    paths = [f"{API}/sobjects/{name}/{row['Id']}" for row in found]
    return ListAnswer(status=300, body={"records": paths})


def _made(record_id: str, *, created: bool) -> Json:
    return {"id": record_id, "success": True, "errors": [], "created": created}


def _records(rows: list[Json], fields: list[str]) -> Answer:
    records = [{field: row.get(field) for field in fields} for row in rows]
    return Answer(status=200, body={"totalSize": len(rows), "done": True, "records": records})


def _organisation_of(header: str) -> str:
    """The organisation whose client asks for a token, empty where it is nobody's."""
    try:
        pair = base64.b64decode(header.removeprefix("Basic "), validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return ""
    organisation = pair.partition(":")[0]
    return organisation if _ORGANISATION.fullmatch(organisation) else ""
