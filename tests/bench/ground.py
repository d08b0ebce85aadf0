"""Where it is measured: a durable PostgreSQL of its own, and the door for agents as `make up` has
it, on the same machine."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from effects.local.ports import LOOPBACK, any_free_port
from effects.local.postgres import LocalPostgres
from effects.local.processes import Program
from effects.local.stack import API_PROCESSES, API_THREADS, answers
from tests.support import stack


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """`database_url` is the owner's, `agent_url` an agent's role's; `token` opens `api_url`."""

    database_url: str
    agent_url: str
    api_url: str
    token: str
    workspace_id: int


@contextmanager
def ground(*, door: bool) -> Iterator[Ground]:
    """Sets Django up for this process, so it may be asked for once a process. `door`: the API is
    measured too, and its process started."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as folder:
        postgres = LocalPostgres(
            home=Path(folder) / "postgres",
            port=any_free_port(),
            password=secrets.token_urlsafe(24),
            durable=True,
        )
        postgres.initialise()
        with stack.running(postgres.program(), log=Path(folder) / "postgres.log"):
            os.environ |= {
                "DATABASE_URL": postgres.url,
                "COUNTERFOIL_VAR": folder,
                "COUNTERFOIL_SECRET_KEY": secrets.token_urlsafe(48),
                "DJANGO_SETTINGS_MODULE": "effects.settings",
            }
            _set_up()
            if not door:
                yield _settled(postgres.url, "")
                return
            url, program = _door()
            with stack.running(program, log=Path(folder) / "door.log"):
                yield _settled(postgres.url, url)


def _door() -> tuple[str, Program]:
    port = any_free_port()
    url = f"http://{LOOPBACK}:{port}"
    argv = (
        *(sys.executable, "-m", "granian", "--interface", "wsgi", "--host", LOOPBACK),
        *("--port", str(port), "--workers", str(API_PROCESSES)),
        *("--blocking-threads", str(API_THREADS), "--log-level", "error"),
        "effects.wsgi:application",
    )
    ready = answers(url + "/healthz")
    return url, Program(name="api", argv=argv, env=dict(os.environ), ready=ready)


def _set_up() -> None:
    import django  # noqa: PLC0415 - its settings are in place only now
    from django.core.management import call_command  # noqa: PLC0415 - as above

    django.setup()
    call_command("migrate", verbosity=0, skip_checks=True)
    call_command("collectstatic", verbosity=0, interactive=False, skip_checks=True)  # for pages


def _settled(database_url: str, api_url: str) -> Ground:
    from effects.core.vocabulary import EffectClass, TokenScope  # noqa: PLC0415 - as above
    from effects.models import Tool, Workspace  # noqa: PLC0415 - as above
    from ledger import agents, auth, queries  # noqa: PLC0415 - as above
    from tests.bench.sides import TOOL  # noqa: PLC0415 - as above

    workspace = Workspace.objects.create(name="Bench", slug="bench", created_at=queries.clock())
    Tool.objects.create(
        workspace=workspace,
        name=TOOL,
        effect_class=EffectClass.KEYED_WRITE,
        window_seconds=86_400,
    )
    scopes = (TokenScope.CLAIM, TokenScope.INGEST)
    _, token = auth.issue(workspace, "bench", scopes, user=None)
    return Ground(
        database_url=database_url,
        agent_url=agents.create(workspace, "bench").url,
        api_url=api_url,
        token=token,
        workspace_id=workspace.pk,
    )
