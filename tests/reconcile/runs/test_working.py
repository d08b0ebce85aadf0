"""A run, from what was chosen to what became of each call: real ledger, real SDK, real provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection

from effects.core.vocabulary import ClaimState, SightingWord
from effects.models import Tool, Workspace
from ledger import append, queries
from reconcile import investigate, pace
from reconcile.adapters.base import Lookup, Probe, Scan
from reconcile.investigate import OUTDATED
from reconcile.lookups import LOOKUPS
from reconcile.models import Run, RunItem
from reconcile.runs import making, recording, working
from reconcile.runs.making import CannotStart, NewRun, Scope
from tests.reconcile.finding_out import CHARGE, WORKING_SECONDS, Shop
from tests.reconcile.runs.conftest import Runs
from tests.support.desk import a_person

pytestmark = pytest.mark.django_db(transaction=True)

SHARED = 150
"""Calls of one account. Each page of the provider's list has a hundred."""

type Many = Callable[[Sequence[Probe]], Scan]


def reading_with(monkeypatch: pytest.MonkeyPatch, way: Callable[..., Scan]) -> None:
    """Every shared reading goes through `way`, which has the real one."""

    def wrapped(lookup: Lookup) -> Lookup:
        many = lookup.look_many
        return replace(lookup, look_many=partial(way, many=many)) if many else lookup

    through = {kind: wrapped(lookup) for kind, lookup in LOOKUPS.items()}
    monkeypatch.setattr(investigate, "LOOKUPS", through)


# Shared readings


