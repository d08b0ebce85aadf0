"""One PostgreSQL URL as Django's dictionary."""

from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from psycopg import IsolationLevel


def database_settings(url: str, *, keep_seconds: int) -> dict[str, Any]:
    """Turn `postgresql://user:password@host:port/name?sslmode=…` into a `DATABASES` entry.

    Options of libpq may stand in the query; `host=/folder` names a Unix socket. Transactions are
    read committed: the claim functions take their locks and then read what is true now.
    """
    parts = urlsplit(url)
    options: dict[str, Any] = dict(parse_qsl(parts.query))
    socket_folder = options.pop("host", "")
    name = unquote(parts.path.removeprefix("/"))
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or "") or socket_folder,
        "PORT": parts.port or "",
        "CONN_MAX_AGE": keep_seconds,
        "CONN_HEALTH_CHECKS": keep_seconds > 0,
        "OPTIONS": {"isolation_level": IsolationLevel.READ_COMMITTED, **options},
        "TEST": {"NAME": f"test_{name}"},
    }
