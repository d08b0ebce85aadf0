"""What the system checks say: each with an id and a hint, and what is an error stops a start."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.core.checks import CheckMessage

from effects import checks
from effects.checks import (
    judge_clocks,
    judge_deployment,
    judge_environment,
    judge_interpreter,
    judge_rights,
    judge_server,
)
from effects.environment import Environment, read_environment
from tests.support.stack import ROOT

LONG_KEY = "k" * 50
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)
EVERYTHING_SAID = {
    "COUNTERFOIL_SECRET_KEY": LONG_KEY,
    "DATABASE_URL": "postgresql://db/counterfoil",
    "CELERY_BROKER_URL": "amqp://queue//",
    "COUNTERFOIL_DESK_URL": "https://desk.example.com",
    "COUNTERFOIL_API_URL": "https://api.example.com",
}


def read(**values: str) -> Environment:
    return read_environment(values, base=Path("/srv/counterfoil"))


def deployed(**changes: str) -> Environment:
    return read(**{**EVERYTHING_SAID, **changes})


def a_server(**changes: object) -> list[CheckMessage]:
    usual: dict[str, object] = {"version": 180_006, "fsync": "on", "synchronous_commit": "on"}
    return judge_server(**(usual | changes))  # type: ignore[arg-type] # built above


@pytest.mark.parametrize(
    ("judge", "found"),
    [
        pytest.param(lambda: judge_deployment(deployed()), None, id="all is said"),
        pytest.param(lambda: judge_deployment(read()), None, id="one machine, nothing said"),
        pytest.param(
            lambda: judge_deployment(deployed(COUNTERFOIL_SECRET_KEY="")),
            "effects.W001",
            id="a secret of this machine alone",
        ),
        pytest.param(
            lambda: judge_deployment(deployed(COUNTERFOIL_DESK_URL="http://desk.example.com")),
            "effects.W002",
            id="passwords in the clear",
        ),
        pytest.param(
            lambda: judge_deployment(deployed(COUNTERFOIL_API_URL="http://10.0.0.7:8001")),
            "effects.W003",
            id="tokens in the clear",
        ),
        pytest.param(
            lambda: judge_deployment(deployed(CELERY_BROKER_URL="")),
            "effects.W004",
            id="a database and no broker",
        ),
        pytest.param(
            lambda: judge_environment(deployed(COUNTERFOIL_DEBUG="1")),
            "effects.E011",
            id="debug pages where others come",
        ),
        pytest.param(
            lambda: judge_environment(read(COUNTERFOIL_DEBUG="1")), None, id="debug pages at home"
        ),
        pytest.param(
            lambda: judge_environment(read(COUNTERFOIL_CONNECTION_SECONDS="soon")),
            "effects.E009",
            id="seconds in words",
        ),
        pytest.param(
            lambda: judge_environment(read(COUNTERFOIL_CONNECTION_SECONDS="3601")),
            "effects.E009",
            id="a connection kept too long",
        ),
        pytest.param(
            lambda: judge_environment(read(COUNTERFOIL_PRIVATE_ORIGINS="10.0.0.5:8080")),
            "effects.E012",
            id="an origin without a scheme",
        ),
        pytest.param(
            lambda: judge_environment(read(COUNTERFOIL_PRIVATE_ORIGINS="http://10.0.0.5/path")),
            "effects.E012",
            id="an origin with a path",
        ),
        pytest.param(lambda: judge_interpreter(optimize=0), None, id="assertions are on"),
        pytest.param(
            lambda: judge_interpreter(optimize=1), "effects.E010", id="assertions are off"
        ),
        pytest.param(a_server, None, id="a server as it should be"),
        pytest.param(lambda: a_server(version=170_010), "effects.E020", id="an older server"),
        pytest.param(lambda: a_server(fsync="off"), "effects.W020", id="no fsync"),
        pytest.param(
            lambda: a_server(synchronous_commit="off"),
            "effects.W020",
            id="commits that may be lost",
        ),
        pytest.param(
            lambda: judge_clocks(database=NOON, machine=NOON + timedelta(seconds=4)),
            None,
            id="clocks together",
        ),
        pytest.param(
            lambda: judge_clocks(database=NOON, machine=NOON + timedelta(minutes=-2)),
            "effects.W021",
            id="clocks apart",
        ),
        pytest.param(
            lambda: judge_rights(superuser=False, owner=False),
            None,
            id="a role that may only serve",
        ),
        pytest.param(
            lambda: judge_rights(superuser=False, owner=True),
            "effects.W022",
            id="the tables' owner",
        ),
        pytest.param(
            lambda: judge_rights(superuser=True, owner=False), "effects.W022", id="a superuser"
        ),
    ],
)
def test_each_finding_has_its_id_and_a_hint(
    judge: Callable[[], list[CheckMessage]], found: str | None
):
    messages = judge()

    assert [message.id for message in messages] == ([found] if found else [])
    for message in messages:
        assert message.hint
        assert message.is_serious() == (".E" in found if found else False)


def test_every_id_is_in_the_operators_page():
    page = (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")
    for source in ("effects/checks.py", "effects/environment.py"):
        for check in re.findall(r"effects\.[EW]\d{3}", (ROOT / source).read_text(encoding="utf-8")):
            assert check in page, check


@pytest.mark.django_db
def test_the_tests_own_database_is_asked_and_found_wanting():
    """It skips fsync, and its role owns everything: both are said, and neither is an error."""
    asked = checks.check_server(None, databases=["default"])
    asked += checks.check_rights(None, databases=["default"])

    assert [message.id for message in asked] == ["effects.W020", "effects.W022"]


@pytest.mark.django_db
def test_without_a_database_to_ask_nothing_is_said():
    assert checks.check_server(None) == []
    assert checks.check_rights(None, databases=[]) == []


@pytest.mark.parametrize(
    "argv",
    [
        pytest.param(("manage.py", "check"), id="a command"),
        pytest.param(("-c", "import effects.wsgi"), id="the api"),
        pytest.param(("-c", "import effects.asgi"), id="the desk"),
    ],
)
def test_without_assertions_nothing_starts(argv: tuple[str, ...], tmp_path: Path):
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=ROOT,
        env={**os.environ, "PYTHONOPTIMIZE": "1", "COUNTERFOIL_VAR": str(tmp_path)}
        | {"DJANGO_SETTINGS_MODULE": "effects.settings"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode != 0
    assert "effects.E010" in done.stderr
