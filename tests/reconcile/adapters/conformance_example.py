"""The stage of the adapter that the docs go through: what is shown there obeys the laws."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any, override

from reconcile.adapters.guard import guarded
from tests.reconcile.adapters.conformance import Answer, Asked, Dialect, Prop, Said, Shown
from tests.reconcile.adapters.conformance_http import answered
from tests.support.stack import ROOT

_STATE = {Said.THERE: "delivered", Said.PENDING: "booked", Said.UNHEARD_OF: "adrift"}


def _load() -> Any:
    spec = spec_from_file_location("harbor_adapter", ROOT / "docs" / "examples" / "adapter.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Harbor(Dialect):
    name = "the example of the docs"
    lookup = guarded(_load().LOOKUPS[0])
    config = {}
    cannot = {
        Prop.PAGES: "it answers with everything at once",
        Prop.OTHERS: "what is filtered by reference shows nobody else's",
    }

    @override
    def answer(self, asked: Asked, shown: Sequence[Shown], *, account: str) -> Answer:
        shipments = [
            {
                "id": one.id,
                "ref": one.marker,
                "state": _STATE[one.said],
                "price": one.amount,
                "currency": "EUR",
                "sandbox": not one.live,
            }
            for one in shown
            if one.marker == asked.params["ref"]
        ]
        return answered({"account": account, "shipments": shipments})


DIALECTS = (Harbor(),)
