"""The ten faults of the acceptance matrix, each produced: what is decided, and what came of it."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Any, Final

import httpx2

from effects.client import Call, effect
from effects.core.failures import Failure, classify_exception
from effects.core.recovery import recover
from effects.core.recovery_messages import (
    EndpointContract,
    Received,
    RecoveryDecision,
    RecoveryRecord,
    RequestFailure,
    ResumeContract,
)
from effects.core.streams import Protocol, StreamReader, StreamRecord
from effects.core.vocabulary import Outcome
from reconcile.sandbox.faults import Fault
from reconcile.sandbox.tools import AGENT_STRIPE_KEY
from tests.effects.faulty_server import close_after_reading, closed_port, faulty
from tests.faultlab.agent import Job, Kind, Mishap, send
from tests.faultlab.lab import Scene
from tests.faultlab.rows import HTTP, NO_LEDGER, Section
from tests.support.model_server import ModelServer, Reply, model_server, refuses, says, wants

MATRIX: Final = Section("The acceptance matrix", "mission C10")
REFRESHES: Final = EndpointContract(supports_refresh=True)
RESUMES: Final = EndpointContract(resume=ResumeContract(kept_seconds=600))
NOW: Final = datetime(2026, 6, 1, 12, tzinfo=UTC)
ALONE: Final = (NO_LEDGER,)


def decided(
    record: RecoveryRecord,
    failure: RequestFailure | None = None,
    contract: EndpointContract | None = None,
) -> RecoveryDecision:
    return recover(record, failure or RequestFailure(), contract or EndpointContract(), NOW)


def failed_post(url: str) -> Failure:
    """How a request to a model's endpoint failed, as the client sorts it."""
    try:
        httpx2.post(f"{url}/v1/messages", json={}, timeout=2)
    except httpx2.HTTPError as error:
        return classify_exception(error)
    raise AssertionError("the answer came")


def as_request_failure(failure: Failure) -> RequestFailure:
    assert failure.outcome is not Outcome.COMPLETED, "an exception never proves an effect"
    return RequestFailure(
        outcome=failure.outcome,
        http_status=failure.http_status,
        retry_after_seconds=failure.retry_after_seconds,
        why=failure.why,
    )


def read(model: ModelServer) -> tuple[int, StreamRecord]:
    """The status of a streamed response, and what the response amounts to."""
    reader = StreamReader(Protocol.ANTHROPIC)
    body = {"model": "m", "max_tokens": 100, "stream": True, "messages": []}
    with httpx2.stream("POST", f"{model.url}/v1/messages", json=body) as response:
        for piece in response.iter_raw():
            reader.feed(piece)
    return response.status_code, reader.close()


def record_of(stream: StreamRecord, **more: Any) -> RecoveryRecord:
    return RecoveryRecord(terminal=stream.terminal, received=Received.PARTIAL, **more)


@MATRIX.row(
    "proven connect failure before transmission",
    ways=HTTP,
    step="bounded_send",
    effects=1,
    told=["not_executed", "completed"],
)
def never_transmitted(scene: Scene) -> dict[str, Any]:
    """A new send is allowed, of the model's request and of a tool."""
    nowhere = f"http://127.0.0.1:{closed_port()}"
    decision = decided(RecoveryRecord(), as_request_failure(failed_post(nowhere)))
    first, again = scene.ask(provider=nowhere), scene.ask()
    return {
        "step": str(decision.step),
        "effects": scene.effects,
        "told": [first.status, again.status],
    }


@MATRIX.row(
    "the connection closes after acceptance, before headers",
    ways=HTTP,
    step="preserve_partial_result_and_report",
    mechanism="none",
    requests=1,
    effects=1,
    told=["unknown", "unknown"],
)
def closed_before_headers(scene: Scene) -> dict[str, Any]:
    """Uncertainty is kept; nothing is replayed without a contract."""
    with faulty(close_after_reading) as server:
        decision = decided(RecoveryRecord(), as_request_failure(failed_post(server.url)))
        requests = len(server.requests)
    first, again = scene.ask(fault=Fault.DROP_AFTER_COMMIT), scene.ask()
    return {
        "step": str(decision.step),
        "mechanism": str(decision.mechanism),
        "requests": requests,
        "effects": scene.effects,
        "told": [first.status, again.status],
    }


@MATRIX.row(
    "token rejected while its cached expiry is in the future",
    ways=HTTP,
    step="bounded_refresh_then_reclassify",
    refreshes=1,
    effects=1,
    told=["completed"],
)
def rejected_before_its_expiry(scene: Scene) -> dict[str, Any]:
    """One refresh, whatever the cache says, then the same call under the same grant."""
    cached = {"token": "sk_test_", "expires_at": datetime.now(UTC).timestamp() + 3600}
    refreshed: list[str] = []

    def refresh() -> None:
        refreshed.append(str(cached["token"]))
        cached["token"] = AGENT_STRIPE_KEY

    @effect(
        scene.ledger,
        tool=Kind.CHARGE,
        effect_class="keyed_write",
        contract="stripe.v1",
        object_from="id",
    )
    def charge(call: Call, **_arguments: Any) -> Any:
        return call.with_one_refresh(
            lambda: send(
                scene.other(kind=Kind.CHARGE, credentials=str(cached["token"])),
                key=call.key,
                marker=call.marker,
            ),
            refresh,
        )

    told = charge(scene.job.at, **scene.job.arguments)
    rejected = RequestFailure(outcome=Outcome.REFUSED, http_status=401)
    return {
        "step": str(decided(RecoveryRecord(), rejected, REFRESHES).step),
        "refreshes": len(refreshed),
        "effects": scene.effects,
        "told": [told.status],
    }


