"""A product of its own for the pictures: a throw-away PostgreSQL and a real desk beside it."""

from __future__ import annotations

import os
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from effects.local.ports import any_free_port
from effects.local.postgres import LocalPostgres
from tests.support import stack


@contextmanager
def database() -> Iterator[Path]:
    """Sets Django up for this process, so it may be asked for once a process; answers the folder
    that holds everything and is gone at the end."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-pictures-") as name:
        folder = Path(name)
        postgres = LocalPostgres(
            home=folder / "postgres",
            port=any_free_port(),
            password=secrets.token_urlsafe(24),
            durable=False,
        )
        postgres.initialise()
        with stack.running(postgres.program(), log=folder / "postgres.log"):
            os.environ |= {
                "DATABASE_URL": postgres.url,
                "COUNTERFOIL_VAR": name,
                "COUNTERFOIL_SECRET_KEY": secrets.token_urlsafe(48),
                "DJANGO_SETTINGS_MODULE": "effects.settings",
                # Playwright's synchronous API keeps an event loop in the thread that asks.
                "DJANGO_ALLOW_ASYNC_UNSAFE": "1",
            }
            _set_up()
            yield folder


def _set_up() -> None:
    import django  # noqa: PLC0415 - its settings are in place only now
    from django.core.management import call_command  # noqa: PLC0415 - as above

    django.setup()
    call_command("migrate", verbosity=0, skip_checks=True)
    call_command("collectstatic", verbosity=0, interactive=False, skip_checks=True)


@contextmanager
def desk(folder: Path) -> Iterator[str]:
    """The address of a real desk on the database of `database`."""
    url, program = stack.door("desk", "asginl", "effects.asgi:application", env=dict(os.environ))
    with stack.running(program, log=folder / "desk.log"):
        yield url
