"""Workers that die or freeze for real, people who release, and what the provider did in the end."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from effects.core.vocabulary import ClaimState, Outcome, Verdict
from reconcile.sandbox.crew import pause
from reconcile.sandbox.faults import Fault
from reconcile.sandbox.jobs import Mishap
from reconcile.sandbox.jobs import Stage as Said
from reconcile.sandbox.tools import STORM_BOUNDS, ToolName
from tests.chaos.cells import cell
from tests.races.actors import Stage, a_stage
from tests.races.doomed import act_and_die

S = ClaimState
LEASE = STORM_BOUNDS.lease_seconds
WINDOW = STORM_BOUNDS.charge_window_seconds
MARGIN = STORM_BOUNDS.margin_seconds
ONE_EFFECT = "unknown at the lease's end; a release makes it one effect"


@pytest.fixture
def stage(tmp_path: Path, live_api: str) -> Iterator[Stage]:
    with a_stage(tmp_path / "provider", live_api) as stage:
        yield stage


def killed_between_answer_and_report(stage: Stage) -> None:
    fork = multiprocessing.get_context("forkserver")
    process = fork.Process(target=act_and_die, args=(stage.world, stage.job()))
    process.start()
    process.join(60)
    assert process.exitcode == -9


def kill(stage: Stage, mishap: Mishap) -> None:
    delivery = stage.deliver(mishap=mishap)
    delivery.await_end()
    assert delivery.was_killed


@pytest.mark.parametrize(
    ("mishap", "effects"),
    [
        pytest.param(
            Mishap.KILLED_BEFORE_SEND,
            0,
            id="between claim and send",
            marks=cell("agent", "kill -9", "granted, before send", ONE_EFFECT),
        ),
        pytest.param(
            Mishap.KILLED_AFTER_SEND,
            1,
            id="between send and answer",
            marks=cell("agent", "kill -9", "sent, before answer", ONE_EFFECT),
        ),
        pytest.param(
            None,
            1,
            id="between answer and report",
            marks=cell("agent", "kill -9", "answered, before settle", ONE_EFFECT),
        ),
    ],
)
def test_a_killed_worker_leaves_an_unknown_claim_and_a_release_makes_it_one_effect(
    stage: Stage, mishap: Mishap | None, effects: int
) -> None:
    if mishap is None:
        killed_between_answer_and_report(stage)
    else:
        kill(stage, mishap)
    assert len(stage.effects()) == effects
    assert stage.redeliver().last is not None
    assert len(stage.effects()) == effects, "a redelivery beside a live lease sends nothing"
    stage.time_passes(LEASE)
    assert stage.state() is S.UNKNOWN
    told = stage.redeliver().last
    assert told is not None
    assert told.status == "unknown"
    assert len(stage.effects()) == effects, "unknown is not permission"

    stage.decide(Verdict.RELEASE_SAME)
    told = stage.redeliver().last
    assert told is not None
    assert told.status == "completed"
    assert len(stage.effects()) == 1
    assert stage.state() is S.COMPLETED
    assert [attempt.outcome for attempt in stage.attempts] == [None, Outcome.COMPLETED]


def test_a_release_just_before_the_window_closes_still_uses_the_stored_answer(
    stage: Stage,
) -> None:
    kill(stage, Mishap.KILLED_AFTER_SEND)
    stage.time_passes(WINDOW - MARGIN - 20)
    stage.decide(Verdict.RELEASE_SAME)
    told = stage.redeliver().last
    assert told is not None
    assert told.status == "completed"
    assert len(stage.effects()) == 1
    assert stage.attempts[1].replayed is True


def test_a_release_that_the_window_overtakes_grants_nothing(stage: Stage) -> None:
    kill(stage, Mishap.KILLED_AFTER_SEND)
    stage.time_passes(WINDOW - MARGIN - 20)
    stage.decide(Verdict.RELEASE_SAME)
    stage.time_passes(20)
    told = stage.redeliver().last
    assert told is not None
    assert told.status == "expired_unanswered"
    assert len(stage.effects()) == 1


@cell("agent", "SIGSTOP, key", "granted, before send", "sends late with the same key: one effect")
def test_a_frozen_worker_and_its_successor_name_one_object_and_are_one_effect(
    stage: Stage,
) -> None:
    frozen = stage.deliver(mishap=Mishap.FROZEN_BEFORE_SEND)
    frozen.await_stage(Said.FROZEN)
    stage.time_passes(LEASE)
    stage.decide(Verdict.RELEASE_SAME)
    stage.redeliver()
    assert stage.state() is S.COMPLETED
    frozen.wake()
    frozen.await_end()
    assert len(stage.effects()) == 1
    assert stage.state() is S.COMPLETED
    objects = {attempt.object for attempt in stage.attempts}
    assert len(stage.attempts) == 2
    assert objects == {stage.claim.object}


@cell("agent", "SIGSTOP, no key", "granted, before send", "two effects are a conflict, never one")
def test_a_frozen_worker_and_its_successor_without_a_key_are_two_effects_and_a_conflict(
    stage: Stage,
) -> None:
    """The named decision allowed it: a release with a new key where there is no key at all."""
    frozen = stage.deliver(tool=ToolName.SEND_TRANSFER, mishap=Mishap.FROZEN_BEFORE_SEND)
    frozen.await_stage(Said.FROZEN)
    stage.time_passes(LEASE)
    stage.decide(Verdict.RELEASE_NEW)
    stage.redeliver(tool=ToolName.SEND_TRANSFER)
    assert stage.state() is S.COMPLETED
    frozen.wake()
    frozen.await_end()
    assert len(stage.effects()) == 2
    assert stage.state() is S.CONFLICTED
    assert len({attempt.object for attempt in stage.attempts}) == 2


@cell("agent", "SIGSTOP", "granted, before send", "wakes after its time: sends nothing")
def test_a_frozen_worker_that_wakes_too_late_to_check_sends_nothing(stage: Stage) -> None:
    frozen = stage.deliver(mishap=Mishap.FROZEN_BEFORE_CHECK)
    frozen.await_stage(Said.FROZEN)
    pause(LEASE + 0.5)  # real time: the client counts by its own clock
    frozen.wake()
    frozen.await_end()
    assert stage.effects() == []
    assert stage.state() is S.NOT_EXECUTED


UNKNOWN_NEVER_REFUSED = "the model is told unknown, never that it failed"


@pytest.mark.parametrize(
    ("fault", "seconds"),
    [
        pytest.param(
            Fault.ERROR_500_THEN_LATE_COMMIT,
            0.1,
            marks=cell("provider", "500, commits", "sent, before answer", UNKNOWN_NEVER_REFUSED),
        ),
        pytest.param(
            Fault.DROP_AFTER_COMMIT,
            None,
            marks=cell("provider", "commits, drops", "sent, before answer", UNKNOWN_NEVER_REFUSED),
        ),
        pytest.param(
            Fault.DELAY,
            1.0,
            marks=cell("provider", "black hole", "sent, before answer", UNKNOWN_NEVER_REFUSED),
        ),
    ],
)
def test_a_provider_that_does_the_work_and_does_not_say_so_is_unknown(
    stage: Stage, fault: Fault, seconds: float | None
) -> None:
    impatient = replace(stage, world=replace(stage.world, request_seconds_max=0.5))
    delivery = impatient.deliver(fault=fault, fault_seconds=seconds)
    delivery.await_end()
    assert delivery.last is not None
    assert delivery.last.status == "unknown"
    assert stage.state() is S.UNKNOWN
    told = stage.redeliver().last
    assert told is not None
    assert told.status == "unknown"
    pause(1)
    assert len(stage.effects()) == 1


@cell("provider", "commits, drops; 429 on replay", "sent, before answer", UNKNOWN_NEVER_REFUSED)
def test_a_replay_that_is_turned_away_proves_nothing_about_the_first_send(stage: Stage) -> None:
    stage.deliver(fault=Fault.DROP_AFTER_COMMIT).await_end()
    stage.decide(Verdict.RELEASE_SAME)
    told = stage.redeliver(fault=Fault.RATE_LIMIT_429, gives_up=True).last
    assert told is not None
    assert told.status == "unknown"
    assert (stage.state(), stage.claim.fence, len(stage.effects())) == (S.UNKNOWN, 2, 1)
