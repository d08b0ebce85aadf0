"""The servers of the machine's own distribution, where they are installed: as a process of ours."""

from __future__ import annotations

import shutil
import signal
from dataclasses import dataclass
from pathlib import Path

import psycopg
import redis
from kombu import Connection
from kombu.exceptions import OperationalError

from effects.local.ports import LOOPBACK, any_free_port
from effects.local.postgres import identity
from effects.local.processes import Program, run_to_end

RABBITMQ_SCRIPTS = "/usr/lib/rabbitmq/bin"
POSTGRES_FOLDERS = "/usr/lib/postgresql"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One server and the address at which it can be reached once its program is ready."""

    url: str
    program: Program


def redis_server(folder: Path) -> Server | None:
    """Debian's Redis, or None where it is not installed."""
    binary = shutil.which("redis-server")
    if binary is None:
        return None
    port = any_free_port()
    url = f"redis://{LOOPBACK}:{port}/0"
    folder.mkdir(parents=True)
    where = ("--port", str(port), "--bind", LOOPBACK, "--dir", str(folder), "--save", "")
    program = Program(name="redis", argv=(binary, *where), ready=lambda: _redis_answers(url))
    return Server(url=url, program=program)


def _redis_answers(url: str) -> bool:
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=1) as client:
            return bool(client.ping())
    except (redis.exceptions.RedisError, OSError):
        return False


def rabbitmq_server(folder: Path) -> Server | None:
    """Debian's RabbitMQ, or None where it is not installed."""
    # The one on the path changes to another user first; this one runs as whoever starts it.
    binary = shutil.which("rabbitmq-server", path=RABBITMQ_SCRIPTS) or shutil.which(
        "rabbitmq-server"
    )
    if binary is None:
        return None
    port, distribution_port = any_free_port(), any_free_port()
    url = f"amqp://guest:guest@{LOOPBACK}:{port}//"
    folder.mkdir(parents=True)
    env = {
        "HOME": str(folder),
        "RABBITMQ_NODENAME": f"counterfoil-{port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": LOOPBACK,
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_MNESIA_BASE": str(folder),
        "RABBITMQ_LOG_BASE": str(folder),
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "plugins"),
    }
    program = Program(
        name="rabbitmq", argv=(binary,), env=env, ready=lambda: _amqp_answers(url), stop_seconds=30
    )
    return Server(url=url, program=program)


def _amqp_answers(url: str) -> bool:
    try:
        with Connection(url, connect_timeout=2) as broker:
            broker.ensure_connection(max_retries=1, interval_start=0, timeout=2)
    except (OperationalError, OSError):
        return False
    return True


def postgres_server(folder: Path) -> Server | None:
    """The newest PostgreSQL of the machine's own, with a new cluster, or None."""
    found = sorted(
        Path(POSTGRES_FOLDERS).glob("*/bin/postgres"), key=lambda path: int(path.parts[-3])
    )
    if not found:
        return None
    binaries, data, port = found[-1].parent, folder / "data", any_free_port()
    data.mkdir(mode=0o700, parents=True)
    options = ("-D", str(data), "-U", "counterfoil", "--auth=trust", "-E", "UTF8", "--locale=C")
    initdb = Program(name="initdb", argv=(str(binaries / "initdb"), *options), identity=identity())
    run_to_end(initdb, seconds_max=60)
    url = f"postgresql://counterfoil@{LOOPBACK}:{port}/postgres"
    where = ("-D", str(data), "-h", LOOPBACK, "-p", str(port), "-k", "")
    program = Program(
        name="postgres",
        argv=(str(binaries / "postgres"), *where),
        stop_signal=signal.SIGINT,
        identity=identity(),
        ready=lambda: _postgres_answers(url),
    )
    return Server(url=url, program=program)


def _postgres_answers(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True
