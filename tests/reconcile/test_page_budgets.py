"""With very many calls a page asks no more of the database than with few, and reads no big table
from one end to the other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import get_resolver

from effects.core.vocabulary import Role
from effects.models import Tool, Workspace
from ledger.models import Claim, Due
from reconcile import cards
from reconcile.sandbox import seeding
from reconcile.sandbox.seeding import Seed, Seeded
from reconcile.views.filters import View
from tests.browser.test_every_page import NOT_PAGES, ONLY_TAKE_A_FORM, plain_addresses
from tests.support.desk import a_person, a_workspace

BIG: Final = frozenset(
    {
        *("ledger_claim", "ledger_event", "ledger_call", "ledger_stream", "ledger_ingestitem"),
        *("ledger_askedagain",),
    }
)
"""Tables that grow with what was ever done. What is undecided is little, whatever was done."""
FEW: Final = Seed(claims=200, undecided=100, attempts=500, large_bytes=20_000, further_tools=3)
MANY: Final = Seed(claims=100_000, undecided=500, attempts=500, large_bytes=1_000_000)
VERY_MANY: Final = Seed(claims=1_000_000, undecided=500, attempts=500, large_bytes=1_000_000)
STATEMENTS_MAX: Final = 15
MORE_STATEMENTS: Final = {"call, tried often": 21}
"""A long record is read in parts: its newest and oldest events, its answers and its notes."""
VISITS_BEFORE: Final = 4
"""What only first visits do is done then: summaries are read from arguments, in portions."""
A_LONG_LIST_IS_COUNTED: Final = 2
"""Statements more, where a narrowed list has more than one page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One workspace, and somebody who looks at it."""

    workspace: Workspace
    made: Seeded
    client: Client

    def statements(self, address: str) -> tuple[list[str], bool]:
        """What the page asks the database, and whether it lists calls."""
        with CaptureQueriesContext(connection) as captured:
            answer = self.client.get(address, follow=True)
        assert answer.status_code == 200, f"{address}: {answer.status_code}"
        return [query["sql"] for query in captured.captured_queries], "data-row" in answer.text

    def addresses(self) -> Iterator[tuple[str, str]]:
        """Every page, by a name that is the same in both workspaces."""
        lost = Due.objects.filter(workspace=self.workspace, why="person").order_by("claim_id")
        claim = Claim.objects.get(pk=lost[5].claim_id)
        tool = Tool.objects.get(pk=claim.tool_id)
        plain = set(plain_addresses(get_resolver().url_patterns)) - NOT_PAGES - ONLY_TAKE_A_FORM
        yield from ((one, one) for one in sorted(plain - {"/login/"}))
        yield from ((f"queue {view}", f"/queue/?view={view}") for view in View)
        searches = {
            "id": claim.pk, "key": claim.key_sent(1), "amount": "149.01 EUR", "text": "cus_ab",
            "call id": claim.call_id, "nothing": "nowhere",
        }  # fmt: skip
        for name, text in searches.items():
            yield f"queue by {name}", f"/queue/?q={text}"
            yield f"all by {name}", f"/queue/?view=all&q={text}"
        yield "queue of a tool", f"/queue/?tool={tool.name}"
        yield "call", f"/calls/{claim.pk}"
        yield "call, tried often", f"/calls/{self.made.often}"
        yield "call, large", f"/calls/{self.made.large}"
        yield "tool", f"/tools/{tool.pk}/"
        yield "conversation", f"/turns/?conversation={self.made.conversation(10)}"
        yield "conversation, long", f"/turns/?conversation={self.made.long_conversation}"
        yield "turn", f"/turns/?conversation={self.made.conversation(10)}&turn=3"
        yield "turn, tried often", f"/turns/?conversation={self.made.tag}-often&turn=0"


def a_place(slug: str, seed: Seed) -> Place:
    workspace = a_workspace(slug)
    made = seeding.make(workspace, seed, say=lambda _: None)
    client = Client()
    client.force_login(a_person(workspace, Role.ADMIN, f"ada-{slug}"))
    return Place(workspace=workspace, made=made, client=client)


def scanned(statement: str) -> set[str]:
    """The big tables that the statement's plan reads from one end to the other."""
    if not statement.lstrip(" (\n").upper().startswith(("SELECT", "WITH")):
        return set()
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) " + statement)
        (plan,) = cursor.fetchone()
    plans = json.loads(plan) if isinstance(plan, str) else plan
    return {
        node["Relation Name"]
        for node in nodes(plans[0]["Plan"])
        if node["Node Type"] == "Seq Scan" and node["Relation Name"] in BIG
    }


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for below in plan.get("Plans", ()):
        yield from nodes(below)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(MANY, id="hundred thousand"),
        pytest.param(VERY_MANY, id="a million", marks=pytest.mark.slow),
    ],
)
def test_no_page_asks_more_of_many_calls_than_of_few_or_reads_a_big_table_whole(seed: Seed) -> None:
    few, many = a_place("few", FEW), a_place("many", seed)
    wrong = []
    asked_of_few = dict(few.addresses())
    for place in (few, many):
        for first in VISITS_BEFORE * ("/queue/", "/queue/?view=resolved", "/queue/?view=all"):
            place.statements(first)
    for name, address in many.addresses():
        (before, rows_before), (now, rows) = (
            few.statements(asked_of_few[name]),
            many.statements(address),
        )
        most = MORE_STATEMENTS.get(name, STATEMENTS_MAX)
        # A list without a row asks for nothing about its rows, so it is no measure.
        counted = A_LONG_LIST_IS_COUNTED if name.startswith("queue") else 0
        if len(now) > len(before) + counted and rows == rows_before:
            wrong.append(f"{name}: {len(before)} statements with few calls, {len(now)} with many")
        if len(now) > most:
            wrong.append(f"{name}: {len(now)} statements, and {most} are allowed")
        for statement in now:
            wrong += [f"{name} reads all of {table}: {statement}" for table in scanned(statement)]
    assert wrong == [], "\n".join(one[:400] for one in wrong)


@pytest.mark.django_db
def test_a_statement_that_reads_a_big_table_whole_is_noticed() -> None:
    made = a_place("few", FEW).made
    assert scanned("SELECT count(*) FROM ledger_claim WHERE state = 'unknown'") == {"ledger_claim"}
    assert scanned(f"SELECT 1 FROM ledger_claim WHERE id = '{made.often}'") == set()
    assert cards.fill() == 0
