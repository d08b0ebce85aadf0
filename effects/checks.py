"""System checks: every setting that cannot be meant is said at boot, with an id and a hint.

Errors stop whatever is started: `manage.py` runs the checks by itself, servers and workers call
`refuse_nonsense`. What depends on where the product runs is a warning of `check --deploy`, what
has to ask the database is told with `--database default`. `docs/operating.md` lists all of them.
"""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.db.utils import DatabaseError

from effects.environment import LOOPBACK_HOSTS, Environment

POSTGRES_VERSION_MIN = 18
CLOCKS_APART_SECONDS_MAX = 5.0


def judge_environment(environment: Environment) -> list[CheckMessage]:
    """Turn what makes no sense in the environment into errors."""
    return [
        *(Error(n.message, hint=n.hint, id=n.id) for n in environment.nonsense),
        *_judge_debug(environment),
    ]


def _judge_debug(environment: Environment) -> list[CheckMessage]:
    if not (environment.debug and environment.is_public):
        return []
    return [
        Error(
            f"COUNTERFOIL_DEBUG is on at {environment.desk_url}, which others reach",
            hint="Debug pages show settings and arguments to everybody. Leave it out there.",
            id="effects.E011",
        )
    ]


def judge_interpreter(*, optimize: int) -> list[CheckMessage]:
    """`optimize` is the interpreter's level: from 1 on it removes every assertion."""
    if not optimize:
        return []
    return [
        Error(
            "Python runs with -O or PYTHONOPTIMIZE, so every assertion is switched off",
            hint="Assertions guard the record in production as well. Start without it.",
            id="effects.E010",
        )
    ]


@register()
def check_environment(
    app_configs: Sequence[Any] | None,  # noqa: ARG001 - Django passes it by name.
    **_: Any,
) -> list[CheckMessage]:
    return [
        *judge_environment(settings.ENVIRONMENT),
        *judge_interpreter(optimize=sys.flags.optimize),
    ]


# Where the product runs


def judge_deployment(environment: Environment) -> list[CheckMessage]:
    """What is right on one machine and wrong where people and agents come from others."""
    return [
        *judge_secret_key(environment),
        *_judge_address(
            "COUNTERFOIL_DESK_URL", environment.desk_url, "passwords and sessions", "effects.W002"
        ),
        *_judge_address("COUNTERFOIL_API_URL", environment.api_url, "tokens", "effects.W003"),
        *_judge_broker(environment),
    ]


def judge_secret_key(environment: Environment) -> list[CheckMessage]:
    """A key that each machine makes up for itself ends every session at the next machine."""
    if environment.secret_key is not None or environment.database_url is None:
        return []
    return [
        checks.Warning(
            "COUNTERFOIL_SECRET_KEY is not set, so this machine has made one up",
            hint="Beside a database of your own, set the same key on every machine.",
            id="effects.W001",
        )
    ]


def _judge_address(name: str, url: str, carries: str, check: str) -> list[CheckMessage]:
    parts = urlsplit(url)
    if parts.scheme == "https" or parts.hostname in LOOPBACK_HOSTS:
        return []
    return [
        checks.Warning(
            f"{name} is {url}: {carries} travel in the clear",
            hint="Let a proxy end TLS and give the https:// address.",
            id=check,
        )
    ]


def _judge_broker(environment: Environment) -> list[CheckMessage]:
    if environment.broker_url is not None or environment.database_url is None:
        return []
    return [
        checks.Warning(
            "There is a database of your own and no broker: nothing will be looked up",
            hint="Set CELERY_BROKER_URL, or REDIS_URL.",
            id="effects.W004",
        )
    ]


@register(Tags.security, deploy=True)
def check_deployment(
    app_configs: Sequence[Any] | None,  # noqa: ARG001 - Django passes it by name.
    **_: Any,
) -> list[CheckMessage]:
    return judge_deployment(settings.ENVIRONMENT)


# The database


