"""What the providers that speak JSON have in common here: requests, keys, faults, effects.

A dialect is one provider's documented API under a prefix of its own (``/paypal/...``). It says how
it knows a caller, which endpoints it has, what it does with a key that it has seen before, and how
its refusals look. The order is the same for all: who asks, the rate limit, the parameters, the key,
the execution, and what is kept with the key, in one batch with the effect.
"""

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, override
from urllib.parse import parse_qsl

from reconcile.sandbox.faults import Asked, ChosenFault, Fault
from reconcile.sandbox.provider.clock import iso
from reconcile.sandbox.provider.context import new_id
from reconcile.sandbox.provider.messages import Answer, Json, Refused, Request
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.world import World

TEXT_LENGTH_MAX: Final = 500
AMOUNT_MAX: Final = 99_999_999
RETRY_AFTER_SECONDS: Final = 30
WAITS_SECONDS_MAX: Final = 30.0
"""Longest that a request waits for the one before it with the same key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One authenticated request. `scope` is the caller's account and mode, whose tables are its
    own; `ids` are what the path names. `declined`: it is to be refused when it is executed."""

    scope: str
    request: Request
    request_id: str | None
    cause: str
    now: float
    declined: bool = False
    ids: tuple[str, ...] = ()
    key: str | None = None
    query: Mapping[str, str] = field(default_factory=dict)
    body: Json = field(default_factory=dict)

    @property
    def account(self) -> str:
        return self.scope.partition("/")[0]

    @property
    def at(self) -> str:
        """This moment, as the provider writes it."""
        return iso(self.now)


type Execute = Callable[[World, Batch], Answer]
"""The second half of an endpoint: parameters are checked, now it happens."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One endpoint; `check` reads the parameters, raises Refused, and gives what is left to do."""

    method: str
    pattern: re.Pattern[str]
    operation: str
    check: Callable[[Call], Execute]


def endpoint(method: str, path: str, operation: str, check: Callable[[Call], Execute]) -> Endpoint:
    """`{id}` in the path stands for one name in it."""
    pattern = re.compile("^" + path.replace("{id}", r"([^/?]{1,255})") + "$")
    return Endpoint(method=method, pattern=pattern, operation=operation, check=check)


