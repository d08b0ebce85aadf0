"""Servers of the operator's own, by address: nothing embedded is started, and everything works.

Slow, because each is a whole start. Debian's servers are used where they are installed; our
embedded ones, reached by address like any other, stand in for PostgreSQL 18 and for Valkey.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from effects.local.ports import any_free_port
from effects.local.postgres import LocalPostgres
from effects.local.valkey import LocalValkey
from tests.support import debian, stack
from tests.support.debian import Server
from tests.support.upstack import Up, bare_env, start

pytestmark = pytest.mark.slow
KEY = "k" * 50
READY_SECONDS_MAX = 60


def embedded_valkey(folder: Path) -> Server:
    server = LocalValkey(home=folder, port=any_free_port(), password="external")
    return Server(url=server.url, program=server.program())


BROKERS = [
    pytest.param(embedded_valkey, id="Valkey"),
    pytest.param(debian.redis_server, id="Debian's Redis"),
    pytest.param(debian.rabbitmq_server, id="Debian's RabbitMQ"),
]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[str]:
    """A PostgreSQL 18 that belongs to somebody else."""
    cluster = LocalPostgres(home=tmp_path / "theirs", port=any_free_port(), password="external")
    cluster.initialise()
    with stack.running(cluster.program(), log=tmp_path / "postgres.log"):
        yield cluster.url


@pytest.fixture
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    make: Callable[[Path], Server | None] = request.param
    server = make(tmp_path / "broker")
    if server is None:
        pytest.skip(f"{request.node.callspec.id} is not installed on this machine")
    with stack.running(server.program, log=tmp_path / "broker.log"):
        yield server.url


@pytest.fixture
def up(tmp_path: Path, database: str, broker: str) -> Iterator[Up]:
    env = bare_env(
        tmp_path / "var",
        DATABASE_URL=database,
        CELERY_BROKER_URL=broker,
        COUNTERFOIL_SECRET_KEY=KEY,
    )
    up = start(env)
    yield up
    if up.process.poll() is None:
        up.interrupt()


@pytest.mark.parametrize("broker", BROKERS, indirect=True)
def test_with_addresses_given_everything_is_ready_and_nothing_embedded_runs(up: Up) -> None:
    until = time.monotonic() + READY_SECONDS_MAX
    while (said := readiness(up))["status"] != "ok" and time.monotonic() < until:
        time.sleep(0.5)

    assert said["checks"] == dict.fromkeys(
        ("database", "migrations", "broker", "worker", "beat"), "ok"
    )
    var = Path(up.env["COUNTERFOIL_VAR"])
    assert not (var / "postgres").exists()
    assert not (var / "valkey").exists()
    stopped = [line.split()[2] for line in up.interrupt().splitlines() if " stopped in " in line]
    assert set(stopped) == {"desk", "api", "worker", "beat"}
    assert up.process.returncode == 0


def readiness(up: Up) -> dict[str, object]:
    try:
        with urllib.request.urlopen(f"{up.api}/readyz", timeout=10) as answer:
            told = json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            told = json.load(refused)
    assert isinstance(told, dict)
    return told


def test_the_machines_own_postgres_is_served_or_refused_by_its_version(tmp_path: Path) -> None:
    server = debian.postgres_server(tmp_path / "theirs")
    if server is None:
        pytest.skip("No PostgreSQL is installed on this machine")
    with stack.running(server.program, log=tmp_path / "postgres.log"):
        done = subprocess.run(
            [sys.executable, str(stack.ROOT / "manage.py"), "prepare"],
            env=bare_env(tmp_path / "var", DATABASE_URL=server.url, COUNTERFOIL_SECRET_KEY=KEY),
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
    version = int(Path(server.program.argv[0]).parts[-3])
    if version >= 18:
        assert done.returncode == 0, done.stderr
    else:
        assert done.returncode == 1
        assert f"(effects.E020) The database is PostgreSQL {version}" in done.stderr
        assert "HINT: The ledger's functions need PostgreSQL 18 or newer." in done.stderr
