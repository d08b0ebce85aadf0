"""The process environment, read once and judged: what was set, and what in it is nonsense.

Reading never raises. A value that makes no sense is kept as a `Nonsense` beside a usable default,
so that the system checks can report all of them at once, each with its id and a hint.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

DESK_PORT_DEFAULT = 8000
API_PORT_DEFAULT = 8001
SANDBOX_PORT_DEFAULT = 8002
PORT_MAX = 65_535
SECRET_KEY_CHARACTERS_MIN = 50
CONNECTION_SECONDS_DEFAULT = 60
CONNECTION_SECONDS_MAX = 3600
LOOPBACK_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})

DATABASE_SCHEMES = frozenset({"postgres", "postgresql"})
REDIS_SCHEMES = frozenset({"redis", "rediss"})
BROKER_SCHEMES = REDIS_SCHEMES | {"amqp", "amqps", "pyamqp"}
WEB_SCHEMES = frozenset({"http", "https"})
SWITCH_WORDS = {"": False, "0": False, "false": False, "no": False}
SWITCH_WORDS |= {"1": True, "true": True, "yes": True}

# What `manage.py up` writes while it runs, so that a command in another shell finds its services.
RUNNING_FILE = "running.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Nonsense:
    """One variable whose value cannot be meant: the check's id, what is wrong, and what to do."""

    id: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """What the process was told. `None` means "not said"."""

    var: Path
    desk_port: int
    api_port: int
    sandbox_port: int
    # Ports that were said, by variable name: those are never replaced by another.
    ports_said: frozenset[str]
    database_url: str | None
    redis_url: str | None
    broker_url: str | None
    desk_url: str
    api_url: str
    hosts: tuple[str, ...]
    secret_key: str | None
    sealing_keys: tuple[str, ...]
    debug: bool
    # Origins in the own network that look-ups may reach; everything else must be public.
    private_origins: tuple[str, ...]
    connection_seconds: int
    nonsense: tuple[Nonsense, ...]

    @property
    def is_public(self) -> bool:
        """Whether the desk's address is one that other machines reach."""
        return urlsplit(self.desk_url).hostname not in LOOPBACK_HOSTS


@dataclass(slots=True)
class _Reader:
    """Reads one mapping and collects what it could not make sense of."""

    values: Mapping[str, str]
    nonsense: list[Nonsense] = field(default_factory=list)

    def text(self, name: str) -> str | None:
        return self.values.get(name, "").strip() or None

    def reject(self, name: str, *, check: str, wanted: str, hint: str) -> None:
        self.nonsense.append(Nonsense(id=check, message=f"{name} is not {wanted}", hint=hint))

    def port(self, name: str, default: int) -> int:
        said = self.text(name)
        if said is None:
            return default
        if said.isascii() and said.isdecimal() and 0 < int(said) <= PORT_MAX:
            return int(said)
        self.reject(
            name,
            check="effects.E001",
            wanted=f"a port: {said!r}",
            hint=f"Give a whole number from 1 to {PORT_MAX}, or leave it out for {default}.",
        )
        return default

    def seconds(self, name: str, default: int, *, largest: int, check: str) -> int:
        said = self.text(name)
        if said is None:
            return default
        if said.isascii() and said.isdecimal() and int(said) <= largest:
            return int(said)
        self.reject(
            name,
            check=check,
            wanted=f"a whole number of seconds: {said!r}",
            hint=f"Give 0 to {largest}, or leave it out for {default}.",
        )
        return default

    def origins(self, name: str, *, check: str) -> tuple[str, ...]:
        said = (self.text(name) or "").replace(",", " ").split()
        good = tuple(origin for origin in said if _is_origin(origin))
        if len(good) < len(said):
            self.reject(
                name,
                check=check,
                wanted="a list of origins",
                hint="An origin is scheme, host and port, and nothing behind: "
                "http://10.0.0.5:8080, or postgresql://10.0.0.6:5432",
            )
        return good

    def url(self, name: str, schemes: frozenset[str], *, check: str, hint: str) -> str | None:
        # The value is not repeated in the message: it may carry a password.
        said = self.text(name)
        if said is None or _is_url(said, schemes):
            return said
        wanted = "a URL that starts with " + " or ".join(f"{s}://" for s in sorted(schemes))
        self.reject(name, check=check, wanted=wanted, hint=hint)
        return None

    def switch(self, name: str) -> bool:
        said = (self.text(name) or "").lower()
        if said not in SWITCH_WORDS:
            self.reject(
                name,
                check="effects.E007",
                wanted=f"a switch: {said!r}",
                hint="Say 1 or 0.",
            )
        return SWITCH_WORDS.get(said, False)


def _is_url(text: str, schemes: frozenset[str]) -> bool:
    try:
        parts = urlsplit(text)
        _ = parts.port  # The standard library judges the port only when it is asked for it.
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.netloc or parts.query)


def _is_origin(text: str) -> bool:
    parts = urlsplit(text) if _is_url(text, WEB_SCHEMES | {"postgresql"}) else None
    behind = parts and (parts.path, parts.query, parts.fragment)
    return parts is not None and not any(behind or ()) and "@" not in parts.netloc


