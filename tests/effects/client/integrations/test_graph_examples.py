"""The examples of LangGraph and MCP, run as they are."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
import pytest
from mcp.client.client import Client

from effects.client import Ledger
from effects.core.vocabulary import TokenScope
from effects.models import Tool as RegisteredTool
from effects.models import Workspace
from ledger import auth
from ledger.models import Claim
from tests import settings as test_settings
from tests.effects.client.integrations.test_mcp import serving
from tests.effects.faulty_server import FaultyServer, answers, faulty
from tests.support.awaiting import awaited
from tests.support.cut import line_to
from tests.support.model_server import model_server, says, wants
from tests.support.stack import ROOT

EXAMPLES = ROOT / "docs" / "examples"
pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def provider(live_api: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultyServer]:
    """A provider that does what it is asked, and a shop whose tools are registered."""
    shop = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    for name in ("create_refund", "place_order"):
        RegisteredTool.objects.create(
            workspace=shop, name=name, effect_class="keyed_write", window_seconds=86_400
        )
    token = auth.issue(shop, "an example", (TokenScope.CLAIM,), user=None)[1]
    monkeypatch.setenv("COUNTERFOIL_URL", live_api)
    monkeypatch.setenv("COUNTERFOIL_TOKEN", token)
    with faulty(answers(200, b'{"id": "made_1"}', content_type="application/json")) as provider:
        monkeypatch.setenv("PROVIDER_URL", provider.url)
        yield provider


def run(path: Path, *arguments: str) -> None:
    with patch.object(sys, "argv", [path.name, *arguments]):
        runpy.run_path(str(path), run_name="__main__")


def test_the_agent_of_langgraph_asks_a_person_and_refunds_once(
    provider: FaultyServer, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    url = test_settings.TEST_POSTGRES.url
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE langgraph_example")
    monkeypatch.setenv("CHECKPOINTS", url.rsplit("/", 1)[0] + "/langgraph_example")
    questions: list[str] = []

    def approve(question: str) -> str:
        questions.append(question)
        return "yes"

    monkeypatch.setattr("builtins.input", approve)
    refund = wants(("create_refund", {"payment": "pi_1", "amount": 1200}))
    with model_server(refund.but(cut_after=b"content_block_stop"), refund, says("Done.")) as model:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
        monkeypatch.setenv("ANTHROPIC_MODEL", "scripted-1")
        run(EXAMPLES / "langgraph_refunds.py", "customer-7", "Refund order 7.")
    assert capsys.readouterr().out.endswith("Done.\n")
    assert questions == ['create_refund {"payment": "pi_1", "amount": 1200}? ']
    assert len(provider.requests) == 1
    assert [result["status"] for result in model.requests[-1].results] == ["completed"]
    assert model.requests[0].tools == ["create_refund"]
    assert Claim.objects.get().turn_index == 0


def test_the_shop_over_mcp_orders_once_when_its_answer_is_lost(
    provider: FaultyServer, live_api: str
) -> None:
    example: dict[str, Any] = runpy.run_path(str(EXAMPLES / "mcp_shop.py"))
    token = str(example["os"].environ["COUNTERFOIL_TOKEN"])
    with (
        Ledger(live_api, token) as ledger,
        serving(example["shop"](ledger)) as port,
        line_to(port) as line,
    ):
        provider.behaviour = dropping(provider.behaviour, line)
        connect = partial(Client, f"{line.url}/mcp")
        result = awaited(example["order"](connect, "c-1", "Z"))
    assert result.structured_content["result"] == {"id": "made_1"}
    assert (len(provider.requests), line.answers_dropped) == (1, 1)
    assert json.loads(provider.requests[0].partition(b"\r\n\r\n")[2])["sku"] == "Z"


def dropping(behaviour: Any, line: Any) -> Any:
    """The same, after which the next answer on the line is lost."""

    def behave(server: Any, connection: Any) -> None:
        line.drop_next_answer()
        behaviour(server, connection)

    return behave