PAYS: Final = wants(("transfer", {"amount": 1}))
CUT_IN_ARGUMENTS: Final = PAYS.but(cut_after=b"input_json_delta")


def _read_and_decided(reply: Reply) -> dict[str, Any]:
    with model_server(reply) as model:
        status, stream = read(model)
    decision = decided(record_of(stream))
    return {
        "status": status,
        "terminal": str(stream.terminal),
        "step": str(decision.step),
        "reason": str(decision.reason),
        "dispatchable": sum(call.dispatchable for call in stream.calls),
    }


@MATRIX.row(
    "an error event after HTTP 200",
    ways=ALONE,
    status=200,
    terminal="error_event",
    step="preserve_partial_result_and_report",
    reason="failed_in_stream",
    dispatchable=0,
)
def error_after_200(_: Scene) -> dict[str, Any]:
    return _read_and_decided(CUT_IN_ARGUMENTS.but(error="overloaded_error"))


@MATRIX.row(
    "the stream ends after a text delta",
    ways=ALONE,
    status=200,
    terminal="cut",
    step="preserve_partial_result_and_report",
    reason="interrupted",
    dispatchable=0,
    offered="continue",
)
def ends_after_text(_scene: Scene) -> dict[str, Any]:
    """What came is kept, and another generation is an offer, not a success."""
    reply = says("It is paid, and the receipt").but(cut_after=b"event: content_block_stop")
    with model_server(reply) as model:
        stream = read(model)[1]
    offered = decided(record_of(stream)).mechanism
    return {**_read_and_decided(reply), "offered": str(offered)}


@MATRIX.row(
    "crash after applying an event, before the cursor moved",
    ways=HTTP,
    effects=1,
    told=["completed", "completed"],
)
def crash_before_the_cursor(scene: Scene) -> dict[str, Any]:
    """The worker dies between the tool's report and its own progress; the event is delivered
    again."""
    died = scene.spawn(mishap=Mishap.KILLED_AFTER_REPORT)
    told = died.await_end()
    again = scene.spawn(delivery_count=2).await_end()
    return {"effects": scene.effects, "told": [told["status"], again["status"]]}


@MATRIX.row(
    "the tool commits, and its answer is lost",
    ways=HTTP,
    effects=1,
    told=["unknown", "unknown", "completed"],
)
def answer_lost(scene: Scene) -> dict[str, Any]:
    """Uncertain until somebody permits the same key; then it is the same effect."""
    charge: dict[str, Any] = {"kind": Kind.CHARGE}
    first = scene.ask(fault=Fault.DROP_AFTER_COMMIT, **charge)
    again = scene.ask(**charge)
    scene.release_with_same_key(first)
    then = scene.ask(**charge)
    return {"effects": scene.effects, "told": [first.status, again.status, then.status]}


@MATRIX.row(
    "crash before the server's operation id was received",
    ways=ALONE,
    step="preserve_partial_result_and_report",
    not_resumed="no_operation_id",
)
def no_operation_id(_: Scene) -> dict[str, Any]:
    """The client's own id opens no way to resume."""
    record = RecoveryRecord(client_operation_id="ours-1", background=True, stored=True)
    decision = decided(record, contract=RESUMES)
    return {"step": str(decision.step), "not_resumed": str(decision.not_resumed)}


@MATRIX.row(
    "one operation key with other parameters",
    ways=HTTP,
    effects=1,
    told=["completed", "mismatch"],
    provider=[200, 400],
)
def other_parameters(scene: Scene) -> dict[str, Any]:
    """The ledger refuses it, and so does the provider, that would be asked without one."""
    key = f"order-{scene.job.case}"
    ours: dict[str, Any] = {"caller_key": key, "kind": Kind.CHARGE}
    first, other = scene.ask(**ours), scene.ask(**ours, amount=1)
    assert scene.effects == 1
    statuses = []
    for amount in (2, 3):
        try:
            send(Job(**_plain(scene), amount=amount), key=key)
            statuses.append(200)
        except httpx2.HTTPStatusError as error:
            statuses.append(error.response.status_code)
    return {
        "effects": scene.effects - statuses.count(200),
        "told": [first.status, other.status],
        "provider": statuses,
    }


def _plain(scene: Scene) -> dict[str, Any]:
    job = scene.job
    return {"ledger": "", "token": "", "provider": job.provider, "case": job.case, "kind": "charge"}


@MATRIX.row(
    "the user cancels while a recovery timer is pending",
    ways=ALONE,
    before="bounded_send",
    after="preserve_partial_result_and_report",
    requests=1,
)
def cancelled_while_waiting(_: Scene) -> dict[str, Any]:
    """The timer asks again when it fires; a cancellation starts nothing."""
    with model_server(refuses(429, "rate_limit_error", **{"retry-after": "1"}), PAYS) as model:
        try:
            httpx2.post(f"{model.url}/v1/messages", json={}).raise_for_status()
        except httpx2.HTTPStatusError as error:
            turned_away = classify_exception(error)
        else:
            raise AssertionError("the model answered")
        failure = as_request_failure(turned_away)
        before = decided(RecoveryRecord(), failure)
        assert before.wait_seconds == 1
        cancelled, after = threading.Event(), []

        def on_timer() -> None:
            decision = decided(RecoveryRecord(cancelled=cancelled.is_set()), failure)
            after.append(decision.step)
            if decision.step == before.step:
                httpx2.post(f"{model.url}/v1/messages", json={})

        timer = threading.Timer(0.1, on_timer)
        timer.start()
        cancelled.set()
        timer.join()
        requests = len(model.requests)
    return {"before": str(before.step), "after": str(after[0]), "requests": requests}
