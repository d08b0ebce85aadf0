"""One request to the Stripe-shaped API, in the order in which Stripe looks at it.

Authentication, rate limit and parameter validation come before the idempotency layer and store
nothing. Then the key layer; then the execution, whose answer is stored with the key in the same
batch as its effect. Source: https://docs.stripe.com/api/idempotent_requests and
https://docs.stripe.com/error-low-level.
"""

import time
from dataclasses import dataclass
from typing import Final

from reconcile.sandbox.faults import Asked, ChosenFault, Fault
from reconcile.sandbox.provider import (
    accounts,
    errors,
    payouts,
    refunds,
    routes,
    steps,
    subscriptions,
)
from reconcile.sandbox.provider.context import Context, Execute, new_id
from reconcile.sandbox.provider.keys import KEY_LENGTH_MAX, Use
from reconcile.sandbox.provider.messages import Answer, Refused, Request
from reconcile.sandbox.provider.params import Params
from reconcile.sandbox.provider.scope import Caller, authenticate
from reconcile.sandbox.provider.store import Batch
from reconcile.sandbox.provider.updates import UPDATE_MARKER
from reconcile.sandbox.provider.world import World

_STEPS: Final = {
    payouts.TABLE: payouts.take_step,
    refunds.TABLE: refunds.take_step,
    subscriptions.TABLE: subscriptions.take_step,
}
"""By table, what an object of it does by itself."""
API_VERSION: Final = "2026-10-28.endive"
"""The version that the sandbox speaks; a request's Stripe-Version is echoed in its events."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Execution:
    """A request that passed every check before the key layer."""

    request: Request
    caller: Caller
    execute: Execute
    parameters: list[list[str]]
    request_id: str | None
    received_at: float
    cause: str

    @property
    def key(self) -> str | None:
        """The idempotency key; reads have none, whatever header they carry."""
        written = self.request.method == "POST"
        return (self.request.headers.get("idempotency-key") or None) if written else None


def describe(request: Request) -> Asked:
    """What the fault plan may know about this request."""
    found = routes.find(request.method, request.path)
    sent = Params.decode(request.form())
    return Asked(
        operation=found[0].operation if found else "unknown",
        is_write=request.method == "POST",
        idempotency_key=request.headers.get("idempotency-key"),
        marker=sent.text("metadata[counterfoil]") or sent.text(f"metadata[{UPDATE_MARKER}]"),
        api_version=request.headers.get("stripe-version"),
    )


def answer(world: World, request: Request, fault: ChosenFault, *, cause: str) -> Answer:
    """Answer one request. Blocks for the length of a delay, without holding a lock."""
    request_id = new_id("req")
    try:
        execution = _check(world, request, fault, request_id=request_id, cause=cause)
        given = _write(world, execution, fault) if execution.key else _run(world, execution, fault)
    except Refused as refusal:
        given = refusal.answer
    version = request.headers.get("stripe-version", API_VERSION)
    headers = {"Request-Id": request_id, "Stripe-Version": version, **given.headers}
    if request.method == "POST" and "idempotency-key" in request.headers:
        headers["Idempotency-Key"] = request.headers["idempotency-key"]
    return Answer(status=given.status, body=given.body, headers=headers)


def commit_late(world: World, request: Request, batch: Batch) -> None:
    """Apply a request that was answered with a 500 before. Nobody hears about it."""
    calm = ChosenFault(kind=Fault.NONE)
    try:
        execution = _check(world, request, calm, request_id=None, cause="late_commit")
        execution.execute(_context(world, execution, batch, declined=False))
    except Refused:
        # What it wanted to change is gone meanwhile; the 500 had no effect after all.
        return


def _check(
    world: World, request: Request, fault: ChosenFault, *, request_id: str | None, cause: str
) -> _Execution:
    """Everything that comes before the key layer. Raises Refused; none of it is stored."""
    received_at = world.clock.now()
    caller = authenticate(request.headers)
    if isinstance(caller, Answer):
        raise Refused(caller, stored=False)
    if not accounts.may_act(world.store, caller):
        raise Refused(errors.no_access(caller.account), stored=False)
    if request.method == "GET":
        _count_read(world, caller, received_at)
    if fault.kind is Fault.RATE_LIMIT_429:
        raise Refused(errors.too_many_requests(), stored=False)
    found = routes.find(request.method, request.path)
    if found is None:
        raise Refused(errors.unrecognized_url(request.method, request.path), stored=False)
    endpoint, ids = found
    if request.method != "GET" and not caller.may_write:
        raise Refused(errors.forbidden(), stored=False)
    if len(request.headers.get("idempotency-key", "")) > KEY_LENGTH_MAX:
        raise errors.invalid(f"Idempotency keys have at most {KEY_LENGTH_MAX} characters.")
    params = Params.decode(request.form())
    return _Execution(
        request=request,
        caller=caller,
        execute=endpoint.check(params, *ids),
        parameters=params.normalised(),
        request_id=request_id,
        received_at=received_at,
        cause=cause,
    )


def _count_read(world: World, caller: Caller, now: float) -> None:
    """One more read of this account. Raises Refused when it has used up what it may read."""
    world.reads.count(caller.scope, now)
    if world.reads.is_over(caller.scope, now):
        with world.store.lock:
            allowed = world.reads.of(caller.scope, now).allowed
        raise Refused(errors.reads_used_up(allowed), stored=False)


def _write(world: World, execution: _Execution, fault: ChosenFault) -> Answer:
    """A write with a key: replayed, turned away, or executed once and stored."""
    key = execution.key
    assert key is not None
    use = Use(
        scope=execution.caller.scope,
        key=key,
        endpoint=execution.request.path,
        parameters=execution.parameters,
        received_at=execution.received_at,
    )
    known = world.keys.begin(use)
    if known is not None:
        return known
    try:
        return _run(world, execution, fault, use)
    except Refused as refusal:
        if refusal.stored:
            with world.store.batch() as batch:
                world.keys.finish(use, refusal.answer, batch)
        raise
    finally:
        world.keys.leave(use)


def _run(world: World, execution: _Execution, fault: ChosenFault, use: Use | None = None) -> Answer:
    """Execute, and store the answer with the key in the same batch as the effect."""
    if fault.kind is Fault.DELAY:
        # The request is in flight meanwhile: the same key is answered with 409.
        time.sleep(fault.seconds)
    with world.store.batch() as batch:
        match fault.kind:
            case Fault.ERROR_500:
                given = errors.server_error()
            case Fault.ERROR_500_THEN_LATE_COMMIT:
                world.commit_later(batch, seconds=fault.seconds, request=execution.request)
                given = errors.server_error()
            case kind:
                ctx = _context(world, execution, batch, declined=kind is Fault.REFUSE_402)
                given = execution.execute(ctx)
        if use is not None:
            world.keys.finish(use, given, batch)
    return given


def _context(world: World, execution: _Execution, batch: Batch, *, declined: bool) -> Context:
    return Context(
        store=world.store,
        batch=batch,
        scope=execution.caller.scope,
        livemode=execution.caller.livemode,
        now=world.clock.now(),
        api_version=execution.request.headers.get("stripe-version", API_VERSION),
        request_id=execution.request_id,
        idempotency_key=execution.key,
        cause=execution.cause,
        declined=declined,
        search_lag_seconds=world.search_lag_seconds,
    )


def take_steps(world: World) -> None:
    """What happens to objects by themselves, where it is due: the bank's word, for example."""
    with world.store.lock:
        now = world.clock.now()
        due = list(world.store.table(steps.STEPS_TABLE).items())
        for object_id, step in due:
            if step["due_at"] <= now:
                with world.store.batch() as batch:
                    ctx = Context(
                        store=world.store,
                        batch=batch,
                        scope=step["scope"],
                        livemode=step["livemode"],
                        now=now,
                        api_version=API_VERSION,
                        request_id=None,
                        idempotency_key=None,
                        cause="by_itself",
                    )
                    _STEPS[step["table"]](ctx, object_id, step["course"])