def judge_server(*, version: int, fsync: str, synchronous_commit: str) -> list[CheckMessage]:
    """`version` as PostgreSQL numbers itself: 180006 is 18.6."""
    found: list[CheckMessage] = []
    if version // 10_000 < POSTGRES_VERSION_MIN:
        found.append(
            Error(
                f"The database is PostgreSQL {version // 10_000}",
                hint=f"The ledger's functions need PostgreSQL {POSTGRES_VERSION_MIN} or newer.",
                id="effects.E020",
            )
        )
    if "off" in {fsync, synchronous_commit}:
        found.append(
            checks.Warning(
                f"The database answers before it has written: fsync is {fsync},"
                f" synchronous_commit is {synchronous_commit}",
                hint="A grant that a power cut forgets is granted twice. Switch both on.",
                id="effects.W020",
            )
        )
    return found


def judge_clocks(*, database: datetime, machine: datetime) -> list[CheckMessage]:
    """The database's clock judges leases; a machine far from it shows people wrong times."""
    apart_seconds = abs((database - machine).total_seconds())
    if apart_seconds <= CLOCKS_APART_SECONDS_MAX:
        return []
    return [
        checks.Warning(
            f"The database's clock and this machine's are {apart_seconds:.0f} s apart",
            hint="Keep both synchronised, for example with chrony.",
            id="effects.W021",
        )
    ]


def judge_rights(*, superuser: bool, owner: bool) -> list[CheckMessage]:
    """A role that owns the tables, or may do everything, could also rewrite the record."""
    if not (superuser or owner):
        return []
    what = "is a superuser" if superuser else "owns the ledger's tables"
    return [
        checks.Warning(
            f"The role of this process {what}",
            hint="Migrate as one role and serve as another; docs/operating.md has the statements.",
            id="effects.W022",
        )
    ]


SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('fsync'),
  current_setting('synchronous_commit'), clock_timestamp()
"""
RIGHTS = """
SELECT r.rolsuper, EXISTS (
    SELECT FROM pg_class c WHERE c.relname = 'ledger_event' AND c.relowner = r.oid)
FROM pg_roles r WHERE r.rolname = current_user
"""


def _asked(alias: str, query: str) -> tuple[Any, ...] | None:
    """The one row; None from a database that cannot be asked, which is no fault of the settings."""
    try:
        with connections[alias].cursor() as cursor:
            cursor.execute(query)
            row: tuple[Any, ...] | None = cursor.fetchone()
    except DatabaseError:
        return None
    return row


@register(Tags.database)
def check_server(
    app_configs: Sequence[Any] | None,  # noqa: ARG001 - Django passes it by name.
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[CheckMessage]:
    found: list[CheckMessage] = []
    for alias in databases or ():
        row = _asked(alias, SERVER)
        if row is not None:
            version, fsync, synchronous_commit, now = row
            found += judge_server(
                version=version, fsync=fsync, synchronous_commit=synchronous_commit
            )
            found += judge_clocks(database=now, machine=datetime.now(UTC))
    return found


@register(Tags.database, deploy=True)
def check_rights(
    app_configs: Sequence[Any] | None,  # noqa: ARG001 - Django passes it by name.
    databases: Sequence[str] | None = None,
    **_: Any,
) -> list[CheckMessage]:
    rows = [_asked(alias, RIGHTS) for alias in databases or ()]
    return [
        message
        for row in rows
        if row is not None
        for message in judge_rights(superuser=row[0], owner=row[1])
    ]


def refuse_nonsense() -> None:
    """Stop a server that would otherwise run on defaults nobody asked for.

    `manage.py` runs the checks by itself; servers and workers do not, so their entry points call
    this. Raises `ImproperlyConfigured`.
    """
    found = [
        *judge_environment(settings.ENVIRONMENT),
        *judge_interpreter(optimize=sys.flags.optimize),
    ]
    if found:
        raise ImproperlyConfigured("; ".join(f"{m.id}: {m.msg}. {m.hint}" for m in found))
