"""What a storm needs around it, all of it private: a database, the api's door, the provider.

Nothing of a running demo is touched, and nothing stays: the database is dropped at the end, and
every process is on a leash that ends with this one.
"""

from __future__ import annotations

import os
import secrets
import sys
import threading
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import psycopg
from django.conf import settings
from django.db import connection, connections
from psycopg import sql

from effects.local import stack
from effects.local.ports import LOOPBACK, any_free_port
from effects.local.postgres import LocalPostgres
from effects.local.processes import Program, run_to_end
from effects.local.service import Service
from effects.local.valkey import LocalValkey
from effects.postgres_url import database_settings
from ledger import append
from reconcile import tasks, webhook_apply
from reconcile.sandbox.tools import (
    PLAIN_SECRET_NAME,
    PLAIN_TOKEN,
    READER_STRIPE_KEY,
    STRIPE_SECRET_NAME,
)

API_PROCESSES: Final = 1
API_THREADS: Final = 96
"""Every agent that waits for an outcome holds one."""
MIGRATE_SECONDS_MAX: Final = 120
WORKERS: Final = 2
FINDERS: Final = 3
FIND_EVERY_SECONDS: Final = 0.25
LOOKUPS_MAX: Final = 20
SWEPT_MAX: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """Where things are. `truth_folder` holds the provider's truth files.

    `database`, `broker` and `workers` are there if they were made to be broken.
    """

    provider_url: str
    truth_folder: Path
    api_url: str | None
    database: Service | None = None
    broker: Service | None = None
    workers: tuple[Service, ...] = ()


@contextmanager
def provider_alone(folder: Path) -> Iterator[Surroundings]:
    """A world without a ledger: the provider, and nothing else."""
    with ExitStack() as running:
        yield Surroundings(
            provider_url=_provider(running, folder),
            truth_folder=folder / "provider",
            api_url=None,
        )


@contextmanager
def whole(folder: Path) -> Iterator[Surroundings]:
    """The provider, a new database with the ledger in it, its api, and somebody who finds out.

    This process's own connection leads to the new database until the block ends.
    """
    with ExitStack() as running:
        provider_url = _provider(running, folder)
        _let_look_ups_reach(provider_url)
        database_url = running.enter_context(_database(folder))
        env = _environment(folder, database_url, provider_url)
        _migrate(env)
        running.enter_context(_connected(database_url))
        api_url = _api(running, folder, env)
        running.enter_context(_finding_out())
        yield Surroundings(
            provider_url=provider_url, truth_folder=folder / "provider", api_url=api_url
        )


@contextmanager
def breakable(folder: Path) -> Iterator[Surroundings]:
    """The same with every part a process of its own that may be killed: database, broker, workers.

    Nothing that this process was given is used: what is killed here is ours alone.
    """
    with ExitStack() as running:
        provider_url = _provider(running, folder)
        cluster, broker = _own_services(folder)
        database = _service(running, cluster.program(), folder)
        valkey = _service(running, broker.program(), folder)
        env = _environment(folder, cluster.url, provider_url) | {"CELERY_BROKER_URL": broker.url}
        _migrate(env)
        running.enter_context(_connected(cluster.url))
        api_url = _api(running, folder, env)
        workers = tuple(
            _service(running, stack.worker(env, name=f"worker-{n}", processes=2), folder)
            for n in range(WORKERS)
        )
        _service(running, stack.beat(env), folder)
        yield Surroundings(
            provider_url=provider_url,
            truth_folder=folder / "provider",
            api_url=api_url,
            database=database,
            broker=valkey,
            workers=workers,
        )


@contextmanager
def unwatched(folder: Path, secrets: Mapping[str, str]) -> Iterator[Surroundings]:
    """The same in a cluster of its own, and with nobody who finds out: whoever asked for it does.

    `secrets` are environment variables of the api, by their names.
    """
    with ExitStack() as running:
        provider_url = _provider(running, folder)
        cluster, _ = _own_services(folder)
        database = _service(running, cluster.program(), folder)
        env = {**_environment(folder, cluster.url, provider_url), **secrets}
        _migrate(env)
        running.enter_context(_connected(cluster.url))
        yield Surroundings(
            provider_url=provider_url,
            truth_folder=folder / "provider",
            api_url=_api(running, folder, env),
            database=database,
        )


def _own_services(folder: Path) -> tuple[LocalPostgres, LocalValkey]:
    cluster = LocalPostgres(
        home=folder / "postgres",
        port=any_free_port(),
        password=secrets.token_urlsafe(24),
        durable=False,
    )
    cluster.initialise()
    broker = LocalValkey(
        home=folder / "valkey", port=any_free_port(), password=secrets.token_urlsafe(24)
    )
    return cluster, broker


