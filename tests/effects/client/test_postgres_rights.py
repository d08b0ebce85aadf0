"""What an agent's role in the database may do: its functions, in its workspace, nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from django.db import connection
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import errors

from effects.client.transport_postgres import CALL_FIELDS, CLAIM, REPORT, PostgresTransport
from effects.core.canonical import Refused
from effects.core.claim_rows import call_facts
from effects.core.identity import encoded, forwarded_key, identities
from effects.core.messages import ClaimRequest, Complete, Heartbeat, Sent, Unknown
from effects.core.problems import BadRequest, ClaimNotFound, StaleFence, TokenRefused
from effects.core.vocabulary import AnswerCode, ClaimState, EffectClass
from effects.models import Tool, Workspace
from ledger import agents, claiming, queries, restore_fence
from ledger.models import AgentRole, Claim, Event

NONCE = "00112233445566778899aabbccddeeff"
BOUNDS = {"min_size": 1, "max_size": 12}
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), **BOUNDS)


def workspace(slug: str) -> Workspace:
    return Workspace.objects.create(
        name=slug, slug=slug, created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )


@pytest.fixture
def shop(transactional_db: None) -> Workspace:
    made = workspace("shop")
    Tool.objects.create(
        workspace=made,
        name="pay",
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
        argument_rules={"business": ["order"], "volatile": ["trace"]},
    )
    return made


@pytest.fixture
def role(shop: Workspace) -> agents.NewAgentRole:
    return agents.create(shop, "an agent")


@pytest.fixture
def agent(role: agents.NewAgentRole) -> Iterator[PostgresTransport]:
    transport = PostgresTransport(role.url)
    yield transport
    transport.close()


@pytest.fixture
def session(role: agents.NewAgentRole) -> Iterator[psycopg.Connection[Any]]:
    """What a compromised agent has: its role's own connection, for any statement at all."""
    with psycopg.connect(role.url, autocommit=True) as opened:
        yield opened


def asked(**more: Any) -> ClaimRequest:
    usual: dict[str, Any] = {
        "tool": "pay",
        "effect_class": EffectClass.KEYED_WRITE,
        "arguments": '{"amount": 1}',
        "conversation": "c-1",
        "turn_index": 3,
        "nonce": NONCE,
    }
    return ClaimRequest(**(usual | more))


# Rights


def test_a_role_may_execute_the_agent_functions_and_no_other_of_ours(role):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
            " AND has_function_privilege(%s, oid, 'EXECUTE')",
            [role.role],
        )
        assert {name for (name,) in cursor.fetchall()} == set(agents.FUNCTIONS)
        cursor.execute(
            "SELECT proname FROM pg_proc WHERE proname = ANY(%s) AND NOT (prosecdef"
            " AND proconfig = '{\"search_path=pg_catalog, public, pg_temp\"}')",
            [list(agents.FUNCTIONS)],
        )
        assert cursor.fetchall() == [], "each runs as its owner, and looks where it should"


def test_a_role_may_do_nothing_with_any_table_view_sequence_or_schema(role):
    with connection.cursor() as cursor:
        cursor.execute(
            """
            SELECT c.relname FROM pg_class c
             WHERE c.relnamespace = 'public'::regnamespace AND (
               c.relkind IN ('r', 'v', 'm', 'p')
                 AND (has_table_privilege(%(role)s, c.oid,
                        'SELECT, INSERT, UPDATE, DELETE, TRUNCATE, REFERENCES, TRIGGER, MAINTAIN')
                      OR has_any_column_privilege(%(role)s, c.oid, 'SELECT, INSERT, UPDATE'))
               OR c.relkind = 'S' AND has_sequence_privilege(%(role)s, c.oid, 'USAGE, SELECT'))
            """,
            {"role": role.role},
        )
        assert cursor.fetchall() == []
        cursor.execute(
            "SELECT has_schema_privilege(%(r)s, 'public', 'CREATE'),"
            " has_database_privilege(%(r)s, current_database(), 'CREATE'),"
            " rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication, rolinherit"
            " FROM pg_roles WHERE rolname = %(r)s",
            {"r": role.role},
        )
        assert set(cursor.fetchone()) == {False}


