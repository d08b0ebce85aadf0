"""What others recorded, brought in: each line once, all of a file or nothing, with its call."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, interrupt

from effects.core.messages import ClaimAnswer
from effects.models import Tool, Workspace
from reconcile.duplicates import evidence, finding, grouping, on_the_wire
from reconcile.duplicates.constants import in_force
from reconcile.duplicates.importers import keeping, langgraph, stripe
from reconcile.duplicates.importers.keeping import CannotImport, keep
from reconcile.models import DuplicateGroup, ImportedEvidence
from tests.support import desk

pytestmark = pytest.mark.django_db

AT = "2026-03-02T10:00:00Z"


@pytest.fixture
def shop() -> Workspace:
    return desk.a_workspace()


@pytest.fixture
def charge(shop: Workspace) -> Tool:
    return desk.a_keyed_tool(shop)


def file_of(folder: Path, *lines: Any) -> str:
    path = folder / "log.jsonl"
    said = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("\n".join(said) + "\n", encoding="utf-8")
    return str(path)


def bring(source: str, path: str, workspace: Workspace, **more: Any) -> None:
    call_command("import_evidence", source, path, workspace=workspace.slug, **more)


def sent(answer: ClaimAnswer, number: int, **changes: Any) -> dict[str, Any]:
    usual = {"request_id": f"req_{number}", "at": AT, "marker": answer.marker}
    return usual | {"idempotency_key": answer.key, "body_sha": "b"} | changes


# Lines and their calls


def test_a_providers_requests_are_kept_once_with_the_call_that_they_name(
    shop: Workspace, charge: Tool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = desk.a_call(charge)
    path = file_of(tmp_path, sent(answer, 1), sent(answer, 2, idempotency_key=None), "",
                   {"request_id": "req_3", "at": AT, "key": "nobody's"})  # fmt: skip
    bring("provider", path, shop)
    bring("provider", path, shop)
    assert [line.split(",")[0] for line in capsys.readouterr().out.splitlines()] == [
        "3 new",
        "0 new",
    ]
    kept = ImportedEvidence.objects.order_by("name")
    assert [one.claim_id for one in kept] == [answer.claim_id, answer.claim_id, None]
    assert [one.facts["key_seen"] for one in kept] == [True, True, False]


def test_requests_that_were_imported_are_what_the_diagnosis_compares(
    shop: Workspace, charge: Tool, tmp_path: Path
) -> None:
    answer = desk.a_call(charge)
    at = ("2026-03-02T10:00:00Z", "2026-03-02T10:00:01Z")
    lines = [
        sent(answer, n, at=when, client_request_id="cr", retry_count=n) for n, when in enumerate(at)
    ]
    bring("provider", file_of(tmp_path, *lines), shop)
    assert answer.claim_id
    weighed = grouping.weigh(shop.pk, [answer.claim_id], in_force(shop.pk))
    assert weighed.diagnosis.provider_requests == 2
    assert weighed.layers == ["sdk_retry"]
    assert weighed.certain


def test_a_gateways_log_about_one_call_tells_it_from_a_library(
    shop: Workspace, charge: Tool, tmp_path: Path
) -> None:
    answer = desk.a_call(charge)
    at = ("2026-03-02T10:00:00+00:00", "2026-03-02T10:00:01+00:00")
    requests = [sent(answer, n, at=when) for n, when in enumerate(at)]
    bring("provider", file_of(tmp_path, *requests), shop)
    upstreams = [{"host": f"u{n}", "at": when, "status": 502} for n, when in enumerate(at)]
    gateway = {"request_id": "gw_1", "at": at[0], "upstreams": upstreams}
    bring("gateway", file_of(tmp_path, gateway), shop, claim=answer.claim_id)
    assert answer.claim_id
    weighed = grouping.weigh(shop.pk, [answer.claim_id], in_force(shop.pk))
    assert weighed.layers == ["gateway_retry"]


def test_a_delivery_completes_the_execution_that_followed_it(
    shop: Workspace, charge: Tool, tmp_path: Path
) -> None:
    answer = desk.a_call(charge, worker=None)
    message = {"at": "2020-01-01T00:00:00Z", "MessageId": "m1", "key": answer.key,
               "Attributes": {"ApproximateReceiveCount": "2"}}  # fmt: skip
    bring("deliveries", file_of(tmp_path, message), shop)
    assert answer.claim_id
    (one,) = evidence.group_of(shop.pk, [answer.claim_id]).executions
    assert one.delivery_count == 2


BROKEN = [
    ("{", "Line 2 is no JSON"),
    ("[]", "no object"),
    ({"at": AT}, "Line 2: request_id is missing"),
    ({"request_id": "r", "at": "2026-03-02T10:00:00"}, "offset"),
    ({"request_id": "r", "at": "soon"}, "Line 2: "),
    ({"request_id": "r" * 300, "at": AT}, "at most 255"),
    ({"request_id": "r", "at": AT, "retry_count": -1}, "no count"),
    ({"request_id": "r\x00", "at": AT}, "too long|kept"),
    ("x" * 70_000, "LINE_BYTES_MAX"),
]


@pytest.mark.parametrize(("line", "says"), BROKEN)
def test_a_line_that_cannot_be_read_keeps_nothing_and_is_named(
    shop: Workspace, tmp_path: Path, line: Any, says: str
) -> None:
    path = file_of(tmp_path, {"request_id": "fine", "at": AT}, line)
    with pytest.raises(CommandError, match=says):
        bring("provider", path, shop)
    assert not ImportedEvidence.objects.exists()


def test_more_lines_than_the_limit_keep_nothing(
    shop: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LINES_MAX", 2)
    lines = [{"request_id": f"r{n}", "at": AT} for n in range(3)]
    with pytest.raises(CommandError, match="LINES_MAX"):
        bring("provider", file_of(tmp_path, *lines), shop)
    assert not ImportedEvidence.objects.exists()


def test_what_is_not_there_is_named(shop: Workspace, tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="workspace"):
        call_command("import_evidence", "provider", "x", workspace="nowhere")
    with pytest.raises(CommandError, match="cannot be read"):
        bring("provider", str(tmp_path / "none"), shop)
    with pytest.raises(CommandError, match="No claim"):
        bring("provider", file_of(tmp_path), shop, claim=uuid4())
    with pytest.raises(CommandError, match="--connection"):
        call_command("import_evidence", "stripe", workspace=shop.slug)
    with pytest.raises(CommandError, match="is not set"):
        call_command(
            "import_evidence", "langgraph", workspace=shop.slug, database_url_variable="NO_SUCH"
        )


def test_a_key_of_another_workspace_names_no_call(charge: Tool, tmp_path: Path) -> None:
    answer, other = desk.a_call(charge), desk.a_workspace("other")
    bring("provider", file_of(tmp_path, sent(answer, 1)), other)
    assert ImportedEvidence.objects.get().claim_id is None


def test_new_evidence_has_the_groups_diagnosed_anew(
    shop: Workspace, charge: Tool, tmp_path: Path
) -> None:
    call: dict[str, Any] = {"conversation": "c", "turn_index": 1, "call_id": "call_" + "a" * 20}
    said: dict[str, Any] = {"arguments": {"amount": 1, "customer": "c"}, "worker": None}
    answer = desk.ask(charge, nonce=uuid4().hex, **(call | said))
    desk.ask(charge, nonce=uuid4().hex, **(call | said))
    finding.search(shop.pk)
    before = DuplicateGroup.objects.get()
    bring("provider", file_of(tmp_path, sent(answer, 1)), shop)
    finding.search(shop.pk)
    assert (before.provider_requests, DuplicateGroup.objects.get().provider_requests) == (0, 1)


# Stripe

EVENT = {
    "id": "evt_1",
    "created": 1_772_445_600,
    "request": {"id": "req_9", "idempotency_key": None},
    "data": {"object": {"id": "pi_1", "metadata": {}}},
}


def test_an_event_without_a_request_says_nothing() -> None:
    for request in (None, {"id": None, "idempotency_key": None}):
        assert stripe.line_of(EVENT | {"request": request}) is None


def test_two_events_of_one_request_are_one_line(shop: Workspace, charge: Tool) -> None:
    answer = desk.a_call(charge)
    carried = {"data": {"object": {"id": "pi_1", "metadata": {"counterfoil": answer.marker}}}}
    lines = [stripe.line_of(EVENT | carried | {"id": f"evt_{n}"}) for n in range(2)]
    imported = keep(shop.pk, [line for line in lines if line])
    assert (imported.new, imported.known) == (1, 1)
    kept = ImportedEvidence.objects.get()
    assert (kept.claim_id, kept.facts["key_seen"], kept.facts.get("key")) == (
        *(answer.claim_id, True),
        None,
    )


# The key on the wire


@pytest.mark.case("P04")
def test_a_key_that_never_reached_the_wire_is_an_alarm(
    shop: Workspace, charge: Tool, tmp_path: Path
) -> None:
    answer = desk.a_call(charge)
    bring("provider", file_of(tmp_path, sent(answer, 1)), shop)
    assert str(getattr(on_the_wire.of_tool(charge), "word", "")) == "identical"
    assert on_the_wire.alarms(shop.pk) == []
    bring("provider", file_of(tmp_path, sent(answer, 2, idempotency_key=None)), shop)
    (alarm,) = on_the_wire.alarms(shop.pk)
    assert (alarm.tool, str(alarm.check.word)) == (charge, "missing")
    assert alarm.check.missing == (str(answer.claim_id),)


def test_a_tool_without_keys_has_nothing_to_check(shop: Workspace) -> None:
    assert on_the_wire.of_tool(desk.an_unkeyed_tool(shop)) is None


# LangGraph's own tables


@pytest.fixture(scope="module")
def checkpoints(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """A database of LangGraph's own in the tests' PostgreSQL."""
    with django_db_blocker.unblock():
        settings = connection.settings_dict
    server = f"host={settings['HOST']} port={settings['PORT']} user={settings['USER']}"
    server += f" password={settings['PASSWORD']}" if settings["PASSWORD"] else ""
    name = f"checkpoints_{uuid4().hex[:8]}"
    with psycopg.connect(f"{server} dbname={settings['NAME']}", autocommit=True) as owner:
        owner.execute(f"CREATE DATABASE {name}")
        yield f"{server} dbname={name}"
        owner.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="module")
def thread(checkpoints: str) -> str:
    """A run whose node failed once, ran again, waited for a person and was resumed."""
    ran = {"pay": 0}

    def pay(_state: dict[str, Any]) -> dict[str, Any]:
        ran["pay"] += 1
        if ran["pay"] == 1:
            raise ValueError("cut off")
        return {}

    def ask(_state: dict[str, Any]) -> dict[str, Any]:
        interrupt("may I?")
        return {}

    graph: Any = StateGraph(dict)
    graph.add_node("pay", pay)
    graph.add_node("ask", ask)
    graph.add_edge(START, "pay")
    graph.add_edge("pay", "ask")
    graph.add_edge("ask", END)
    with PostgresSaver.from_conn_string(checkpoints) as saver:
        saver.setup()
        app = graph.compile(checkpointer=saver)
        at: Any = {"configurable": {"thread_id": "run-1"}, "metadata": {"sqs_receive_count": 1}}
        with pytest.raises(ValueError, match="cut off"):
            app.invoke({}, at)
        at["metadata"]["sqs_receive_count"] = 2
        app.invoke(None, at)
        app.invoke(Command(resume="yes"), at)
    return "run-1"


def test_langgraphs_tables_tell_what_ran_again_and_what_was_resumed(
    shop: Workspace, checkpoints: str, thread: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_CHECKPOINTS", checkpoints)
    options = {"workspace": shop.slug, "database_url_variable": "TEST_CHECKPOINTS"}
    call_command("import_evidence", "langgraph", thread=thread, **options)
    kept = list(ImportedEvidence.objects.order_by("at", "pk"))
    assert {one.conversation for one in kept} == {thread}
    assert [one.facts["step"] for one in kept if one.facts.get("rerun_after_error")] == [0]
    assert [one.facts["step"] for one in kept if one.facts.get("resumed")] == [1]
    assert {one.facts["delivery_count"] for one in kept} == {1, 2}
    call_command("import_evidence", "langgraph", **options)
    assert ImportedEvidence.objects.count() == len(kept)


def test_an_export_of_the_same_query_says_the_same(
    shop: Workspace, checkpoints: str, thread: str, tmp_path: Path
) -> None:
    with psycopg.connect(checkpoints) as reader:
        rows = reader.execute(f"SELECT row_to_json(x)::text FROM ({langgraph.QUERY}) x").fetchall()
    direct = {line.name: line for line in langgraph.read_tables(checkpoints)}
    path = Path(file_of(tmp_path, *(text for (text,) in rows)))
    assert {line.name: line for line in langgraph.read_export(path)} == direct


def test_the_tables_are_read_over_a_connection_that_cannot_write(checkpoints: str) -> None:
    with pytest.raises(CannotImport, match="cannot be read"):
        list(langgraph.read_tables(checkpoints + " port=1"))


def test_a_checkpoint_tells_which_execution_was_resumed(
    shop: Workspace, checkpoints: str, thread: str
) -> None:
    keep(shop.pk, langgraph.read_tables(checkpoints))
    resumed = ImportedEvidence.objects.get(facts__resumed=True).facts["checkpoint"]
    tool = desk.an_unkeyed_tool(shop)
    call: dict[str, Any] = {"conversation": thread, "turn_index": 1, "checkpoint": resumed}
    call |= {"call_id": "call_" + "a" * 20, "worker": None}
    said = {"amount": 1, "customer": "c", "order": "1"}
    answer = desk.ask(tool, arguments=said, nonce=uuid4().hex, **call)
    desk.ask(tool, arguments=said, nonce=uuid4().hex, **call)
    assert answer.claim_id
    weighed = grouping.weigh(shop.pk, [answer.claim_id], in_force(shop.pk))
    (pair,) = weighed.diagnosis.pairs
    assert (str(pair.layer), pair.decided_by) == ("step_retry", ("resumed_after_interrupt",))