def _environment(folder: Path, database_url: str, provider_url: str) -> dict[str, str]:
    return {
        "DATABASE_URL": database_url,
        "COUNTERFOIL_VAR": str(folder),
        "COUNTERFOIL_SECRET_KEY": secrets.token_urlsafe(48),
        "COUNTERFOIL_PRIVATE_ORIGINS": provider_url,
        STRIPE_SECRET_NAME: READER_STRIPE_KEY,
        PLAIN_SECRET_NAME: PLAIN_TOKEN,
        "DJANGO_SETTINGS_MODULE": "effects.settings",
    }


def _migrate(env: dict[str, str]) -> None:
    manage = (sys.executable, str(stack.BASE / "manage.py"))
    migrate = Program(name="migrate", argv=(*manage, "migrate", "-v0"), env=env)
    run_to_end(migrate, seconds_max=MIGRATE_SECONDS_MAX)


def _service(running: ExitStack, program: Program, folder: Path) -> Service:
    service = Service(program, folder / f"{program.name}.log")
    running.callback(service.stop)
    service.start()
    return service


def _provider(running: ExitStack, folder: Path) -> str:
    port = any_free_port()
    url = f"http://{LOOPBACK}:{port}"
    module = (sys.executable, "-m", "reconcile.sandbox.provider")
    program = Program(
        name="provider",
        argv=(*module, "--folder", str(folder / "provider"), "--port", str(port)),
        env={"PYTHONPATH": str(stack.BASE)},
        ready=stack.answers(f"{url}/_sandbox/health"),
    )
    _service(running, program, folder)
    return url


def _api(running: ExitStack, folder: Path, env: dict[str, str]) -> str:
    port = any_free_port()
    url = f"http://{LOOPBACK}:{port}"
    granian = (sys.executable, "-m", "granian", "--working-dir", str(stack.BASE))
    door = ("--interface", "wsgi", "--host", LOOPBACK, "--port", str(port))
    threads = ("--workers", str(API_PROCESSES), "--blocking-threads", str(API_THREADS))
    care = ("--workers-kill-timeout", "2", "--log-level", "warning")
    program = Program(
        name="api",
        argv=(*granian, *door, *threads, *care, "effects.wsgi:application"),
        env=env,
        ready=stack.answers(f"{url}/healthz"),
    )
    _service(running, program, folder)
    return url


@contextmanager
def _database(folder: Path) -> Iterator[str]:
    """A new database: beside the one that this process was given, or in a cluster of its own."""
    if settings.ENVIRONMENT.database_url is None:
        cluster, _ = _own_services(folder)
        with ExitStack() as running:
            _service(running, cluster.program(), folder)
            yield cluster.url
        return
    given = settings.ENVIRONMENT.database_url
    name = f"counterfoil_storm_{os.getpid()}"
    with psycopg.connect(given, autocommit=True) as server:
        server.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            yield psycopg_url(given, name)
        finally:
            drop = sql.SQL("drop database if exists {} with (force)")
            server.execute(drop.format(sql.Identifier(name)))


def psycopg_url(url: str, name: str) -> str:
    """The same server, user and options, another database."""
    address, question, options = url.partition("?")
    return f"{address.rsplit('/', 1)[0]}/{name}{question}{options}"


@contextmanager
def _connected(database_url: str) -> Iterator[None]:
    """Let this process's connections lead there, as Django's own test runner does it."""
    before = dict(connection.settings_dict)
    connections.close_all()
    connection.settings_dict.update(database_settings(database_url, keep_seconds=0))
    try:
        yield
    finally:
        connections.close_all()
        connection.settings_dict.update(before)


def _let_look_ups_reach(provider_url: str) -> None:
    settings.COUNTERFOIL_PRIVATE_ORIGINS = [provider_url]
    os.environ[STRIPE_SECRET_NAME] = READER_STRIPE_KEY
    os.environ[PLAIN_SECRET_NAME] = PLAIN_TOKEN


@contextmanager
def _finding_out() -> Iterator[None]:
    """Do in threads of this process what beat and the Celery workers do: the same functions."""
    over = threading.Event()
    finders = [threading.Thread(target=_find, args=(over,)) for _ in range(FINDERS)]
    for finder in finders:
        finder.start()
    try:
        yield
    finally:
        over.set()
        for finder in finders:
            finder.join()


def _find(over: threading.Event) -> None:
    try:
        while not over.wait(FIND_EVERY_SECONDS):
            append.sweep(SWEPT_MAX)
            for due in append.take_due_lookups(LOOKUPS_MAX, tasks.LEASE_SECONDS):
                tasks.look(due.workspace_id, str(due.claim_id))
            for delivery_id in webhook_apply.due(LOOKUPS_MAX):
                webhook_apply.apply(delivery_id)
            for delivery_id in webhook_apply.take_reads(LOOKUPS_MAX, tasks.LEASE_SECONDS):
                webhook_apply.read_afresh(delivery_id)
    finally:
        connections.close_all()


def ask_provider(url: str, path: str) -> bytes:
    """One control question to the provider."""
    with urllib.request.urlopen(url + path, timeout=10) as answer:  # noqa: S310 - on loopback.
        body: bytes = answer.read()
        return body
