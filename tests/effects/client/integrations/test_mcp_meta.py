"""How a call is known again over MCP, and what a server's hints are worth."""

from __future__ import annotations

import importlib
import re
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types import ToolAnnotations

from effects.client import NoIdentity, ToolCall
from effects.client.integrations import mcp as members
from effects.client.integrations.mcp import (
    PREFIX,
    annotations_of,
    hinted_class,
    meta_of,
    place_of,
)
from effects.core.vocabulary import EffectClass

NAMES = st.text(st.characters(codec="utf-8", exclude_categories=["C"]), min_size=1, max_size=40)
CALLS = st.builds(
    ToolCall,
    conversation=NAMES,
    turn_index=st.integers(0, 2**31 - 1),
    position=st.integers(0, 100),
    ordinal=st.integers(0, 100),
    response_id=st.none() | NAMES,
    call_id=st.none() | NAMES,
    caller_key=st.none() | NAMES,
)


@given(CALLS)
@settings(deadline=None, max_examples=30)
def test_an_identity_comes_out_of_meta_as_it_went_in(at: ToolCall) -> None:
    assert place_of({**meta_of(at), "progressToken": 3}) == at


@pytest.mark.parametrize(
    "meta",
    [
        pytest.param(None, id="no meta"),
        pytest.param({}, id="an empty one"),
        pytest.param({members.CALL_META: {}}, id="a call of nothing"),
        pytest.param({members.CALL_META: {"conversation": "c"}}, id="no turn"),
        pytest.param({members.CALL_META: {"turn_index": 1}}, id="no conversation"),
        pytest.param({members.CALL_META: "c-1"}, id="text for an object"),
        pytest.param({members.KEY_META: 7}, id="a number for a key"),
        pytest.param(
            {members.CALL_META: {"conversation": "c", "turn_index": "1"}}, id="text for a number"
        ),
        pytest.param(
            {members.CALL_META: {"conversation": "c", "turn_index": -1}}, id="a turn before all"
        ),
        pytest.param(
            {members.CALL_META: {"conversation": "c" * 256, "turn_index": 1}}, id="too long"
        ),
        pytest.param(
            {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}, id="others' members"
        ),
    ],
)
def test_what_is_no_identity_is_refused(meta: dict[str, Any] | None) -> None:
    with pytest.raises(NoIdentity):
        place_of(meta)


def test_the_members_of_meta_are_named_as_the_protocol_allows() -> None:
    named = {value for name, value in vars(members).items() if name.endswith("_META")}
    assert len(named) == 5
    for name in named:
        assert name.startswith(PREFIX)
        assert re.fullmatch(r"(?:[a-z](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9-]+/[a-zA-Z0-9-]+", name)
    assert PREFIX.split(".")[1].rstrip("/") not in {"mcp", "modelcontextprotocol"}


@pytest.mark.parametrize(
    ("kind", "hints"),
    [
        (EffectClass.READ, (True, False, True)),
        (EffectClass.KEYED_WRITE, (False, True, False)),
        (EffectClass.UNKEYED_WRITE, (False, True, False)),
    ],
)
def test_a_write_is_shown_as_the_worst_and_never_as_idempotent(
    kind: EffectClass, hints: tuple[bool, bool, bool]
) -> None:
    shown = annotations_of(kind)
    assert (shown.read_only_hint, shown.destructive_hint, shown.idempotent_hint) == hints


@pytest.mark.parametrize(
    ("hints", "kind"),
    [
        (None, EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(idempotent_hint=True), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(destructive_hint=False), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(read_only_hint=False), EffectClass.UNKEYED_WRITE),
        (ToolAnnotations(read_only_hint=True), EffectClass.READ),
    ],
)
def test_an_absent_hint_means_the_worst(hints: ToolAnnotations | None, kind: EffectClass) -> None:
    assert hinted_class(hints) is kind


@pytest.mark.parametrize("side", ["mcp", "mcp_server", "mcp_client"])
def test_without_mcp_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, side: str) -> None:
    name = f"effects.client.integrations.{side}"
    monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp_types", None)
    with pytest.raises(ImportError, match=r"counterfoil\[mcp\]"):
        importlib.import_module(name)