def test_one_reading_answers_every_call_of_an_account_and_each_is_recorded(
    shop: Shop, runs: Runs
) -> None:
    lost = [runs.lost() for _ in range(SHARED // 10)]
    paid = [runs.paid() for _ in range(SHARED - len(lost))]
    shop.past(WORKING_SECONDS + 1)
    before = runs.reads()

    (run,) = making.from_due(append.take_due_lookups(SHARED + 10, 30))
    run = runs.worked(run)

    asked = runs.reads() - before
    assert 2 <= asked <= SHARED * 0.02, "a fiftieth of one question for each call, page by page"
    assert run.reads == asked == pace.reads_lately(run.connection_id or 0, queries.clock())
    assert runs.results(run) == {"happened": len(paid), "not_happened": len(lost)}
    assert {shop.state(one) for one in paid} == {ClaimState.COMPLETED}
    assert {shop.state(one) for one in lost} == {ClaimState.NOT_EXECUTED}
    assert [len(shop.sightings(one)) for one in (*paid, *lost)] == [1] * SHARED
    assert run.state == Run.State.DONE


def test_each_account_and_each_configuration_has_a_reading_of_its_own(
    shop: Shop, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    groups: list[set[UUID]] = []

    def noted(probes: Sequence[Probe], many: Many) -> Scan:
        groups.append({probe.claim_id for probe in probes})
        return many(probes)

    reading_with(monkeypatch, noted)
    refund, loose = (
        Tool.objects.create(
            workspace=shop.workspace, connection=shop.charge.connection, **(CHARGE | changes)
        )
        for changes in (
            {"name": "refund", "lookup_kind": "stripe.refunds"},
            {"name": "loose", "lookup": {}},
        )
    )
    first, second, third, fourth = (
        runs.lost(tool) for tool in (shop.charge, shop.charge, refund, loose)
    )

    run = runs.worked(runs.start(first, second, third, fourth))

    assert sorted(map(len, groups)) == [1, 1, 2]
    assert {first, second} in groups
    assert run.connection_id == shop.charge.connection_id


def test_a_call_that_changes_while_the_provider_is_asked_gets_evidence_and_no_verdict(
    shop: Shop, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    paid, beside = runs.paid(), runs.paid()
    person = a_person(shop.workspace)

    def meanwhile(probes: Sequence[Probe], many: Many) -> Scan:
        scan = many(probes)
        append.note(shop.workspace.pk, paid, person.pk, "The customer calls.")
        return scan

    reading_with(monkeypatch, meanwhile)
    run = runs.worked(runs.start(paid, beside))

    assert (shop.state(paid), shop.state(beside)) == (ClaimState.UNKNOWN, ClaimState.COMPLETED)
    (sighting,) = shop.sightings(paid)
    assert (sighting.word, sighting.counts) == (SightingWord.FOUND, False)
    item = runs.item(run, paid)
    assert (item.result, OUTDATED in item.followed) == ("left", True)
    assert append.take_due_lookups(10, 30)[0].claim_id == paid, "asked again at once"


def test_no_transaction_is_open_while_the_provider_is_asked(
    shop: Shop, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_ones: list[bool] = []

    def looking(probes: Sequence[Probe], many: Many) -> Scan:
        open_ones.append(connection.in_atomic_block)
        return many(probes)

    reading_with(monkeypatch, looking)
    runs.worked(runs.start(runs.lost()))

    assert open_ones == [False]


def test_what_goes_wrong_with_one_call_stays_with_it(
    shop: Shop, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken, paid = runs.paid(), runs.paid()

    def forgetting(probes: Sequence[Probe], many: Many) -> Scan:
        scan = many(probes)
        left = {one: look for one, look in scan.looks.items() if one != broken}
        return Scan(looks=left, reads=scan.reads)

    reading_with(monkeypatch, forgetting)
    run = runs.worked(runs.start(broken, paid))

    assert runs.results(run) == {"error": 1, "happened": 1}
    assert "no answer about this call" in runs.item(run, broken).followed
    assert shop.state(broken) is ClaimState.UNKNOWN


# Dry runs


def test_a_dry_run_asks_records_evidence_and_decides_nothing(shop: Shop, runs: Runs) -> None:
    paid, lost = runs.paid(), runs.lost()
    shop.past(WORKING_SECONDS + 1)
    planned = {one.claim_id for one in append.take_due_lookups(10, 30)}
    shop.clock.advance(31)

    run = runs.worked(runs.start(paid, lost, dry=True))

    assert {shop.state(paid), shop.state(lost)} == {ClaimState.UNKNOWN}
    (found,) = shop.sightings(paid)
    assert (found.word, found.counts) == (SightingWord.FOUND, False)
    assert (found.data["dry_run"], found.data["rule"]) == (True, "found")
    assert found.data["strength"] == "strong", "a person may rest a decision on it"
    assert runs.results(run) == {"happened": 1, "not_happened": 1}
    item = runs.item(run, paid)
    assert item.followed.startswith("Would have been settled as happened.")
    assert (item.rule, item.evidence) == ("found", found.seq)
    assert {one.claim_id for one in append.take_due_lookups(10, 30)} == planned, "no plan changed"


def test_a_dry_run_never_settles_what_the_next_real_one_would_not(shop: Shop, runs: Runs) -> None:
    lost = runs.lost()

    runs.worked(runs.start(lost, dry=True))
    runs.worked(runs.start(lost))

    assert shop.state(lost) is ClaimState.UNKNOWN, "both came too early"


# What was chosen


def test_everything_unknown_is_chosen_by_workspace_by_tool_and_by_account(
    shop: Shop, runs: Runs
) -> None:
    charge, transfer = runs.lost(), runs.lost(shop.transfer)
    runs.worked(runs.start(runs.paid()))
    elsewhere = Workspace.objects.create(
        name="Other", slug=f"other-{shop.workspace.pk}", mode="test", created_at=queries.clock()
    )

    def chosen(workspace: Workspace = shop.workspace, **scope: Any) -> set[UUID]:
        run = making.start(NewRun(workspace_id=workspace.pk, scope=Scope(**scope)))
        return set(RunItem.objects.filter(run=run).values_list("claim_id", flat=True))

    assert chosen() == {charge, transfer}, "what is settled is not unknown"
    assert chosen(tool_id=shop.transfer.pk) == {transfer}
    assert chosen(connection_id=shop.charge.connection_id) == {charge}
    assert chosen(claim_ids=(charge, uuid4())) == {charge}
    for scope in ({}, {"claim_ids": (charge,)}, {"tool_id": shop.charge.pk}):
        with pytest.raises(CannotStart, match="no call of this workspace"):
            chosen(elsewhere, **scope)


def test_a_run_has_a_limit_and_names_it(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(making, "ITEMS_MAX", 2)
    claim_ids = [runs.lost() for _ in range(3)]

    with pytest.raises(CannotStart, match="at most 2 calls"):
        runs.start(*claim_ids)
    with pytest.raises(CannotStart, match="at most 2 calls"):
        runs.start()


# Stopping, and doing it again


def test_a_stopped_run_ends_and_says_what_it_left(shop: Shop, runs: Runs) -> None:
    run = runs.start(runs.paid())
    Run.objects.filter(pk=run.pk).update(stop_asked_at=queries.clock())

    run = runs.worked(run)

    assert (run.state, run.due_at) == (Run.State.STOPPED, None)
    assert runs.results(run) == {"waiting": 1}
    assert runs.worked(run).state == Run.State.STOPPED, "a late copy of the task does nothing"


def test_a_stop_is_heard_between_two_readings_and_loses_no_answer(
    shop: Shop, runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, other = runs.paid(), runs.paid(), runs.lost(shop.transfer)
    run = runs.start(first, second, other)
    real = recording.record

    def stopping(*said: Any, **more: Any) -> bool:
        Run.objects.filter(pk=run.pk).update(stop_asked_at=queries.clock())
        return real(*said, **more)

    monkeypatch.setattr(recording, "record", stopping)
    run = runs.worked(run)

    assert run.state == Run.State.STOPPED
    assert runs.results(run) == {"happened": 2, "waiting": 1}
    assert [len(shop.sightings(one)) for one in (first, second, other)] == [1, 1, 0]


def test_what_failed_is_asked_again_in_a_new_run(shop: Shop, runs: Runs) -> None:
    rule = {"fault": "drop_before", "operation": "payment_intents.list", "sends_max": None}
    shop.customer.control("POST", "/faults", {"rules": [rule]})
    paid = runs.paid()
    failed = runs.worked(runs.start(paid))
    shop.customer.control("DELETE", "/faults")

    again = making.again(failed, user_id=1)

    assert runs.results(failed) == {"error": 1}
    assert (again.again_of, again.words) == (failed, f"what failed in run {failed.pk}, 1 call")
    assert runs.results(runs.worked(again)) == {"happened": 1}
    with pytest.raises(CannotStart, match="nothing failed"):
        making.again(again, user_id=1)


# The account needs a rest


def test_a_persons_run_waits_for_an_account_that_needs_a_rest(shop: Shop, runs: Runs) -> None:
    run = runs.start(runs.paid())
    pace.note(run.connection_id or 0, SightingWord.MISCONFIGURED, queries.clock())

    run = runs.worked(run)
    waits = (run.state, run.due_at)
    early = working.due(10)
    shop.past(pace.ALONE_FIRST.total_seconds() + 1)
    late = working.due(10)

    assert waits[0] == Run.State.WAITING
    assert waits[1] is not None
    assert waits[1] > queries.clock() - timedelta(seconds=10)
    assert (early, late) == ([], [run.pk])
    assert runs.results(runs.worked(run)) == {"happened": 1}


def test_what_the_schedule_wanted_is_put_off_and_its_run_ends(shop: Shop, runs: Runs) -> None:
    lost = runs.lost()
    (run,) = making.from_due(append.take_due_lookups(10, 30))
    pace.note(run.connection_id or 0, SightingWord.MISCONFIGURED, queries.clock())

    run = runs.worked(run)

    assert run.state == Run.State.DONE
    item = runs.item(run, lost)
    assert (item.result, item.followed) == (
        "skipped",
        "Nobody was asked. The provider is given time to recover.",
    )
    shop.clock.advance(pace.ALONE_FIRST.total_seconds() - 2)
    assert append.take_due_lookups(10, 30) == []
    shop.clock.advance(3)
    assert [one.claim_id for one in append.take_due_lookups(10, 30)] == [lost]


def test_an_allowance_that_is_used_up_never_costs_the_look_before_a_window_closes(
    shop: Shop, runs: Runs
) -> None:
    lost = runs.lost()
    connection_id = shop.charge.connection_id or 0
    (run,) = making.from_due(append.take_due_lookups(10, 30))
    pace.count_reads(connection_id, pace.READS_MIN, queries.clock())
    pace.may_ask(connection_id, queries.clock())

    put_off = runs.item(runs.worked(run), lost)
    window_until = queries.claim(shop.workspace.pk, lost).window_until
    shop.past(22 * 3600 + 1)
    (closing,) = making.from_due(append.take_due_lookups(10, 30))
    asked = runs.item(runs.worked(closing), lost)

    assert window_until is not None
    assert (put_off.result, put_off.next_at) == ("skipped", window_until - timedelta(hours=2))
    assert (closing.trigger, asked.word) == ("before_deadline", "absent")


# Which run a look-up belongs to


def test_a_look_of_one_call_is_a_run_of_one_call(shop: Shop, runs: Runs) -> None:
    paid = runs.paid()

    shop.look(paid, trigger="person", user_id=7)

    run = Run.objects.get(workspace=shop.workspace)
    assert (run.trigger, run.state, run.started_by_id) == ("person", "done", 7)
    assert (runs.results(run), run.reads) == ({"happened": 1}, 1)
    assert runs.item(run, paid).evidence == shop.sightings(paid)[0].seq


def test_calls_whose_window_closes_are_a_run_of_their_own_and_come_first(
    shop: Shop, runs: Runs
) -> None:
    closing, calm = runs.lost(), runs.lost(shop.transfer)
    append.take_due_lookups(10, 1)
    shop.clock.advance(23 * 3600)

    first, second = making.from_due(append.take_due_lookups(10, 30))

    assert (first.trigger, second.trigger) == ("before_deadline", "schedule")
    assert (runs.item(first, closing).result, runs.item(second, calm).result) == ("waiting",) * 2


def test_a_call_that_nobody_can_be_asked_about_enters_no_run(shop: Shop, runs: Runs) -> None:
    shop.transfer.lookup_kind = ""
    shop.transfer.save()
    runs.lost(shop.transfer)

    assert making.from_due(append.take_due_lookups(10, 30)) == []
    shop.past(3600)
    assert append.take_due_lookups(10, 30) == []
