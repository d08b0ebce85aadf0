"""What the cases about duplicates say for people, asserted point by point."""

from __future__ import annotations

import json
from typing import Any

import pytest

from effects.core.diagnosis import Diagnosis, GroupDiagnosis, Layer
from effects.core.vocabulary import AnswerCode
from tests.cases import classify
from tests.cases.at_hand import the_case
from tests.cases.bank import understand
from tests.cases.history import History
from tests.cases.judge import Verdict, judge

pytestmark = pytest.mark.django_db


def diagnosed(case_id: str) -> GroupDiagnosis:
    return classify.diagnosed(the_case(case_id).input["evidence"])


def played(case_id: str) -> History:
    given = the_case(case_id).input
    history = History(policy=given.get("policy", {}))
    history.play(classify.living(list(given["events"])))
    return history


def pairs(history: History, name: str) -> tuple[Diagnosis, ...]:
    return classify.pairs_of(history, name)


@pytest.mark.case("D01")
def test_every_pair_of_neighbours_is_judged_and_no_label_stands_for_all() -> None:
    found = diagnosed("D01")
    assert [one.between for one in found.pairs] == [
        ("req_0", "req_1"),
        ("req_1", "req_2"),
        ("req_2", "req_3"),
        ("req_3", "req_4"),
    ]
    assert len({one.layer for one in found.pairs}) > 1
    assert not any("same_key" in one.decided_by for one in found.pairs)


@pytest.mark.case("D02")
def test_what_decided_is_named_and_two_explanations_are_not_one() -> None:
    (pair,) = diagnosed("D02").pairs
    assert {"gateway_log"} <= set(pair.decided_by) or {"http_requests_sent"} <= set(pair.decided_by)
    evidence = [
        {name: said for name, said in one.items() if name != "http_requests_sent"}
        for one in the_case("D02").input["evidence"]
        if one["source"] != "gateway_log"
    ]
    (bare,) = classify.diagnosed(evidence).pairs
    assert (bare.layer, bare.decided_by) == (Layer.UNDETERMINED, ())
    assert {"gateway_log", "http_requests_sent", "retry_count_header"} <= set(bare.missing)


@pytest.mark.case("D04")
def test_later_deliveries_learn_that_an_attempt_is_running_and_the_count_decides() -> None:
    history = played("D04")
    assert [history.answers[name].code for name in ("e3", "e4")] == [AnswerCode.IN_FLIGHT] * 2
    for one in pairs(history, "e1"):
        assert (one.layer, one.decided_by) == (Layer.QUEUE_REDELIVERY, ("delivery_count",))


@pytest.mark.case("D05")
def test_three_minutes_near_a_timeout_are_not_enough_for_a_retry_of_the_step() -> None:
    (pair,) = pairs(played("D05"), "e1")
    assert "gap" not in pair.decided_by


@pytest.mark.case("D06", "S24")
@pytest.mark.parametrize(("case_id", "gaps"), [("D06", [176_400, 9]), ("S24", [4])])
def test_a_gap_in_no_band_leaves_what_has_no_longest_gap(case_id: str, gaps: list[int]) -> None:
    found = pairs(played(case_id), "e1")
    assert [one.gap_seconds for one in found] == gaps
    assert {one.layer for one in found} == {Layer.STEP_RETRY}


@pytest.mark.case("D10")
def test_a_repeat_by_another_agent_is_held_before_it_runs_and_stays_a_call_of_its_own() -> None:
    history = played("D10")
    assert history.answers["e4"].code is AnswerCode.HELD
    assert history.duplicates() == {}
    (pair,) = pairs(history, "e1")
    assert {"other_turn", "agent_changed", "prior_outcome_open"} & set(pair.decided_by)


@pytest.mark.case("D11")
def test_a_second_payment_that_the_user_asked_for_is_granted_and_called_meant() -> None:
    history = played("D11")
    assert history.answers["e4"].code is AnswerCode.GRANTED
    (pair,) = pairs(history, "e1")
    assert pair.layer is Layer.NONE
    assert {"prior_outcome_known", "user_message_between"} <= set(pair.decided_by)


