"""What an admin is told about a look-up before it is saved."""

from __future__ import annotations

from typing import Any

import pytest

from reconcile.lookups import LOOKUPS, fault_of

HTTP = {"url": "/x/{key}", "map": {"done": "found"}}


@pytest.mark.parametrize(
    ("kind", "config", "connection_kind"),
    [
        pytest.param("", {}, None, id="nobody can be asked"),
        pytest.param("stripe.payment_intents", {}, "stripe", id="as it comes"),
        pytest.param(
            "stripe.refunds", {"marker_in_every_request": True}, "stripe", id="with a promise"
        ),
        pytest.param("http", HTTP, "http", id="the smallest of our own"),
    ],
)
def test_an_entry_that_can_be_used(
    kind: str, config: dict[str, Any], connection_kind: str | None
) -> None:
    assert fault_of(kind, config, connection_kind=connection_kind) is None


@pytest.mark.parametrize(
    ("kind", "config", "connection_kind", "said"),
    [
        pytest.param("soap", {}, "http", "no look-up", id="no such kind"),
        pytest.param("http", HTTP, None, "needs a connection", id="without a connection"),
        pytest.param("http", HTTP, "stripe", "needs a connection", id="another kind of connection"),
        pytest.param("http", {}, "http", "url", id="an empty entry"),
        pytest.param("stripe.refunds", HTTP, "stripe", "url", id="an entry of another kind"),
        pytest.param(
            "stripe.refunds", {"marker_in_every_request": "yes"}, "stripe", "marker", id="no yes"
        ),
    ],
)
def test_an_entry_that_cannot_be_used_is_refused_in_a_sentence(
    kind: str, config: dict[str, Any], connection_kind: str | None, said: str
) -> None:
    fault = fault_of(kind, config, connection_kind=connection_kind)

    assert fault is not None
    assert said in fault
    assert fault.endswith(".")


def test_every_look_up_has_a_name_for_people() -> None:
    assert len({lookup.label for lookup in LOOKUPS.values()}) == len(LOOKUPS)
