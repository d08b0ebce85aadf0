"""Ten probes that every rival was put to: how often does the effect happen, what is then said, and
is a truth that comes late kept?"""

from __future__ import annotations

from typing import Any, Final

from effects.client import Effect
from reconcile.sandbox.faults import Fault
from tests.effects.faulty_server import closed_port
from tests.faultlab.agent import Mishap
from tests.faultlab.lab import Scene
from tests.faultlab.rows import BOTH, Section

PROBES: Final = Section("Probes of the rivals", "peers A3")


def told(scene: Scene, *effects: Effect | dict[str, Any]) -> dict[str, Any]:
    """What the provider counted, and what the model was told, call by call."""
    words = [one["status"] if isinstance(one, dict) else one.status for one in effects]
    return {"effects": scene.effects, "told": words}


@PROBES.row("duplicate after success", ways=BOTH, effects=1, told=["completed"] * 2, same=True)
def duplicate_after_success(scene: Scene) -> dict[str, Any]:
    first, again = scene.ask(), scene.ask()
    return {**told(scene, first, again), "same": first.result == again.result}


@PROBES.row("two processes race", ways=BOTH, effects=1, told=["completed", "in_flight"])
def two_processes_race(scene: Scene) -> dict[str, Any]:
    racers = [scene.spawn(fault=f"{Fault.DELAY}=0.7") for _ in range(2)]
    ends = sorted((racer.await_end() for racer in racers), key=lambda end: str(end["status"]))
    return told(scene, *ends)


@PROBES.row("kill -9, asked again at once", ways=BOTH, effects=1, told=["in_flight"])
def killed_and_asked_at_once(scene: Scene) -> dict[str, Any]:
    scene.spawn(mishap=Mishap.KILLED).await_answered()
    return told(scene, scene.ask())


@PROBES.row("kill -9, asked again after the lease", ways=BOTH, effects=1, told=["unknown"])
def killed_and_asked_after_the_lease(scene: Scene) -> dict[str, Any]:
    scene.spawn(mishap=Mishap.KILLED).await_answered()
    scene.lease_passes()
    return told(scene, scene.ask())


@PROBES.row("builtin TimeoutError, asked again", ways=BOTH, effects=1, told=["unknown"] * 2)
def builtin_timeout(scene: Scene) -> dict[str, Any]:
    return told(scene, scene.ask(mishap=Mishap.TIMED_OUT), scene.ask())


@PROBES.row("reset or cut after dispatch, asked again", ways=BOTH, effects=1, told=["unknown"] * 4)
def reset_or_cut_after_dispatch(scene: Scene) -> dict[str, Any]:
    """Two operations; what counts is the one that happened more often."""
    ends: list[Effect] = []
    effects: list[int] = []
    for fault in (Fault.DROP_AFTER_COMMIT, Fault.CUT_MID_BODY):
        case = f"{scene.job.case}-{fault}"
        operation = {"case": case, "conversation": case, "amount": 100 + len(effects)}
        ends += [scene.ask(fault=fault, **operation), scene.ask(**operation)]
        effects.append(len(scene.done_in(case)))
    return {**told(scene, *ends), "effects": max(effects)}


@PROBES.row(
    "definite failure before dispatch, asked again",
    ways=BOTH,
    effects=1,
    told=["not_executed", "completed"],
)
def definite_failure(scene: Scene) -> dict[str, Any]:
    nowhere = f"http://127.0.0.1:{closed_port()}"
    return told(scene, scene.ask(provider=nowhere), scene.ask())


@PROBES.row(
    "it happened, and its result is no JSON",
    ways=BOTH,
    effects=1,
    told=["completed"] * 2,
    result_stored=False,
)
def result_is_no_json(scene: Scene) -> dict[str, Any]:
    first, again = scene.ask(mishap=Mishap.NO_JSON), scene.ask()
    assert again.answer is not None
    return {**told(scene, first, again), "result_stored": again.answer.result_stored}


@PROBES.row(
    "owner frozen past its lease, second worker",
    ways=BOTH,
    effects=1,
    told=["unknown", "completed", "completed"],
    late_truth="kept",
)
def frozen_owner(scene: Scene) -> dict[str, Any]:
    owner = scene.spawn(mishap=Mishap.FROZEN)
    owner.await_answered()
    scene.lease_passes()
    second = scene.ask()
    owner.wake()
    late, third = owner.await_end(), scene.ask()
    (done,) = scene.done
    kept = third.answer is not None and third.answer.provider_object == done["object_id"]
    return {**told(scene, second, late, third), "late_truth": "kept" if kept else "lost"}


@PROBES.row("then the owner fails late, third call", ways=BOTH, effects=1, told=["unknown"] * 3)
def frozen_owner_that_fails(scene: Scene) -> dict[str, Any]:
    owner = scene.spawn(mishap=Mishap.FROZEN_AND_FAILED)
    owner.await_answered()
    scene.lease_passes()
    second = scene.ask()
    owner.wake()
    return told(scene, second, owner.await_end(), scene.ask())