# Cases that nobody wrote yet


def verdict(case_id: str, **changes: Any) -> Verdict:
    """The case with members of its input or its expectation replaced."""
    case = the_case(case_id)
    given, expected = dict(case.input), dict(case.expected)
    for place, value in changes.items():
        (given if place in given else expected)[place] = value
    said = {"id": "new", "kind": case.kind, "input": given, "expected": expected}
    return judge(understand(json.loads(json.dumps(said))))


def events_with(case_id: str, **changes: dict[str, Any]) -> list[Any]:
    return [one | changes.get(one["event_id"], {}) for one in the_case(case_id).input["events"]]


def test_a_wrong_layer_fails_with_the_place() -> None:
    wrong = {"pair": ["e1", "e4"], "layer": "model_reemission"}
    failure, in_batches = verdict("D11", classification=wrong).failures
    assert in_batches.startswith("in batches: ")
    assert "expected.classification.layer: expected model_reemission, got none" in failure


def test_a_layer_that_is_none_is_refused() -> None:
    (failure,) = verdict("D02", layer="network").failures
    assert "'network' is no layer" in failure


def test_a_pair_that_is_none_is_no_pair() -> None:
    (failure,) = verdict("D01", pairs=[{"between": ["req_0", "req_3"], "layer": "none"}]).failures
    assert "no pair of neighbours" in failure


@pytest.mark.parametrize("word", ["operations", "app_attempts", "provider_requests"])
def test_a_number_that_is_wrong_fails(word: str) -> None:
    assert not verdict("D01", **{word: 9}).passed


def test_a_count_outweighs_a_gap_that_fits_no_queue() -> None:
    events = events_with("D04", e3={"occurred_at": "2026-03-02T10:00:02Z"})
    assert verdict("D04", events=events).failures == ()


def test_a_later_call_without_a_word_of_the_user_is_not_called_meant() -> None:
    events = events_with("D11", e4={"user_message_between": None})
    events = [{name: said for name, said in e.items() if said is not None} for e in events]
    failure, _ = verdict("D11", events=events).failures
    assert "got undetermined" in failure


def test_a_gateway_that_came_twice_is_a_librarys_retry() -> None:
    evidence = the_case("D02").input["evidence"]
    app, log, *requests = json.loads(json.dumps(evidence))
    app["http_requests_sent"] = 2
    logs = [
        log | {"request_id": f"gw_{n}", "upstreams": [one]}
        for n, one in enumerate(log["upstreams"])
    ]
    assert verdict("D02", evidence=[app, *logs, *requests], layer="sdk_retry").failures == ()


def test_a_librarys_own_count_in_its_headers_decides_without_a_gateways_log() -> None:
    app, _, *requests = json.loads(json.dumps(the_case("D02").input["evidence"]))
    app.pop("http_requests_sent")
    counted = [
        one | {"headers": {"X-Stainless-Retry-Count": str(n)}} for n, one in enumerate(requests)
    ]
    (pair,) = classify.diagnosed([app, *counted]).pairs
    assert (pair.layer, pair.decided_by) == (Layer.SDK_RETRY, ("retry_count_header",))


def test_evidence_in_another_order_is_the_same_case() -> None:
    for case_id in ("D01", "D02"):
        evidence = list(the_case(case_id).input["evidence"])[::-1]
        assert verdict(case_id, evidence=evidence).failures == ()


@pytest.mark.parametrize(
    "record",
    [
        {"source": "rumour"},
        {"source": "app", "kind": "guess", "attempt_id": "a", "at": "2026-03-02T10:00:00Z"},
        {"source": "app", "attempt_id": "a", "at": "yesterday"},
        {"source": "app", "attempt_id": "a", "at": "2026-03-02T10:00:00Z", "mood": "good"},
    ],
)
def test_evidence_that_cannot_be_read_fails_with_its_place(record: dict[str, Any]) -> None:
    (failure,) = verdict("D01", evidence=[record]).failures
    assert failure.startswith("input.evidence[0]")
