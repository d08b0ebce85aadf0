"""Without its SDK an integration says which extra is missing; the client itself needs none."""

import runpy
import sys

import pytest

from tests.support.stack import ROOT


@pytest.mark.parametrize(
    ("module", "sdk", "extra"),
    [
        ("anthropic", "anthropic", "anthropic"),
        ("openai", "openai", "openai"),
        ("openai_agents", "agents", "openai-agents"),
        ("langchain", "langchain_core.messages", "langgraph"),
        ("langgraph", "langgraph.types", "langgraph"),
        ("mcp", "mcp_types", "mcp"),
    ],
)
def test_an_integration_without_its_sdk_names_the_extra(monkeypatch, module, sdk, extra):
    monkeypatch.setitem(sys.modules, sdk, None)
    with pytest.raises(ImportError, match=rf"counterfoil\[{extra}\]"):
        runpy.run_path(str(ROOT / "effects" / "client" / "integrations" / f"{module}.py"))
