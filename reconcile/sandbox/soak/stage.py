"""What a soak plays on: ledger, provider, witness, a tool at every rail, webhooks at the door."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from effects.celery import app
from effects.models import Connection, Tool, Workspace
from ledger import queries
from reconcile import investigate
from reconcile.models import WebhookAddress
from reconcile.sandbox import surroundings
from reconcile.sandbox.soak.bank import GraphqlDoor, SqlBank
from reconcile.sandbox.soak.clocks import Clocks, say
from reconcile.sandbox.soak.rail import Account, Till
from reconcile.sandbox.soak.rails import RAILS
from reconcile.sandbox.soak.rails_bank import SQL
from reconcile.sandbox.soak.rails_stripe import STRIPE
from reconcile.sandbox.soak.witness import DOOR, Witness
from reconcile.sandbox.tools import WEBHOOK_SECRET_NAME

SECRET_PREFIX: Final = "COUNTERFOIL_SOAK_"  # noqa: S105 - the beginning of variables' names
PATIENCE: Final = timedelta(seconds=10)
"""A turn at an account that comes so soon, by the moved clocks, is waited for."""
SEARCH_LAG_SECONDS: Final = 3_600
WEBHOOKS: Final = {
    "duplicated_share": 0.2,
    "overtaken_share": 0.2,
    "lost_share": 0.2,
    "late_seconds": 30,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Everything that stands. `tools` are those by rail, and whether their look-ups go to the wrong
    account until `mend` is called."""

    provider_url: str
    witness: Witness
    till: Till
    clocks: Clocks
    bank: SqlBank
    workspace: Workspace
    tools: Mapping[tuple[str, bool], Tool]

    def mend(self) -> None:
        """Somebody enters the right secrets."""
        for account in _accounts():
            if account.wrong_secret:
                os.environ[_secret_name(account, misplaced=True)] = account.secret

    def webhooks_waiting(self) -> int:
        """How many webhooks the provider still means to deliver."""
        told = say(self.provider_url, "/_sandbox/counters")
        return int(told["webhooks"]["waiting"])


@contextmanager
def staged(folder: Path, seed: int) -> Iterator[Stage]:
    """The stage, until the block ends; nothing of it stays, and nothing of a demo is touched."""
    hook_secret = f"whsec_{secrets.token_hex(16)}"
    with surroundings.unwatched(folder, {WEBHOOK_SECRET_NAME: hook_secret}) as place:
        witness = Witness(
            provider=place.provider_url, seed=seed, graphql=GraphqlDoor(place.provider_url)
        )
        witness.door = place.api_url or ""
        bank = SqlBank(place.provider_url)
        clocks = Clocks(place.provider_url)
        witness.now = clocks.now
        with (
            witness.standing(),
            _given(settings, _settings(folder, witness, bank)),
            _given(app.conf, {"task_always_eager": True}),
            _given(investigate, {"time": _Waiting(clocks), "SOON": PATIENCE}),
            _secrets(bank),
        ):
            workspace = Workspace.objects.create(
                name="Halden Outdoor", slug="soak", mode="test", created_at=queries.clock()
            )
            stage = Stage(
                provider_url=place.provider_url,
                witness=witness,
                till=Till(place.provider_url),
                clocks=clocks,
                bank=bank,
                workspace=workspace,
                tools=_tools(workspace, witness.url, bank),
            )
            _hear(stage, hook_secret)
            try:
                yield stage
            finally:
                stage.till.client.close()


def _accounts() -> list[Account]:
    return list(dict.fromkeys(rail.account for rail in RAILS.values()))


def _secret_name(account: Account, *, misplaced: bool) -> str:
    return f"{SECRET_PREFIX}{account.kind.upper()}{'_MISPLACED' if misplaced else ''}"


class _Waiting:
    """Stands for the module `time` where a look-up waits for its turn: the clocks are moved on
    instead, so that a worker stays at an account and asks as fast as the account may be asked."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks

    def sleep(self, seconds: float) -> None:
        self._clocks.advance(seconds)


def _settings(folder: Path, witness: Witness, bank: SqlBank) -> dict[str, Any]:
    """Look-ups may reach what stands here; pace, and what this machine remembers of its ledger, are
    kept here alone."""
    return {
        "COUNTERFOIL_PRIVATE_ORIGINS": [witness.url, bank.url],
        "COUNTERFOIL_VALKEY_URL": "",
        "COUNTERFOIL_VAR": folder,
    }


@contextmanager
def _given(holder: object, values: Mapping[str, Any]) -> Iterator[None]:
    """These values until the block ends, then those of before."""
    before = {name: getattr(holder, name) for name in values}
    for name, value in values.items():
        setattr(holder, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(holder, name, value)


@contextmanager
def _secrets(bank: SqlBank) -> Iterator[None]:
    given = {
        **{_secret_name(one, misplaced=False): one.secret for one in _accounts()},
        **{_secret_name(one, misplaced=True): one.wrong_secret for one in _accounts()},
        _secret_name(SQL, misplaced=False): bank.password,
    }
    os.environ.update(given)
    try:
        yield
    finally:
        for name in given:
            os.environ.pop(name, None)


def _tools(workspace: Workspace, url: str, bank: SqlBank) -> Mapping[tuple[str, bool], Tool]:
    found = {}
    connections = {
        (account, misplaced): Connection.objects.create(
            workspace=workspace,
            name=f"{account.kind}{', misplaced' if misplaced else ''}",
            kind=account.kind,
            base_url=bank.url if account is SQL else url + account.prefix,
            account=account.misplaced_account if misplaced else account.account,
            secret_name=_secret_name(account, misplaced=misplaced),
        )
        for account in _accounts()
        for misplaced in ((False, True) if account.wrong_secret else (False,))
    }
    for rail in RAILS.values():
        for misplaced in (False, True):
            connection = connections.get((rail.account, misplaced))
            if connection is not None:
                made = rail.tool()
                name = f"{made.pop('name')}{'_misplaced' if misplaced else ''}"
                found[rail.name, misplaced] = Tool.objects.create(
                    workspace=workspace, connection=connection, name=name, **made
                )
    return found


def _hear(stage: Stage, secret: str) -> None:
    """The provider's webhooks go to the door by way of the witness: late, twice, out of order."""
    connection = Connection.objects.get(workspace=stage.workspace, name=STRIPE.kind)
    address = WebhookAddress.objects.create(
        connection=connection,
        public_id=secrets.token_urlsafe(24),
        secret_name=WEBHOOK_SECRET_NAME,
    )
    endpoint = {
        "scope": f"{STRIPE.account}/test",
        "url": f"{stage.witness.url}{DOOR}{address.public_id}",
        "secret": secret,
    }
    say(stage.provider_url, "/_sandbox/endpoints", endpoint)
    say(stage.provider_url, "/_sandbox/webhooks", WEBHOOKS)
    say(stage.provider_url, "/_sandbox/search", {"lag_seconds": SEARCH_LAG_SECONDS})