FORBIDDEN = [
    "SELECT * FROM ledger_claim",
    "SELECT count(*) FROM ledger_attempt",
    "SELECT * FROM ledger_agentrole",
    "SELECT hash FROM ledger_apitoken",
    "UPDATE ledger_agentrole SET workspace_id = workspace_id + 1",
    """INSERT INTO ledger_event (claim_id, seq, at, kind, fence, generation)
       VALUES (uuidv7(), 1, now(), 'granted', 1, 1)""",
    """SELECT ledger_claim_v1(1, 1, 1, 'keyed_write', 'k', null, null, null, null, null, null, null,
       'x', '{}', null, null, 0, 0, null, null, false, null, null, null)""",
    "SELECT ledger_confirm_v1()",
    "SELECT ledger_agent_refuse_v1(1, null)",
    "CREATE TABLE public.mine ()",
    "CREATE FUNCTION public.ledger_clock() RETURNS timestamptz LANGUAGE sql AS 'SELECT now()'",
    "SET SESSION AUTHORIZATION counterfoil",
    "SET ROLE counterfoil",
    "ALTER ROLE counterfoil NOLOGIN",
]


def test_whatever_else_a_role_tries_is_refused(session):
    for statement in FORBIDDEN:
        with pytest.raises(errors.InsufficientPrivilege):
            session.execute(statement)


def test_nothing_that_a_session_can_set_or_make_for_itself_changes_its_workspace(
    shop, role, session, agent
):
    other = workspace("other")
    session.execute(
        "CREATE TEMP TABLE ledger_agentrole (role text, workspace_id bigint, part bytea,"
        " desk_url text, revoked_at timestamptz)"
    )
    session.execute(
        "INSERT INTO pg_temp.ledger_agentrole VALUES (%s, %s, %s, 'x', null)",
        [role.role, other.pk, encoded(other.pk)],
    )
    for setting in (
        "search_path = pg_temp, public",
        "row_security = off",
        "timezone = 'Asia/Tokyo'",
    ):
        session.execute(f"SET {setting}")
    session.execute("SELECT set_config('counterfoil.workspace', %s, false)", [str(other.pk)])
    values = agent._call_values(asked())  # noqa: SLF001 - as it is sent
    places = ", ".join(["%s"] * len(values))
    session.execute(f"SELECT * FROM public.ledger_agent_claim_v1({places})", values)
    assert Claim.objects.get().workspace_id == shop.pk


def test_a_session_of_another_isolation_is_granted_nothing(session, agent):
    values = agent._call_values(asked())  # noqa: SLF001 - as it is sent
    session.execute("SET default_transaction_isolation = 'repeatable read'")
    places = ", ".join(["%s"] * len(values))
    with pytest.raises(errors.InvalidTransactionState):
        session.execute(f"SELECT * FROM ledger_agent_claim_v1({places})", values)


# The wall between workspaces


@pytest.fixture
def theirs(shop: Workspace) -> Claim:
    """A claim of another workspace, made over the API, for the very same call."""
    other = workspace("other")
    answer = claiming.claim(other.pk, asked())
    assert answer.claim_id
    return Claim.objects.get(pk=answer.claim_id)


def test_the_same_call_in_two_workspaces_is_two_operations(shop, agent, theirs):
    answer = agent.claim(asked())
    assert answer.code is AnswerCode.GRANTED
    assert answer.claim_id
    assert answer.claim_id != theirs.pk
    ours = Claim.objects.get(pk=answer.claim_id)
    assert (ours.workspace_id, ours.turn == theirs.turn) == (shop.pk, False)


