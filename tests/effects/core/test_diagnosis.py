"""Each fingerprint alone and against the gap, and the laws of the diagnosis."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from effects.core.diagnosis import (
    Constants,
    Execution,
    GatewayRecord,
    Group,
    Layer,
    Source,
    Upstream,
    diagnose,
    diagnose_pair,
)
from effects.core.diagnosis.decide import EXECUTIONS_MAX
from effects.core.diagnosis.evidence import Pair
from effects.core.diagnosis.layers import LAYERS

NOW = datetime(2026, 3, 2, 10, tzinfo=UTC)
SDK, GATEWAY, STEP = Layer.SDK_RETRY, Layer.GATEWAY_RETRY, Layer.STEP_RETRY
QUEUE, MODEL, NONE = Layer.QUEUE_REDELIVERY, Layer.MODEL_REEMISSION, Layer.NONE


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def run(name: str, seconds: float = 0, **said: Any) -> Execution:
    """The application asks for the same place of the same turn."""
    here: dict[str, Any] = {"conversation": "c", "turn_index": 1, "position": 0, "tracked": True}
    return Execution(name=name, at=after(seconds), **(here | said))


def request(name: str, seconds: float = 0, **said: Any) -> Execution:
    return Execution(
        name=name, at=after(seconds), source=Source.PROVIDER, request_id=name, body="b", **said
    )


def told(*executions: Execution, gateway: tuple[GatewayRecord, ...] = ()) -> Any:
    (one,) = diagnose(Group(executions=executions, gateway=gateway)).pairs
    return one


SAME_CALL: dict[str, Any] = {"call_id": "call_1"}

APPLICATION = [
    # first, second, seconds between them, layer, what must be named
    ({"delivery_count": 1}, {"delivery_count": 2}, 300, QUEUE, {"delivery_count"}),
    ({"delivery_count": 1}, {"delivery_count": 2}, 1, QUEUE, {"delivery_count"}),
    ({"delivery_count": 2}, {"delivery_count": 2}, 40, STEP, {"same_delivery_count"}),
    ({}, {"delivery_count": 1}, 40, STEP, {"first_delivery"}),
    ({"retry_count": 0}, {"retry_count": 1}, 190, STEP, {"retry_count_of_the_job"}),
    ({"worker": "a"}, {"worker": "b"}, 190, QUEUE, {"worker_changed"}),
    ({}, {"resumed": True}, 190, STEP, {"resumed_after_interrupt"}),
    ({}, {}, 4, STEP, {"gap"}),
    ({}, {}, 49 * 3600, STEP, {"gap"}),
    ({}, {"call_id": "call_9"}, 4, STEP, {"same_turn"}),
    ({}, {"turn_index": 2, "call_id": "call_2"}, 41, MODEL, {"prior_outcome_open"}),
    ({"turn_index": 0}, {"meant": True, "call_id": "c2"}, 41, NONE, {"named_as_a_repeat"}),
]


@pytest.mark.parametrize(("one", "other", "gap", "layer", "names"), APPLICATION)
def test_a_fingerprint_of_the_application_leads_to_a_layer(
    one: dict[str, Any], other: dict[str, Any], gap: float, layer: Layer, names: set[str]
) -> None:
    found = told(run("a", **(SAME_CALL | one)), run("b", gap, **(SAME_CALL | other)))
    assert (found.layer, found.candidates, found.missing) == (layer, (), ())
    assert names <= set(found.decided_by)


def test_a_delivery_count_outweighs_the_gap_and_the_answer_says_what_speaks_against_it() -> None:
    found = told(run("a", delivery_count=1), run("b", 1, delivery_count=2))
    assert (found.layer, found.against) == (QUEUE, ("gap",))


def test_a_run_that_another_worker_takes_up_from_the_same_checkpoint_was_handed_out_again() -> None:
    here: dict[str, Any] = {"checkpoint": "ck", "call_id": "call_7"}
    found = told(run("a", worker="r1", **here), run("b", 182, worker="r2", **here))
    assert found.layer is QUEUE
    assert {"worker_changed", "same_checkpoint", "same_tool_call_id"} <= set(found.decided_by)


def test_three_minutes_alone_are_a_timeout_as_well_as_a_sweep() -> None:
    found = told(run("a", **SAME_CALL), run("b", 182, **SAME_CALL))
    assert (found.layer, found.candidates) == (Layer.UNDETERMINED, (STEP, QUEUE))
    assert {"delivery_count", "worker", "checkpoint"} <= set(found.missing)


MEANT = [
    # settled after, the user spoke, the layers that are left
    (1, True, {NONE}),
    (1, None, {MODEL, NONE}),
    (1, False, {MODEL, NONE}),
    (None, None, {MODEL}),
    (None, False, {MODEL}),
    (None, True, {MODEL, NONE}),
]


@pytest.mark.parametrize(("settled", "spoke", "left"), MEANT)
def test_two_calls_of_the_model_are_both_meant_if_the_first_was_settled_and_the_user_spoke(
    *, settled: float | None, spoke: bool | None, left: set[Layer]
) -> None:
    first = run("a", settled_at=None if settled is None else after(settled), call_id="1")
    found = told(first, run("b", 540, turn_index=6, call_id="2", user_spoke=spoke))
    assert (set(found.candidates) or {found.layer}) == left


def test_an_outcome_that_became_known_after_the_second_call_was_open_before_it() -> None:
    first = run("a", settled_at=after(600), call_id="1")
    found = told(first, run("b", 540, turn_index=6, call_id="2", user_spoke=True))
    assert found.layer is Layer.UNDETERMINED


def test_an_id_that_comes_again_in_another_turn_is_no_identity() -> None:
    found = told(run("a", call_id="pay"), run("b", 60, call_id="pay", turn_index=2))
    assert found.layer is MODEL


WIRE = [
    ({"client_request_id": "1"}, {"client_request_id": "1"}, 1, {SDK}),
    ({"retry_count": 0}, {"retry_count": 1}, 1, {SDK}),
    ({"retry_count": 1}, {"retry_count": 1}, 1, {GATEWAY}),
    ({}, {"body": "other"}, 1, set()),  # one attempt, and not one request: a contradiction
    ({}, {}, 1, {SDK, GATEWAY}),
    ({}, {}, 70, {SDK}),  # longer than a gateway waits, within a client's timeout
    ({"key": "k", "key_seen": True}, {"key": "k", "key_seen": True}, 1, {SDK, GATEWAY}),
]


@pytest.mark.parametrize(("one", "other", "gap", "left"), WIRE)
def test_requests_of_one_attempt_are_a_librarys_or_a_gateways(
    one: dict[str, Any], other: dict[str, Any], gap: float, left: set[Layer]
) -> None:
    first, second = request("r1", **one), replace(request("r2", gap), **other)
    found = told(run("a", -1), first, second)
    answer = set(found.candidates) if found.layer is Layer.UNDETERMINED else {found.layer}
    assert answer == left
    assert bool(found.against) == (not left)


def log(*seconds: float) -> GatewayRecord:
    upstreams = tuple(Upstream(host=f"u{n}", at=after(at)) for n, at in enumerate(seconds))
    return GatewayRecord(request_id="gw", at=after(seconds[0]), upstreams=upstreams)


GATEWAYS = [
    ((log(0, 1.1),), None, GATEWAY, {"gateway_log"}),
    ((log(0, 60.0),), None, Layer.UNDETERMINED, set()),  # its second try is another one
    ((log(0), log(1.1)), None, SDK, {"gateway_log"}),
    ((), 1, GATEWAY, {"http_requests_sent"}),
    ((), 2, SDK, {"http_requests_sent"}),
    ((), None, Layer.UNDETERMINED, set()),
]


@pytest.mark.parametrize(("gateway", "sent", "layer", "names"), GATEWAYS)
def test_a_gateways_log_and_the_number_of_requests_sent_tell_a_gateway_from_a_library(
    gateway: tuple[GatewayRecord, ...], sent: int | None, layer: Layer, names: set[str]
) -> None:
    attempt = run("a", -1, requests_sent=sent)
    found = told(attempt, request("r1", 0.2), request("r2", 1.2), gateway=gateway)
    assert found.layer is layer
    assert names <= set(found.decided_by)
    assert bool(found.missing) == (layer is Layer.UNDETERMINED)


def test_a_gateway_passes_the_librarys_id_on_so_its_own_log_outweighs_the_id() -> None:
    known = {"client_request_id": "1"}
    found = told(request("r1", 0.2, **known), request("r2", 1.2, **known), gateway=(log(0, 1.1),))
    assert (found.layer, found.against) == (GATEWAY, ("same_client_request_id",))


def test_two_layers_that_fit_a_gap_are_never_one_answer() -> None:
    first, second = request("r1"), request("r2", 35)
    found = diagnose(Group(executions=(first, second))).pairs[0]
    assert found.layer is Layer.UNDETERMINED
    assert set(found.candidates) == LAYERS


def test_a_tenant_without_a_queue_has_no_redeliveries_by_time() -> None:
    group = Group(executions=(run("a", **SAME_CALL), run("b", 182, **SAME_CALL)))
    assert diagnose(group, Constants(redelivery=())).pairs[0].layer is STEP
    assert diagnose(group, Constants(redelivery=(170.0,))).pairs[0].layer is Layer.UNDETERMINED


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 1e9])
def test_a_constant_that_is_no_time_is_refused(seconds: float) -> None:
    with pytest.raises(ValidationError):
        Constants(client_timeout=seconds)


# Numbers


def test_operations_attempts_and_requests_are_three_numbers() -> None:
    call = {"call_id": "call_1", "key_seen": True}
    found = diagnose(
        Group(
            executions=(
                Execution(name="a1", at=after(0)),
                Execution(name="a2", at=after(20)),
                request("r0", 0.1, client_request_id="1", **call),
                request("r1", 1.0, client_request_id="1", **call),
                request("r2", 2.6, client_request_id="1", **call),
                request("r3", 20.1, client_request_id="2", **call),
                request("r4", 21.0, client_request_id="2", **call),
            )
        )
    )
    assert (found.operations, found.app_attempts, found.provider_requests) == (1, 2, 5)
    assert [pair.layer for pair in found.pairs] == [SDK, SDK, STEP, SDK]
    assert "another_attempt" not in found.pairs[0].decided_by


def test_one_line_of_a_log_that_was_imported_twice_is_one_request() -> None:
    twice = replace(request("r1"), name="again")
    found = diagnose(Group(executions=(request("r1"), twice)))
    assert (found.provider_requests, found.pairs) == (1, ())


def test_a_request_near_the_begin_of_an_attempt_belongs_to_none_by_its_time() -> None:
    soon = (run("a1"), run("a2", 10), request("r1", 1), request("r2", 9.5))
    assert "another_attempt" not in told(*soon).decided_by
    assert "attempts_of_the_application" in told(*soon).missing


def test_more_executions_than_the_limit_are_refused_by_its_name() -> None:
    many = tuple(request(f"r{n}", n) for n in range(EXECUTIONS_MAX + 1))
    with pytest.raises(ValueError, match="EXECUTIONS_MAX"):
        diagnose(Group(executions=many))


def test_a_pair_in_the_wrong_order_is_refused() -> None:
    with pytest.raises(ValueError, match="before"):
        diagnose_pair(Pair(first=run("a", 1), second=run("b", 0)))


# Laws

words = st.sampled_from(["x", "y"])
counts = st.sampled_from([0, 1, 2])
gaps = st.sampled_from([0.2, 1.0, 4.0, 20.0, 31.0, 70.0, 182.0, 2000.0, 49 * 3600.0])
REMOVABLE = tuple(one.name for one in fields(Execution) if one.name not in {"name", "at", "source"})
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "turn_index": counts,
    "position": counts,
    "delivery_count": counts,
    "retry_count": counts,
    "requests_sent": counts,
    "settled_at": st.sampled_from([NOW, NOW + timedelta(days=9)]),
    **dict.fromkeys(
        ("key_seen", "rerun_after_error", "resumed", "tracked", "user_spoke", "meant"),
        st.booleans(),
    ),
}


@st.composite
def executions(draw: st.DrawFn, *, name: str, at: datetime, source: Source) -> Execution:
    """An execution of which a few things are known."""
    known = draw(st.sets(st.sampled_from(REMOVABLE), max_size=5))
    return _execution(draw, name=name, at=at, source=source, known=known)


def _execution(
    draw: st.DrawFn, *, name: str, at: datetime, source: Source, known: set[str]
) -> Execution:
    said: dict[str, Any] = {member: draw(VALUES.get(member, words)) for member in sorted(known)}
    return Execution(name=name, at=at, source=source, **said)


@st.composite
def pairs(draw: st.DrawFn) -> Pair:
    """Two executions of which the same few things are known, as one source tells them."""
    source, gap = draw(st.sampled_from(Source)), draw(gaps)
    known = draw(st.sets(st.sampled_from(REMOVABLE), max_size=5))
    return Pair(
        first=_execution(draw, name="a", at=NOW, source=source, known=known),
        second=_execution(draw, name="b", at=after(gap), source=source, known=known),
        attempts=draw(st.sampled_from([(None, None), ("x", "x"), ("x", "y")])),
        requests_sent=draw(st.sampled_from([None, 1, 2])),
        requests=2,
        gateway=draw(st.sampled_from([(), (log(0, gap),), (log(0), log(gap))])),
    )


def without(pair: Pair, member: str, *, second: bool) -> Pair:
    """The pair with one thing less that is known."""
    one = pair.second if second else pair.first
    unknown: Any = {member: False if member in {"tracked", "key_seen"} else None}
    less = replace(one, **unknown)
    return replace(pair, second=less) if second else replace(pair, first=less)


lawful = settings(deadline=None, max_examples=400)


@lawful
@given(pair=pairs(), member=st.sampled_from(REMOVABLE), second=st.booleans())
def test_an_answer_that_nothing_speaks_against_never_becomes_another_one_with_less_evidence(
    *, pair: Pair, member: str, second: bool
) -> None:
    answer = diagnose_pair(pair)
    if answer.layer is Layer.UNDETERMINED or answer.against:
        return
    event(answer.layer)
    less = diagnose_pair(without(pair, member, second=second))
    assert less.layer in {answer.layer, Layer.UNDETERMINED}


@lawful
@given(pairs())
def test_an_answer_that_nothing_speaks_against_never_becomes_another_one_without_its_surroundings(
    pair: Pair,
) -> None:
    answer = diagnose_pair(pair)
    if answer.layer is Layer.UNDETERMINED or answer.against:
        return
    for less in (
        replace(pair, gateway=()),
        replace(pair, attempts=(None, None)),
        replace(pair, requests_sent=None),
    ):
        assert diagnose_pair(less).layer in {answer.layer, Layer.UNDETERMINED}


@lawful
@given(pairs())
def test_an_answer_names_what_decided_and_an_open_one_its_candidates(pair: Pair) -> None:
    found = diagnose_pair(pair)
    if found.layer is Layer.UNDETERMINED:
        assert found.decided_by == ()
        assert len(found.candidates) > 1 or (not found.candidates and found.against)
    else:
        assert found.decided_by
        assert found.candidates == ()


@lawful
@given(gaps, st.sampled_from(Source))
def test_a_gap_alone_never_gives_one_answer(gap: float, source: Source) -> None:
    pair = Pair(
        first=Execution(name="a", at=NOW, source=source),
        second=Execution(name="b", at=after(gap), source=source),
    )
    assert diagnose_pair(pair).layer is Layer.UNDETERMINED


@lawful
@given(st.data())
def test_the_order_in_which_evidence_comes_changes_nothing(data: st.DataObject) -> None:
    sources = data.draw(st.lists(st.sampled_from(Source), min_size=2, max_size=5))
    times = data.draw(st.lists(gaps, min_size=len(sources), max_size=len(sources)))
    seen = [
        data.draw(executions(name=f"e{n}", at=after(at), source=source))
        for n, (source, at) in enumerate(zip(sources, times, strict=True))
    ]
    logs = (log(0, 1.0), log(4.0))
    shuffled = tuple(data.draw(st.permutations(seen)))
    one = diagnose(Group(executions=tuple(seen), gateway=logs))
    assert diagnose(Group(executions=shuffled, gateway=logs[::-1])) == one
