"""The whole product on one machine: what `manage.py up` starts, in which order, and with what."""

import fcntl
import json
import os
import socket
import sys
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from effects.environment import RUNNING_FILE, Environment
from effects.local import postgres, valkey
from effects.local.ports import LOOPBACK, PortTaken, free_port_from, is_free
from effects.local.postgres import LocalPostgres
from effects.local.processes import Program
from effects.local.secret import kept_secret
from effects.local.valkey import LocalValkey

BASE = Path(__file__).resolve().parents[2]

WORKER_PROCESSES = 2
# One desk process watches for news once; a second would ask the same again. One api process is as
# fast as the two cores of a small machine, which the database needs as well.
DESK_PROCESSES = 1
API_PROCESSES = 1
# Agents that wait for an answer each hold a thread.
API_THREADS = 32
KILL_SECONDS = 8
ANSWER_SECONDS_MAX = 2


class AlreadyRuns(Exception):
    """Another `up` owns the data folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What will be started: the doors' ports, the embedded services, the children's environment."""

    var: Path
    desk_port: int
    api_port: int
    sandbox_port: int
    desk_url: str
    api_url: str
    postgres: LocalPostgres | None
    valkey: LocalValkey | None
    env: Mapping[str, str]


def make_plan(environment: Environment, *, secret_key: str) -> Plan:
    """Choose ports and services. Where a URL was given, nothing embedded takes its place.

    Raises `PortTaken` if a port that was said is not free; a default gives way to the next one.
    """
    desk, api, sandbox = _door_ports(environment)
    taken = frozenset({desk, api, sandbox})
    var = environment.var
    local_postgres = local_valkey = None
    if environment.database_url is None:
        port = free_port_from(postgres.PORT_DEFAULT, besides=taken)
        password = kept_secret(var / "postgres.password")
        local_postgres = LocalPostgres(home=var / "postgres", port=port, password=password)
    if environment.broker_url is None:
        port = free_port_from(valkey.PORT_DEFAULT, besides=taken)
        password = kept_secret(var / "valkey.password")
        local_valkey = LocalValkey(home=var / "valkey", port=port, password=password)
    env = {
        "DJANGO_SETTINGS_MODULE": "effects.settings",
        "COUNTERFOIL_VAR": str(var),
        "COUNTERFOIL_DESK_PORT": str(desk),
        "COUNTERFOIL_API_PORT": str(api),
        "COUNTERFOIL_SANDBOX_PORT": str(sandbox),
        "COUNTERFOIL_SECRET_KEY": secret_key,
        "DATABASE_URL": local_postgres.url if local_postgres else environment.database_url or "",
        "CELERY_BROKER_URL": local_valkey.url if local_valkey else environment.broker_url or "",
    }
    return Plan(
        var=var,
        desk_port=desk,
        api_port=api,
        sandbox_port=sandbox,
        desk_url=f"http://{LOOPBACK}:{desk}",
        api_url=f"http://{LOOPBACK}:{api}",
        postgres=local_postgres,
        valkey=local_valkey,
        env=env,
    )


def _door_ports(environment: Environment) -> tuple[int, int, int]:
    chosen: list[int] = []
    for name, wanted in (
        ("COUNTERFOIL_DESK_PORT", environment.desk_port),
        ("COUNTERFOIL_API_PORT", environment.api_port),
        ("COUNTERFOIL_SANDBOX_PORT", environment.sandbox_port),
    ):
        if name not in environment.ports_said:
            chosen.append(free_port_from(wanted, besides=_spoken_for(environment, chosen)))
        elif is_free(wanted):
            chosen.append(wanted)
        else:
            raise PortTaken(
                f"{name} says {wanted}, but another program listens there. Say another port, or "
                "leave it out to get the next free one."
            )
    return chosen[0], chosen[1], chosen[2]


def _spoken_for(environment: Environment, chosen: Sequence[int]) -> frozenset[int]:
    said = {
        "COUNTERFOIL_DESK_PORT": environment.desk_port,
        "COUNTERFOIL_API_PORT": environment.api_port,
        "COUNTERFOIL_SANDBOX_PORT": environment.sandbox_port,
    }
    return frozenset(chosen) | {said[name] for name in environment.ports_said}


@contextmanager
def sole_owner(var: Path) -> Iterator[Callable[[str], None]]:
    """Hold the data folder for one `up`; yield a function that notes where it can be found.

    Raises `AlreadyRuns`, with the other's note, if another one holds the folder.

    The kernel gives the lock back when its holder ends, however it ends.
    """
    var.mkdir(parents=True, exist_ok=True)
    with (var / "up.lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            raise AlreadyRuns(
                f"Counterfoil already runs from {var} ({lock.read().strip() or 'just starting'})."
                " Stop that one first, or set COUNTERFOIL_VAR to another folder."
            ) from None

        def note(where: str) -> None:
            lock.truncate(0)
            lock.write(f"process {os.getpid()}, {where}\n")
            lock.flush()

        note("just starting")
        yield note


