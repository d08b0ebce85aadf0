"""From a request to what goes back over the connection, faults of the line included."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from reconcile.sandbox.faults import FAULT_HEADER, Fault, PlanRefused
from reconcile.sandbox.provider import control, stripe_api
from reconcile.sandbox.provider.messages import Answer, Request
from reconcile.sandbox.provider.speaking import api_of
from reconcile.sandbox.provider.world import LATE_TABLE, World

_AFTER_THE_FACT: Final = {Fault.DROP_AFTER_COMMIT: "dropped", Fault.CUT_MID_BODY: "cut"}


class Line(StrEnum):
    """What the connection does with an answer."""

    WHOLE = "whole"
    CUT = "cut"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """An answer, or None if nothing at all goes back, and what the connection does with it."""

    answer: Answer | None
    line: Line


def serve(world: World, request: Request) -> Delivery:
    """Answer one request and say how much of the answer the caller gets to see."""
    if request.path.startswith("/_sandbox"):
        commit_due(world)
        return Delivery(answer=control.answer(world, request), line=Line.WHOLE)
    api = api_of(request.path)
    asked = replace(api.describe(request), fault_header=request.headers.get(FAULT_HEADER))
    try:
        fault = world.choose_fault(asked)
    except PlanRefused as refusal:
        body = {"error": {"type": "sandbox_error", "message": str(refusal)}}
        return Delivery(answer=Answer(status=400, body=body), line=Line.WHOLE)
    commit_due(world)
    if fault.kind is Fault.DROP_BEFORE:
        world.note(asked, fault.kind, status=None, outcome="dropped before anything was applied")
        return Delivery(answer=None, line=Line.DROPPED)
    given = api.answer(world, request, fault, cause="request")
    if fault.kind is Fault.GATEWAY_DUPLICATE:
        # The caller sees the answer to the second copy, as behind a real proxy that retried.
        given = api.answer(world, request, fault, cause="gateway_duplicate")
    line = Line(_AFTER_THE_FACT.get(fault.kind, Line.WHOLE))
    replayed = ", replayed" if given.replayed else ""
    world.note(asked, fault.kind, status=given.status, outcome=f"{line}{replayed}")
    return Delivery(answer=given, line=line)


def commit_due(world: World) -> None:
    """Apply every late commit, and what else happens by itself, whose time has come, each once."""
    stripe_api.take_steps(world)
    with world.store.lock:
        for key, request in world.due_late_commits():
            with world.store.batch() as batch:
                batch.remove(LATE_TABLE, key)
                api_of(request.path).commit_late(world, request, batch)