class Dialect(ABC):
    """One provider. Its tables and its truth file bear its `name`."""

    name: ClassVar[str]
    key_header: ClassVar[str] = ""
    late_yields: ClassVar[bool] = True
    """Whether what comes after a 500 is left undone where its key has become known meanwhile."""
    endpoints: tuple[Endpoint, ...]

    @abstractmethod
    def scope_of(self, world: World, request: Request) -> str:
        """The caller's account and mode. Raises Refused."""

    @abstractmethod
    def problem(self, status: int, code: str, message: str) -> Answer:
        """A refusal in the words of this provider."""

    @abstractmethod
    def marker_of(self, request: Request, body: Json) -> str | None:
        """Our marker in a request, where this provider's callers put it."""

    def too_many(self) -> Answer:
        """The rate limit."""
        return replace(
            self.problem(429, "too_many_requests", "Too many requests."),
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )

    def busy(self, call: Call) -> Answer | None:
        """The answer while the first request with this key is at work; None: wait for it."""
        del call
        return None

    def known(self, world: World, call: Call) -> Answer | None:
        """The answer to a key that was seen before, None where the request is to be executed."""
        del world, call
        return None

    def keep(self, batch: Batch, call: Call, answer: Answer) -> None:
        """Keep with the key what this provider keeps."""
        del batch, call, answer

    # The same for all of them.

    def table(self, call: Call, kind: str) -> str:
        return f"{self.name}/{call.scope}/{kind}"

    def rows(self, world: World, call: Call, kind: str) -> dict[str, Json]:
        return world.store.table(self.table(call, kind))

    def row(self, world: World, call: Call, kind: str, object_id: str) -> Json:
        """One object. Raises Refused with this provider's 404."""
        row = self.rows(world, call, kind).get(object_id)
        if row is None:
            raise self.refusal(404, "not_found", f"{object_id} is not there.")
        return row

    def put(self, batch: Batch, call: Call, kind: str, row: Json) -> None:
        batch.put(self.table(call, kind), row["id"], row)

    def refusal(self, status: int, code: str, message: str) -> Refused:
        return Refused(self.problem(status, code, message), stored=False)

    def effect(self, batch: Batch, call: Call, *, kind: str, object_id: str, **fields: Any) -> None:
        """Write one effect to the truth file, with the marker of the request that caused it."""
        effect: Json = {
            "at": call.at,
            "provider": self.name,
            "scope": call.scope,
            "kind": kind,
            "object_id": object_id,
            "amount": None,
            "currency": None,
            "marker": self.marker_of(call.request, call.body),
            "metadata": {},
            "idempotency_key": call.key,
            "request_id": call.request_id,
            "cause": call.cause,
        }
        batch.effect(self.name, {**effect, **fields})

    def describe(self, request: Request) -> Asked:
        """What the fault plan may know about this request."""
        found = self._find(request)
        is_write = request.method != "GET" and not (found and found[0].operation.endswith(".token"))
        return Asked(
            operation=f"{self.name}.{found[0].operation}" if found else "unknown",
            is_write=is_write,
            idempotency_key=self._key(request),
            marker=self.marker_of(request, _body_or_empty(request)),
        )

    def answer(self, world: World, request: Request, fault: ChosenFault, *, cause: str) -> Answer:
        """Answer one request. Blocks for the length of a delay, without holding a lock."""
        request_id = new_id(self.name)
        try:
            given = self._answer(world, request, fault, request_id=request_id, cause=cause)
        except Refused as refusal:
            given = refusal.answer
        headers = {"X-Request-Id": request_id, **given.headers}
        return replace(given, headers=headers)

    def commit_late(self, world: World, request: Request, batch: Batch) -> None:
        """Apply a request that was answered with a 500 before. Nobody hears about it."""
        calm = ChosenFault(kind=Fault.NONE)
        try:
            call, execute = self._check(world, request, calm, request_id=None, cause="late_commit")
            if self.late_yields and call.key and self.known(world, call) is not None:
                return
            self.keep(batch, call, execute(world, batch))
        except Refused:
            return

    def _answer(
        self,
        world: World,
        request: Request,
        fault: ChosenFault,
        *,
        request_id: str,
        cause: str,
    ) -> Answer:
        call, execute = self._check(world, request, fault, request_id=request_id, cause=cause)
        if call.key is None:
            return self._run(world, call, execute, fault)
        with world.flights.of(f"{self.name}/{call.scope}/{call.key}") as first:
            if not first and (busy := self.busy(call)) is not None:
                return busy
            with world.flights.turn(f"{self.name}/{call.scope}/{call.key}", WAITS_SECONDS_MAX):
                return self._run(world, call, execute, fault)

    def _check(
        self,
        world: World,
        request: Request,
        fault: ChosenFault,
        *,
        request_id: str | None,
        cause: str,
    ) -> tuple[Call, Execute]:
        """Everything that comes before the key. Raises Refused."""
        found = self._find(request)
        if found is None:
            raise self.refusal(404, "not_found", f"No {request.method} {request.path} here.")
        call = Call(
            scope=self.scope_of(world, request),
            request=request,
            request_id=request_id,
            cause=cause,
            now=world.clock.now(),
            declined=fault.kind is Fault.REFUSE_402,
            ids=found[1],
            key=self._key(request),
            query=dict(parse_qsl(request.query)),
            body=self._body(request),
        )
        if fault.kind is Fault.RATE_LIMIT_429:
            raise Refused(self.too_many(), stored=False)
        return call, found[0].check(call)

    def _run(self, world: World, call: Call, execute: Execute, fault: ChosenFault) -> Answer:
        if fault.kind is Fault.DELAY:
            time.sleep(fault.seconds)
        with world.store.batch() as batch:
            # Here, and not before the delay: what came late may have used the key meanwhile.
            if call.key and (known := self.known(world, call)) is not None:
                return known
            if fault.kind is Fault.ERROR_500_THEN_LATE_COMMIT:
                world.commit_later(batch, seconds=fault.seconds, request=call.request)
            if fault.kind in {Fault.ERROR_500, Fault.ERROR_500_THEN_LATE_COMMIT}:
                given = self.problem(500, "internal_error", "Something went wrong on our side.")
            else:
                given = execute(world, batch)
            if call.key:
                self.keep(batch, call, given)
            return given

    def _find(self, request: Request) -> tuple[Endpoint, tuple[str, ...]] | None:
        path = request.path.removeprefix(f"/{self.name}")
        for one in self.endpoints:
            match = one.pattern.match(path)
            if match and one.method == request.method:
                return one, match.groups()
        return None

    def _key(self, request: Request) -> str | None:
        # A read has no key, whatever header it carries.
        header = request.headers.get(self.key_header) if self.key_header else None
        return header or None if request.method == "POST" else None

    def _body(self, request: Request) -> Json:
        content = request.headers.get("content-type", "")
        if not request.body or "form-urlencoded" in content:
            return {}
        try:
            body = json.loads(request.body)
        except ValueError:
            raise self.refusal(400, "invalid", "The body is not JSON.") from None
        if not isinstance(body, dict):
            raise self.refusal(400, "invalid", "The body is a JSON object.")
        return body

    # Parameters

    def text(self, body: Json, name: str, *, required: bool = True) -> str | None:
        """A text of a request. Raises Refused."""
        value: Any = body.get(name)
        if value is None and not required:
            return None
        if not isinstance(value, str) or not 0 < len(value) <= TEXT_LENGTH_MAX:
            raise self.refusal(422, "invalid", f"{name} is 1 to {TEXT_LENGTH_MAX} characters")
        return value

    def minor(self, body: Json, name: str = "amount") -> int:
        """An amount in the currency's smallest unit. Raises Refused."""
        value = body.get(name)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= AMOUNT_MAX:
            raise self.refusal(422, "invalid", f"{name} is a whole number up to {AMOUNT_MAX}")
        return value

    def whole(self, query: Mapping[str, str], name: str, *, most: int, usual: int) -> int:
        """A whole number of a query. Raises Refused."""
        value = query.get(name, str(usual))
        if not value.isdecimal() or int(value) > most:
            raise self.refusal(422, "invalid", f"{name} is a number up to {most}, not {value!r}")
        return int(value)

    def members(self, body: Json, name: str) -> Json:
        """An object inside a request, empty where there is none. Raises Refused."""
        value = body.get(name) or {}
        if not isinstance(value, dict):
            raise self.refusal(422, "invalid", f"{name} is an object")
        return value


class ListAnswer(Answer):
    """An answer whose whole body is a list: that of its one member."""

    @override
    def encoded(self) -> bytes:
        (items,) = self.body.values()
        return json.dumps(items, indent=2).encode()


def _body_or_empty(request: Request) -> Json:
    try:
        body = json.loads(request.body or b"{}")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}
