"""One private copy of the product, made to be broken: every part can be killed and started again.

The test's own process is connected to its database, so that what is right can be asked directly.
"""

from __future__ import annotations

import io
import json
import os
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management import call_command
from django.db import DatabaseError, connection, connections

from effects.local import stack as local
from effects.local.ports import any_free_port
from effects.local.postgres import LocalPostgres, binaries
from effects.local.processes import Program
from effects.local.service import Service
from effects.local.valkey import LocalValkey
from effects.postgres_url import database_settings
from reconcile.sandbox.tools import (
    PLAIN_SECRET_NAME,
    PLAIN_TOKEN,
    READER_STRIPE_KEY,
    STRIPE_SECRET_NAME,
)
from tests.support import stack

WAIT_SECONDS_MAX = 60.0
POLL_SECONDS = 0.1


@dataclass(kw_only=True)
class Place:
    """Where the services are. None runs but PostgreSQL until somebody starts it."""

    folder: Path
    cluster: LocalPostgres
    broker: LocalValkey
    provider_url: str
    postgres: Service
    valkey: Service
    api_url: str = ""
    others: list[Service] = field(default_factory=list)

    @property
    def env(self) -> dict[str, str]:
        """The environment in which a process of ours belongs to this place."""
        return {
            "DATABASE_URL": self.cluster.url,
            "CELERY_BROKER_URL": self.broker.url,
            "REDIS_URL": self.broker.url,
            "COUNTERFOIL_VAR": str(self.folder),
            "COUNTERFOIL_SECRET_KEY": "k" * 50,
            "COUNTERFOIL_PRIVATE_ORIGINS": self.provider_url,
            "DJANGO_SETTINGS_MODULE": "effects.settings",
            STRIPE_SECRET_NAME: READER_STRIPE_KEY,
            PLAIN_SECRET_NAME: PLAIN_TOKEN,
            "TEST_STRIPE_KEY": READER_STRIPE_KEY,
            "TEST_PLAIN_TOKEN": PLAIN_TOKEN,
        }

    def an_api(self) -> Service:
        self.api_url, program = stack.door(
            "api", "wsgi", "effects.wsgi:application", env={**os.environ, **self.env}
        )
        return self._started(program)

    def psql(self, *arguments: str) -> None:
        """Run the cluster's own client as the owner of everything."""
        argv = [str(binaries() / "psql"), "-q", "-v", "ON_ERROR_STOP=1", self.cluster.url]
        subprocess.run([*argv, *arguments], check=True, capture_output=True, timeout=60)

    def a_worker(self, name: str = "worker", *, processes: int = 1) -> Service:
        return self._started(local.worker(self.env, name=name, processes=processes))

    def a_beat(self, name: str = "beat") -> Service:
        # Two schedulers share no file; whether they may share the work is what is asked here.
        return self._started(local.beat(self.env, name=name, schedule=self.folder / f"{name}.db"))

    def _started(self, program: Program) -> Service:
        service = Service(program, self.folder / f"{program.name}.log")
        self.others.append(service)
        service.start()
        return service

    def forget(self, service: Service) -> None:
        service.stop()
        self.others.remove(service)

    def restart_postgres(self) -> None:
        """Start it again, and let go of this process's connection, which is dead."""
        connections.close_all()
        self.postgres.start()

    def log(self, service: Service) -> str:
        return service.log.read_text(errors="replace")


@contextmanager
def a_place(folder: Path, *, provider_url: str, schema_of: str) -> Iterator[Place]:
    """A place until the block ends. Its database begins as a copy of the one at `schema_of`."""
    cluster, broker = (
        kind(home=folder / name, port=any_free_port(), password=secrets.token_urlsafe(24), **more)
        for kind, name, more in (
            (LocalPostgres, "postgres", {"durable": False}),
            (LocalValkey, "valkey", {}),
        )
    )
    assert isinstance(cluster, LocalPostgres)
    assert isinstance(broker, LocalValkey)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "static").mkdir()
    cluster.initialise()
    place = Place(
        folder=folder,
        cluster=cluster,
        broker=broker,
        provider_url=provider_url,
        postgres=Service(cluster.program(), folder / "postgres.log"),
        valkey=Service(broker.program(), folder / "valkey.log"),
    )
    try:
        place.postgres.start()
        copied = _copied(schema_of, cluster.url)
        with connected(cluster.url):
            if not copied:
                call_command("migrate", verbosity=0)
            yield place
    finally:
        for service in (*reversed(place.others), place.valkey, place.postgres):
            service.stop()


def _copied(source: str, target: str) -> bool:
    """Copy a database that this run has migrated already, which takes a tenth of the time. False:
    nobody has asked for one in this run, so there is nothing to copy."""
    dumped = _tool("pg_dump", source)
    if b"django_migrations" not in dumped:
        return False
    # Roles are the cluster's: agents that other tests gave one are named in the dump's grants. The
    # owner is there already, which is no reason to stop.
    roles = _tool("pg_dumpall", "--roles-only", "--no-role-passwords", "-d", source)
    _tool("psql", "-q", target, text=roles)
    _tool("psql", "-q", "-v", "ON_ERROR_STOP=1", target, text=dumped)
    return True


def _tool(name: str, *arguments: str, text: bytes | None = None) -> bytes:
    """What one of PostgreSQL's own programs prints."""
    argv = [str(binaries() / name), *arguments]
    done = subprocess.run(argv, input=text, check=False, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


@contextmanager
def connected(database_url: str) -> Iterator[None]:
    """Let this process's connection lead there, as Django's own test runner does it."""
    before = dict(connection.settings_dict)
    connections.close_all()
    connection.settings_dict.update(database_settings(database_url, keep_seconds=0))
    origins, settings.COUNTERFOIL_PRIVATE_ORIGINS = settings.COUNTERFOIL_PRIVATE_ORIGINS, []
    try:
        yield
    finally:
        settings.COUNTERFOIL_PRIVATE_ORIGINS = origins
        connections.close_all()
        connection.settings_dict.clear()
        connection.settings_dict.update(before)


@contextmanager
def through(port: int) -> Iterator[None]:
    """Let this process's connection take another way to the same database: a line to be cut."""
    connection.close()
    before, connection.settings_dict["PORT"] = connection.settings_dict["PORT"], port
    try:
        yield
    finally:
        connection.settings_dict["PORT"] = before
        connection.close()


def eventually[T](ask: Callable[[], T], wanted: Callable[[T], bool], what: str) -> T:
    """Ask until the answer is as wanted. A database that is away meanwhile is asked again."""
    until = time.monotonic() + WAIT_SECONDS_MAX
    while True:
        try:
            answer: Any = ask()
            if wanted(answer):
                return answer  # type: ignore[no-any-return] # it is what was asked for
        except DatabaseError as error:
            connection.close()
            answer = error
        assert time.monotonic() < until, f"{what}: still {answer!r} after {WAIT_SECONDS_MAX} s"
        time.sleep(POLL_SECONDS)


def unsound() -> list[str]:
    """What `manage.py verify_ledger` finds wrong with the record; the tests' clock may move."""
    said = io.StringIO()
    with suppress(SystemExit):
        call_command("verify_ledger", "--json", "--clock-may-move", stdout=said)
    told = json.loads(said.getvalue())
    return [
        f"{check['id']} {check['sentence']} {difference['of']}: {difference['says']}"
        for check in told["checks"]
        for difference in check["differences"]
    ]