@contextmanager
def findable(plan: Plan) -> Iterator[None]:
    """Leave the addresses of the services where a command in another shell looks for them."""
    path = plan.var / RUNNING_FILE
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump({k: v for k, v in plan.env.items() if k != "COUNTERFOIL_VAR"}, file, indent=1)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def services(plan: Plan) -> list[Program]:
    """Return the embedded services that the plan needs, their data ready to be opened."""
    programs = []
    if plan.postgres:
        plan.postgres.initialise()
        programs.append(plan.postgres.program())
    if plan.valkey:
        programs.append(plan.valkey.program())
    return programs


def prepare(plan: Plan) -> Program:
    """Return what comes before everything else of ours. It also runs all system checks."""
    return _manage(plan, "prepare", "prepare")


def manage(plan: Plan, name: str, command: str, *arguments: str) -> Program:
    """Return a `manage.py` command as a program; `prepare` has run the checks for all of them."""
    return _manage(plan, name, command, "--skip-checks", *arguments)


def _manage(plan: Plan, name: str, *arguments: str) -> Program:
    argv = (sys.executable, str(BASE / "manage.py"), *arguments)
    return Program(name=name, argv=argv, env=plan.env)


def doors_and_workers(plan: Plan) -> list[Program]:
    """Return our own processes: the worker, beat and the two doors."""
    desk_options = ("--workers", str(DESK_PROCESSES))
    api_options = ("--workers", str(API_PROCESSES), "--blocking-threads", str(API_THREADS))
    desk = ("asginl", "effects.asgi:application", plan.desk_port, *desk_options)
    api = ("wsgi", "effects.wsgi:application", plan.api_port, *api_options)
    return [
        worker(plan.env),
        beat(plan.env),
        _door(plan, "desk", *desk),
        _door(plan, "api", *api),
    ]


def worker(
    env: Mapping[str, str], *, name: str = "worker", processes: int = WORKER_PROCESSES
) -> Program:
    """Return a Celery worker; `name` tells several on one machine apart."""
    options = ("-n", f"{name}@%h", "-c", str(processes), "--without-gossip", "--without-mingle")
    return Program(
        name=name,
        argv=(*_celery(), "worker", "-l", "WARNING", *options),
        env={**env, "PYTHONWARNINGS": "ignore:You're running the worker with superuser"},
        stop_seconds=30,
    )


def beat(env: Mapping[str, str], *, name: str = "beat", schedule: Path | None = None) -> Program:
    """Return a scheduler; two of them need a `schedule` file each."""
    where = () if schedule is None else ("-s", str(schedule))
    argv = (*_celery(), "beat", "-l", "WARNING", "--pidfile=", *where)
    return Program(name=name, argv=argv, env=env)


def _celery() -> tuple[str, ...]:
    options = ("-q", "--skip-checks", "--workdir", str(BASE), "-A", "effects.celery")
    return (sys.executable, "-m", "celery", *options)


def _door(
    plan: Plan, name: str, interface: str, application: str, port: int, *options: str
) -> Program:
    granian = (sys.executable, "-m", "granian", "--working-dir", str(BASE))
    where = ("--interface", interface, "--host", LOOPBACK, "--port", str(port))
    # A worker process that an open connection keeps from ending is not waited for endlessly.
    care = ("--respawn-failed-workers", "--workers-kill-timeout", str(KILL_SECONDS))
    return Program(
        name=name,
        # At "warning" it warns of the many threads, at every start.
        argv=(*granian, *where, *options, *care, "--log-level", "error", application),
        env=plan.env,
        stop_seconds=KILL_SECONDS + 4,
        ready=answers(f"http://{LOOPBACK}:{port}/healthz"),
    )


def answers(url: str) -> Callable[[], bool]:
    """Return a question: does somebody serve `url` with a success?"""

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=ANSWER_SECONDS_MAX) as response:  # noqa: S310 - ours.
                return bool(response.status == 200)
        except OSError:
            return False

    return ask


def listens(port: int) -> Callable[[], bool]:
    """Return a question: does somebody accept connections on this port of loopback?"""

    def ask() -> bool:
        try:
            with socket.create_connection((LOOPBACK, port), timeout=ANSWER_SECONDS_MAX):
                return True
        except OSError:
            return False

    return ask