def test_parts_that_spell_another_workspace_find_nothing_of_it_and_take_nothing_from_it(
    agent, theirs
):
    parts = dict(zip(CALL_FIELDS, agent._call_values(asked()), strict=True))  # noqa: SLF001 - as it is sent
    spelt = encoded(theirs.workspace_id) + parts["spoken"]
    for spoken in (spelt, b"\x00" + spelt, spelt[5:]):
        (row,) = agent._ask(CLAIM, list((parts | {"spoken": spoken}).values()))  # noqa: SLF001 - as it is sent
        assert row[1] != theirs.pk
    mine = Claim.objects.exclude(pk=theirs.pk)
    taken = {theirs.scope, theirs.turn, theirs.repeat, theirs.call, theirs.caller} - {None}
    for claim in mine:
        assert not {claim.scope, claim.turn, claim.repeat, claim.call, claim.caller} & taken


def test_another_workspaces_claim_can_be_neither_read_nor_moved(agent, theirs):
    before = queries.event_log(theirs)
    tries = [
        lambda: agent.status(str(theirs.pk)),
        lambda: agent.status(f"{theirs.key}-1"),
        lambda: agent.report(theirs.pk, Complete(fence=1, result="1")),
        lambda: agent.report(theirs.pk, Unknown(fence=1)),
        lambda: agent.sent(theirs.pk, Sent(fence=1)),
        lambda: agent.heartbeat(theirs.pk, Heartbeat(fence=1)),
    ]
    for attempt in tries:
        with pytest.raises(ClaimNotFound):
            attempt()
    theirs.refresh_from_db()
    assert theirs.state == ClaimState.IN_FLIGHT
    assert queries.event_log(theirs) == before


# The same identities as over the API


REQUESTS: st.SearchStrategy[dict[str, Any]] = st.builds(
    dict,
    conversation=st.none() | WORDS,
    turn_index=st.none() | st.integers(0, 2**31 - 1),
    position=st.integers(0, 9),
    ordinal=st.integers(0, 9),
    response_id=st.none() | WORDS,
    call_id=st.none() | st.sampled_from(["pay", "call_0", "toolu_01WkP9QmXyZ01234"]) | WORDS,
    caller_key=st.none() | WORDS,
    arguments=st.sampled_from(
        [
            '{"amount": 1.50, "order": "ö"}',
            '{"order": "8841", "trace": 7}',
            '"{\\"order\\": 1e3}"',
            "{}",
        ]
    ),
)


def test_the_database_makes_the_same_identities_as_the_core(agent, shop):
    rules = claiming.rules_of(Tool.objects.get())

    @settings(max_examples=40, deadline=None)
    @given(REQUESTS)
    def same(said: dict[str, Any]) -> None:
        request = asked(**said)
        try:
            expected = identities(call_facts(shop.pk, request, rules))
        except Refused:
            with pytest.raises(BadRequest):
                agent.claim(request)
            return
        agent.claim(request)
        found = Claim.objects.order_by("-pk").first()
        assert found is not None
        names = ("scope", "turn", "local", "call", "caller", "repeat", "business")
        stored = {name: getattr(found, name) for name in names}
        assert stored == {name: getattr(expected, name) for name in names}
        assert found.arguments_digest == expected.arguments
        assert forwarded_key(expected, 1) == f"{found.key}-1"
        with connection.cursor() as cursor:
            cursor.execute("TRUNCATE ledger_claim, ledger_event, ledger_heldrequest, ledger_case")
        restore_fence.confirm()

    same()


def test_both_ways_meet_in_one_claim(agent, shop):
    first = agent.claim(asked())
    again = claiming.claim(shop.pk, asked())
    assert (first.code, again.code) == (AnswerCode.GRANTED, AnswerCode.GRANTED_AGAIN)
    differences = {
        name
        for name, value in first
        if value != getattr(again, name) and name not in {"code", "send_within_seconds"}
    }
    assert differences == set()


