"""A shop with a real ledger, and a payment tool that counts how often it really ran."""

from __future__ import annotations

import asyncio
import contextlib
import os
import runpy
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from unittest import mock

from effects.client import AsyncCall, AsyncLedger, Call, Ledger, effect
from effects.client.integrations.events import Events
from effects.client.integrations.toolbox import AsyncToolbox, Toolbox
from effects.core.vocabulary import EffectClass, TokenScope
from effects.models import Tool as RegisteredTool
from effects.models import Workspace
from ledger import auth
from ledger.models import Claim
from tests.effects.client.scripted_ledger import QUICK
from tests.support.model_server import ModelServer
from tests.support.stack import ROOT

CONVERSATION = "c-1"
PAY = ("send_payment", {"amount": 1200})
PAY_MORE = ("send_payment", {"amount": 7})


def lose_the_answer(_: object) -> None:
    raise TimeoutError


async def never_answer(_: object) -> None:
    await asyncio.Event().wait()


async def until_paid(till: Till, times: int) -> None:
    """Waits until so many payments have begun; 10 s at most."""
    async with asyncio.timeout(10):
        while len(till.paid) < times:  # noqa: ASYNC110 - a plain list, also filled by threads
            await asyncio.sleep(0.01)


@dataclass
class Till:
    """`paid` holds the amounts of the payments that really ran; `send` is called in each. Without a
    workspace the ledger is one that nobody should ask."""

    url: str
    token: str
    workspace: Workspace | None = None
    send: Callable[[Any], Any] | None = None
    paid: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextlib.contextmanager
    def tools(self, *, records: bool = False) -> Iterator[Toolbox]:
        """The tools of a new agent."""
        with (
            Ledger(self.url, self.token, patience=QUICK) as ledger,
            Events(self.url, self.token, "an-agent") as events,
        ):

            @effect(ledger, effect_class="keyed_write", object_from="id")
            def send_payment(call: Call, *, amount: int) -> dict[str, Any]:
                """Send a payment of `amount` cents."""
                self._pay(amount)
                if self.send is not None:
                    self.send(call)
                return {"id": f"pi_{amount}", "amount": amount}

            @effect(ledger, effect_class="read")
            def find_order(*, number: int) -> dict[str, Any]:
                """Find an order by its number."""
                if number < 0:
                    raise LookupError("the password of the database is hunter2")
                return {"number": number, "owed": 1200}

            yield Toolbox(ledger, send_payment, find_order, events=events if records else None)

    @contextlib.asynccontextmanager
    async def async_tools(self) -> AsyncIterator[AsyncToolbox]:
        async with AsyncLedger(self.url, self.token, patience=QUICK) as ledger:

            @effect(ledger, effect_class="keyed_write", object_from="id")
            async def send_payment(call: AsyncCall, *, amount: int) -> dict[str, Any]:
                """Send a payment of `amount` cents."""
                self._pay(amount)
                if self.send is not None:
                    await self.send(call)
                return {"id": f"pi_{amount}", "amount": amount}

            yield AsyncToolbox(ledger, send_payment)

    def _pay(self, amount: int) -> None:
        with self._lock:
            self.paid.append(amount)

    def claims(self) -> list[Claim]:
        """Every claim of the shop, in the order in which the model asked."""
        return list(Claim.objects.filter(workspace=self.workspace).order_by("position", "id"))

    def granted(self, name: str) -> dict[tuple[int | None, int], Any]:
        """What each claim's grant says under this name, by its turn and position."""
        return {
            (claim.turn_index, claim.position): (claim.attempts.get().granted_data or {}).get(name)
            for claim in self.claims()
        }

    def example_env(self, model: ModelServer, provider_url: str) -> dict[str, str]:
        """The environment of the documented examples, whichever SDK they use."""
        return {
            "COUNTERFOIL_URL": self.url,
            "COUNTERFOIL_TOKEN": self.token,
            "PROVIDER_URL": provider_url,
            "ANTHROPIC_BASE_URL": model.url,
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_MODEL": "scripted-1",
            "OPENAI_BASE_URL": model.openai_url,
            "OPENAI_API_KEY": "none",
            "OPENAI_MODEL": "scripted-1",
        }


def run_example(name: str, env: dict[str, str]) -> None:
    """Runs a documented example in this process, as a program: its SDK is loaded already."""
    program = str(ROOT / "docs" / "examples" / name)
    with (
        mock.patch.dict(os.environ, env),
        mock.patch("sys.argv", [program, CONVERSATION, "Pay."]),
        ThreadPoolExecutor(1) as own,
    ):
        own.submit(runpy.run_path, program, run_name="__main__").result()


def open_till(url: str) -> Till:
    shop = Workspace.objects.create(
        name="Shop", slug="shop", created_at=datetime(2026, 1, 1, tzinfo=UTC)
    )
    RegisteredTool.objects.create(
        workspace=shop,
        name="send_payment",
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
    )
    _, token = auth.issue(shop, "an agent", (TokenScope.CLAIM, TokenScope.INGEST), user=None)
    return Till(url=url, token=token, workspace=shop)
