"""`manage.py up` as a newcomer meets it: one real run, asked about in order."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
import redis
from django.core.management import CommandError, call_command
from django.core.management.base import SystemCheckError

from effects.environment import read_environment
from effects.local.ports import PortTaken, any_free_port
from effects.local.stack import API_THREADS, make_plan
from ledger.waiting import WAITERS_MAX
from tests.support.processes import alive, still_alive_after
from tests.support.stack import ROOT, answers
from tests.support.upstack import KeptUp, Up, bare_env, start

KEY = "k" * 50


@pytest.fixture(scope="module")
def kept_up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptUp]:
    env = bare_env(tmp_path_factory.mktemp("up") / "var", COUNTERFOIL_API_PORT=str(any_free_port()))
    kept = KeptUp(env)
    yield kept
    kept.stop()


@pytest.fixture
def up(kept_up: KeptUp) -> Up:
    """One `up` for all these tests, in whatever order; started again after a test stopped it."""
    return kept_up.running()


def ask(url: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, json.load(refused)


def command(up: Up, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(ROOT / "manage.py"), *arguments],
        env=up.env,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("door", ["desk", "api"])
def test_both_doors_are_open_and_soon_everything_is_ready(up: Up, door: str):
    url = getattr(up, door)
    assert ask(f"{url}/healthz") == (200, {"status": "ok"})

    give_up_at = time.monotonic() + 60
    status, said = ask(f"{url}/readyz")
    while status != 200 and time.monotonic() < give_up_at:
        time.sleep(0.5)
        status, said = ask(f"{url}/readyz")

    assert said["checks"] == dict.fromkeys(
        ("database", "migrations", "broker", "worker", "beat"), "ok"
    )
    assert status == 200


def test_the_api_port_that_was_said_is_the_one(up: Up):
    assert up.api == f"http://127.0.0.1:{up.env['COUNTERFOIL_API_PORT']}"


def test_a_second_start_says_that_it_already_runs(up: Up, monkeypatch: pytest.MonkeyPatch):
    live_in(up.env, monkeypatch)
    words = re.escape(
        f"already runs from {up.env['COUNTERFOIL_VAR']} (process {up.process.pid}, {up.desk})"
    )

    with pytest.raises(CommandError, match=words) as refused:
        call_command("up")

    assert refused.value.returncode == 1
    assert answers(f"{up.desk}/healthz")


def test_a_command_in_another_shell_finds_the_database(up: Up):
    checked = command(up, "migrate", "--check")

    assert (checked.returncode, checked.stderr) == (0, "")


def test_secrets_are_for_their_owner_only_and_needed(up: Up):
    var = Path(up.env["COUNTERFOIL_VAR"])
    for name in ("secret_key", "postgres.password", "valkey.password", "running.json"):
        assert stat.S_IMODE((var / name).stat().st_mode) == 0o600, name
    assert stat.S_IMODE((var / "valkey" / "valkey.conf").stat().st_mode) == 0o600

    running = json.loads((var / "running.json").read_text())
    port = running["DATABASE_URL"].rsplit(":", 1)[1].split("/")[0]
    with pytest.raises(psycopg.OperationalError, match="password"):
        psycopg.connect(f"postgresql://counterfoil:wrong@127.0.0.1:{port}/counterfoil")
    port = running["CELERY_BROKER_URL"].rsplit(":", 1)[1].split("/")[0]
    with (
        redis.Redis(port=int(port)) as client,
        pytest.raises(redis.exceptions.AuthenticationError),
    ):
        client.ping()


def test_no_password_stands_in_a_command_line(up: Up):
    var = Path(up.env["COUNTERFOIL_VAR"])
    listed = subprocess.run(
        ["ps", "-A", "-ww", "-o", "args"], check=True, capture_output=True, text=True
    ).stdout

    assert "effects.asgi:application" in listed
    for name in ("secret_key", "postgres.password", "valkey.password"):
        assert (var / name).read_text().strip() not in listed


def test_a_door_that_is_killed_opens_again(up: Up):
    before = up.family()
    doors = [pid for pid in before if _runs(pid, "effects.wsgi:application")]
    assert doors
    for pid in doors:
        os.kill(pid, signal.SIGKILL)
    assert still_alive_after(doors, seconds=10) == set()

    give_up_at = time.monotonic() + 60
    while not answers(f"{up.api}/healthz"):
        assert time.monotonic() < give_up_at
        time.sleep(0.2)


def _runs(pid: int, words: str) -> bool:
    shown = subprocess.run(
        ["ps", "-ww", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout
    return words in shown and "leash.py" not in shown


def test_ctrl_c_stops_everything_in_order(up: Up):
    family = up.family()
    assert len(family) > 10

    said = up.interrupt()

    assert up.process.returncode == 0, said
    assert alive(family) == set()
    stopped = [line.split()[2] for line in said.splitlines() if " stopped in " in line]
    assert {"desk", "api", "worker", "beat"} == set(stopped[:4])
    assert set(stopped[4:]) == {"postgres", "valkey"}
    assert not (Path(up.env["COUNTERFOIL_VAR"]) / "running.json").exists()


def test_the_demo_says_who_may_sign_in_and_kill_minus_nine_leaves_nothing(tmp_path: Path):
    demo = start(bare_env(tmp_path / "var"), "demo")
    family = demo.family()
    assert len(family) > 12
    words = "\n".join(demo.lines[-20:])
    for role in ("support", "lead", "admin"):
        assert role in words
    assert demo.desk in words
    port = json.loads((tmp_path / "var" / "running.json").read_text())["COUNTERFOIL_SANDBOX_PORT"]
    socket.create_connection(("127.0.0.1", int(port)), timeout=5).close()

    demo.process.kill()
    demo.process.communicate()

    assert still_alive_after(family, seconds=15) == set()


def test_there_are_more_threads_than_agents_that_may_wait():
    assert API_THREADS > WAITERS_MAX


class TestPorts:
    @pytest.fixture
    def taken(self) -> Iterator[int]:
        with socket.create_server(("127.0.0.1", any_free_port())) as somebody:
            yield somebody.getsockname()[1]

    def test_a_default_that_is_taken_gives_way_to_the_next(self, tmp_path: Path, taken: int):
        environment = read_environment({"COUNTERFOIL_VAR": str(tmp_path)}, base=ROOT)

        plan = make_plan(replace(environment, desk_port=taken), secret_key=KEY)

        assert plan.desk_port > taken
        assert plan.env["COUNTERFOIL_DESK_PORT"] == str(plan.desk_port)
        assert plan.desk_url == f"http://127.0.0.1:{plan.desk_port}"

    def test_one_that_was_said_does_not(self, tmp_path: Path, taken: int):
        environment = read_environment(
            {"COUNTERFOIL_VAR": str(tmp_path), "COUNTERFOIL_DESK_PORT": str(taken)}, base=ROOT
        )

        with pytest.raises(PortTaken, match=f"COUNTERFOIL_DESK_PORT says {taken}"):
            make_plan(environment, secret_key=KEY)

    def test_a_default_never_takes_what_another_door_was_given(self, tmp_path: Path):
        said = any_free_port()
        environment = read_environment(
            {"COUNTERFOIL_VAR": str(tmp_path), "COUNTERFOIL_API_PORT": str(said)}, base=ROOT
        )

        plan = make_plan(replace(environment, desk_port=said), secret_key=KEY)

        assert plan.api_port == said
        assert plan.desk_port != said

    def test_where_a_url_was_given_nothing_embedded_starts(self, tmp_path: Path):
        environment = read_environment(
            {
                "COUNTERFOIL_VAR": str(tmp_path),
                "DATABASE_URL": "postgresql://db/app",
                "CELERY_BROKER_URL": "amqp://queue//",
                "COUNTERFOIL_SECRET_KEY": KEY,
            },
            base=ROOT,
        )

        plan = make_plan(environment, secret_key=KEY)

        assert (plan.postgres, plan.valkey) == (None, None)
        assert plan.env["DATABASE_URL"] == "postgresql://db/app"
        assert plan.env["CELERY_BROKER_URL"] == "amqp://queue//"


def test_nonsense_in_the_environment_stops_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    live_in(bare_env(tmp_path, COUNTERFOIL_DESK_PORT="door"), monkeypatch)

    with pytest.raises(SystemCheckError, match=r"effects\.E001") as refused:
        call_command("up")

    assert "HINT: Give a whole number" in str(refused.value)
    assert list(tmp_path.iterdir()) == []


def live_in(env: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give this process that environment, and no other variable, until the test ends."""
    for name in set(os.environ) - set(env):
        monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