# What the client checks, the database checks too


BAD_CALLS: list[dict[str, Any]] = [
    {"arguments": '"' + "x" * 262_144 + '"'},
    {"arguments": None},
    {"compared": None},
    {"compared": b"x" * 1_048_577},
    {"nonce": b"x" * 15},
    {"turn_index": -1},
    {"ordinal": 32_768},
    {"position": -40_000},
    {"worker": "x" * 256},
    {"conversation": "x" * 256},
    {"call_id": "x" * 256},
    {"spoken": None},
    {"turn_part": None},
]


def test_a_claim_beyond_a_limit_is_refused_by_the_database(agent):
    parts = dict(zip(CALL_FIELDS, agent._call_values(asked()), strict=True))  # noqa: SLF001 - as it is sent
    for bad in BAD_CALLS:
        with pytest.raises(BadRequest):
            agent._ask(CLAIM, list((parts | bad).values()))  # noqa: SLF001 - past the client's checks
        assert not Claim.objects.exists(), bad
    with pytest.raises(BadRequest):
        agent._ask_batch([{"tool": "pay"}] * 65)  # noqa: SLF001 - past the client's checks


def test_a_report_keeps_the_limits_and_what_it_says_happened(agent):
    claim = agent.claim(asked()).claim_id

    def report(**said: Any) -> Any:
        usual = {"claim": claim, "fence": 1, "outcome": "completed"}
        names = ("claim", "fence", "outcome", "object", "replayed", "marker", "result", "stored")
        values = [(usual | said).get(name) for name in names]
        rest = [*[None] * 8, said.get("error")]
        (row,) = agent._ask(REPORT, values + rest)  # noqa: SLF001 - past the client's checks
        return row

    with pytest.raises(StaleFence):
        report(fence=7)
    bad: list[dict[str, Any]] = [{"outcome": word} for word in ("found", "happened", "reopen")]
    for said in [*bad, {"object": "x" * 256}, {"outcome": "unknown", "error": "x" * 2001}]:
        with pytest.raises(BadRequest):
            report(**said)
    assert not Event.objects.filter(claim_id=claim, kind="reported").exists()

    for number, result in enumerate(("not json", '"' + "x" * 1_048_576 + '"')):
        made = agent.claim(asked(turn_index=10 + number, arguments=f'{{"n": {number}}}'))
        row = report(claim=made.claim_id, result=result, stored=True)
        assert (row[3], row[12], row[13]) == ("completed", None, False)


def test_the_effect_class_cannot_be_claimed_down_and_an_unknown_tool_is_the_strictest(agent, shop):
    harmless = asked(effect_class=EffectClass.READ)
    assert agent.claim(harmless).effect_class is EffectClass.KEYED_WRITE
    answer = agent.claim(asked(tool="new", effect_class=EffectClass.READ))
    assert (answer.code, answer.effect_class) == (AnswerCode.GRANTED, EffectClass.UNKEYED_WRITE)
    entered = Tool.objects.get(name="new")
    usual = Tool(workspace=shop, name="new", registered=False)
    for column in Tool._meta.concrete_fields:  # noqa: SLF001 - Django's own way to list columns
        if column.name != "id":
            name = column.attname
            assert getattr(entered, name) == getattr(usual, name), f"{name} has another default"


# A role's life


def test_a_revoked_role_opens_nothing_from_the_next_call_on(shop, role, agent):
    agent.claim(asked())
    assert agents.revoke(shop, role.role)
    assert not agents.revoke(shop, role.role)
    with pytest.raises(TokenRefused):
        agent.claim(asked())
    stranger = PostgresTransport(role.url)
    with pytest.raises(TokenRefused) as refused:
        stranger.claim(asked())
    password = role.url.split(":")[2].split("@")[0]
    assert password not in f"{refused.value} {refused.value.__cause__} {stranger!r}"
    assert AgentRole.objects.get().revoked_at is not None
