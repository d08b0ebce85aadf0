"""Measuring counts the record once, in the background, and gives pages one row a tool."""

from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection

from effects.core.vocabulary import EffectClass
from effects.models import MeasureMark, Tool, ToolHour, ToolMeasured, Workspace
from ledger import queries
from ledger.functions import call
from reconcile.models import ImportedEvidence
from reconcile.registry import measuring, wire
from reconcile.registry.arguments import samples_of
from reconcile.registry.measured import Measured
from reconcile.registry.measuring import _COUNT, measure, measured_of, uuid_at
from tests.support import desk

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


def facts(tool: Tool) -> Measured:
    measure(queries.clock())
    return measured_of(tool.workspace_id)[tool.name]


def test_calls_are_counted_with_those_that_were_unknown_at_some_time(shop: Workspace) -> None:
    tool = desk.a_keyed_tool(shop)
    desk.complete(tool, desk.a_call(tool))
    desk.a_call(tool)
    lost = desk.a_lost_call(tool)
    answered = desk.a_call(tool)
    late = desk.lose(tool, answered)
    desk.complete(tool, answered, "pi_2")
    seen = facts(tool)
    assert (seen.calls, seen.written, seen.unknown) == (4, 4, 2)
    assert set(seen.recent_unknown) == {str(lost), str(late)}
    assert seen.recent[0] == str(late)
    assert len(seen.recent) == 4
    assert seen.first_at is not None
    assert seen.unknown_percent == 50


def test_counting_again_counts_nothing_twice_and_sees_what_changed(shop: Workspace) -> None:
    tool = desk.a_keyed_tool(shop)
    answer = desk.a_call(tool)
    assert facts(tool).unknown == 0
    desk.lose(tool, answer)
    assert (facts(tool).calls, facts(tool).unknown) == (1, 1)


def test_a_lease_that_is_over_is_unknown_though_no_sweep_came_by(shop: Workspace) -> None:
    tool = desk.a_keyed_tool(shop)
    desk.a_call(tool)
    desk.move_clock(timedelta(seconds=91))
    assert facts(tool).unknown == 1


def test_another_workspaces_calls_are_its_own(shop: Workspace) -> None:
    other = desk.a_workspace("other")
    mine, theirs = desk.a_keyed_tool(shop), desk.a_keyed_tool(other)
    desk.a_call(mine)
    desk.a_call(theirs)
    desk.a_call(theirs)
    assert facts(mine).calls == 1
    assert facts(theirs).calls == 2
    assert len(samples_of(other.pk, facts(theirs).recent)) == 2
    assert samples_of(shop.pk, facts(theirs).recent) == []


def test_a_tool_that_nobody_entered_is_measured_by_its_name(shop: Workspace) -> None:
    ghost = Tool(workspace=shop, name="notify_store", effect_class=EffectClass.UNKEYED_WRITE)
    desk.a_call(ghost)
    assert facts(ghost).calls == 1


def test_requests_of_imported_records_are_told_by_their_keys_and_methods(shop: Workspace) -> None:
    tool = desk.a_keyed_tool(shop)
    answer = desk.a_call(tool)
    claim_id = desk.claim_id_of(answer)

    def arrived(name: str, **said: object) -> None:
        ImportedEvidence.objects.create(
            workspace=shop,
            source="provider",
            name=name,
            at=queries.clock(),
            claim_id=claim_id,
            facts={"key_seen": True, **said},
            imported_at=queries.clock(),
            run=UUID(int=1),
        )

    arrived("1", key=answer.key, method="POST")
    first = facts(tool)
    assert (first.requests, first.keyed_requests, first.posts_seen) == (1, 1, 1)
    assert (first.missing, first.differing, first.changing) == ((), (), ())
    arrived("2", key="made from the clock", method="get", retry_count=1)
    arrived("3")
    seen = facts(tool)
    assert (seen.requests, seen.keyed_requests, seen.posts_seen) == (3, 2, 1)
    assert seen.missing == seen.differing == seen.changing == (str(claim_id),)
    assert seen.repeated_inside == 1


@pytest.mark.parametrize(
    ("generation", "carried", "differing", "changing"),
    [
        pytest.param(2, ("k-1", "k-2"), False, False, id="a person released it with a new key"),
        pytest.param(1, ("k-1", '"k-1"'), False, False, id="the header's quotes are no key"),
        pytest.param(1, ("k-1", "k-2"), True, True, id="the second was granted by nobody"),
        pytest.param(1, ("own", "own"), True, False, id="their own key, and always the same"),
    ],
)
def test_a_key_changes_only_where_nobody_granted_another(
    generation: int, carried: tuple[str, ...], *, differing: bool, changing: bool
) -> None:
    rows = [("claim", "k", None, generation, key, True, "POST", 0) for key in carried]
    seen = wire.facts_of(rows)
    assert bool(seen["differing"]) is differing
    assert bool(seen["changing"]) is changing


def test_names_that_nobody_uses_any_more_are_forgotten(shop: Workspace) -> None:
    now = queries.clock()
    tool = desk.a_keyed_tool(shop)
    measuring.put_together(shop.pk, [tool.name], now)
    ToolMeasured.objects.create(workspace=shop, name="made_up", measured_at=now, facts={})
    measuring.put_together(shop.pk, [tool.name, "made_up"], now)
    assert set(measured_of(shop.pk)) == {tool.name}


def test_fields_are_held_against_the_arguments_of_the_newest_calls(shop: Workspace) -> None:
    tool = desk.a_keyed_tool(shop, customer_field="buyer", summary="Charge {order} for {reason}")
    desk.a_call(tool)
    desk.a_call(tool, arguments={"currency": None})
    seen = facts(tool)
    assert (seen.read, seen.amount_missed, seen.customer_missed) == (2, 1, 2)
    assert seen.holes_missed == ("reason",)


def test_old_hours_are_forgotten(shop: Workspace) -> None:
    now = queries.clock()
    for days in (1, 9):
        ToolHour.objects.create(
            workspace=shop, name="old", hour=now - timedelta(days=days), calls=days
        )
    measure(now)
    assert [row.calls for row in ToolHour.objects.all()] == [1]
    assert measured_of(shop.pk)["old"].calls == 1


def test_after_a_rest_the_hours_in_between_are_counted_in_turns(shop: Workspace) -> None:
    now = queries.clock()
    measure(now)
    marks = [MeasureMark.objects.get().hour]
    for _ in range(8):
        measure(now)
        marks.append(MeasureMark.objects.get().hour)
    assert marks == sorted(marks)
    assert now - marks[-1] < timedelta(hours=2)


def test_an_hour_is_one_range_of_ids_and_no_scan_of_the_record(shop: Workspace) -> None:
    now = queries.clock()
    assert uuid_at(now) < UUID(str(call("SELECT uuidv7()", ())[0][0]))
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        ids = (uuid_at(now - timedelta(hours=1)), uuid_at(now))
        cursor.execute("EXPLAIN " + _COUNT, (now, 20, 5, *ids))
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Index Cond: ((id >=" in plan, plan