def read_environment(values: Mapping[str, str], *, base: Path) -> Environment:
    """Read `values` (usually `os.environ`); `base` is the folder that holds `manage.py`."""
    reader = _Reader(values)
    ports = {
        "COUNTERFOIL_DESK_PORT": reader.port("COUNTERFOIL_DESK_PORT", DESK_PORT_DEFAULT),
        "COUNTERFOIL_API_PORT": reader.port("COUNTERFOIL_API_PORT", API_PORT_DEFAULT),
        "COUNTERFOIL_SANDBOX_PORT": reader.port("COUNTERFOIL_SANDBOX_PORT", SANDBOX_PORT_DEFAULT),
    }
    _refuse_shared_ports(reader, ports)
    desk_url, api_url = _public_urls(reader, ports)
    redis_url = reader.url(
        "REDIS_URL", REDIS_SCHEMES, check="effects.E004", hint="For example redis://localhost/0"
    )
    hosts = (reader.text("COUNTERFOIL_HOSTS") or "").replace(",", " ").split()
    return Environment(
        var=Path(reader.text("COUNTERFOIL_VAR") or base / "var").absolute(),
        desk_port=ports["COUNTERFOIL_DESK_PORT"],
        api_port=ports["COUNTERFOIL_API_PORT"],
        sandbox_port=ports["COUNTERFOIL_SANDBOX_PORT"],
        ports_said=frozenset(name for name in ports if reader.text(name)),
        database_url=reader.url(
            "DATABASE_URL",
            DATABASE_SCHEMES,
            check="effects.E003",
            hint="Only PostgreSQL will do: postgresql://user:password@host:5432/name",
        ),
        redis_url=redis_url,
        broker_url=reader.url(
            "CELERY_BROKER_URL",
            BROKER_SCHEMES,
            check="effects.E005",
            hint="For example amqp://user:password@host// or redis://localhost/0",
        )
        or redis_url,
        desk_url=desk_url,
        api_url=api_url,
        hosts=tuple(hosts),
        secret_key=_secret_key(reader),
        sealing_keys=_sealing_keys(reader),
        debug=reader.switch("COUNTERFOIL_DEBUG"),
        private_origins=reader.origins("COUNTERFOIL_PRIVATE_ORIGINS", check="effects.E012"),
        connection_seconds=reader.seconds(
            "COUNTERFOIL_CONNECTION_SECONDS",
            CONNECTION_SECONDS_DEFAULT,
            largest=CONNECTION_SECONDS_MAX,
            check="effects.E009",
        ),
        nonsense=tuple(reader.nonsense),
    )


def _refuse_shared_ports(reader: _Reader, ports: Mapping[str, int]) -> None:
    if len(set(ports.values())) < len(ports):
        said = ", ".join(f"{name}={port}" for name, port in ports.items())
        reader.nonsense.append(
            Nonsense(
                id="effects.E002",
                message=f"Two doors share one port: {said}",
                hint="Give desk, api and sandbox three different ports.",
            )
        )


def _secret_key(reader: _Reader) -> str | None:
    """Return the key that signs sessions; None: this machine makes one up and keeps it."""
    said = reader.text("COUNTERFOIL_SECRET_KEY")
    if said is not None and len(said) < SECRET_KEY_CHARACTERS_MIN:
        reader.reject(
            "COUNTERFOIL_SECRET_KEY",
            check="effects.E006",
            wanted=f"long enough: it has {len(said)} characters",
            hint=f"Give at least {SECRET_KEY_CHARACTERS_MIN} random characters, the same ones on "
            "every machine, or leave it out on a single one.",
        )
    return said


def _sealing_keys(reader: _Reader) -> tuple[str, ...]:
    """Return the keys that seal stored secrets, newest first; none: the secret key does."""
    said = (reader.text("COUNTERFOIL_SEALING_KEYS") or "").split()
    for one in said:
        if len(one) < SECRET_KEY_CHARACTERS_MIN:
            reader.reject(
                "COUNTERFOIL_SEALING_KEYS",
                check="effects.E006",
                wanted=f"long enough: one of its keys has {len(one)} characters",
                hint=f"Give keys of at least {SECRET_KEY_CHARACTERS_MIN} random characters with "
                "white space between them, the newest first.",
            )
    return tuple(said)


def _public_urls(reader: _Reader, ports: Mapping[str, int]) -> tuple[str, str]:
    """Addresses under which people and agents reach us, without a slash at the end."""
    urls = []
    for name, port in (
        ("COUNTERFOIL_DESK_URL", ports["COUNTERFOIL_DESK_PORT"]),
        ("COUNTERFOIL_API_URL", ports["COUNTERFOIL_API_PORT"]),
    ):
        said = reader.url(
            name,
            WEB_SCHEMES,
            check="effects.E008",
            hint="Give the address that a browser would use: https://desk.example.com",
        )
        urls.append((said or f"http://127.0.0.1:{port}").rstrip("/"))
    return urls[0], urls[1]


def with_running_services(values: Mapping[str, str], var: Path) -> dict[str, str]:
    """Add the addresses that a running `manage.py up` left in its data folder.

    A process that was given its own database gets none of them: a production command must never
    meet a demo's broker by accident. A missing or damaged file adds nothing.
    """
    if values.get("DATABASE_URL"):
        return dict(values)
    try:
        running = json.loads((var / RUNNING_FILE).read_text())
    except (OSError, ValueError):
        running = {}
    return {**running, **values} if isinstance(running, dict) else dict(values)
