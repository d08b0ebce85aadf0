"""Rivals, each in a virtual environment of its own beside ours and measured in the same rounds.

They are installed from PyPI by the benchmark itself, at the versions of the dependency group
`rivals`; where that fails, they are left out and the table says so.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.ground import Ground
from tests.bench.rounds import Runner

ROOT: Final = Path(__file__).resolve().parents[2]
WORKER: Final = Path(__file__).with_name("rival_worker.py")
INSTALL_SECONDS_MAX: Final = 180
NAMES: Final = ("agent-once", "exactly-once")


@dataclass(slots=True)
class Rival:
    """A process that measures itself when it is told to, and is silent otherwise."""

    name: str
    process: subprocess.Popen[str]

    def rate(self, what: str, tag: str, *, clients: int, seconds: float) -> float:
        asked = {"what": what, "tag": tag, "clients": clients, "seconds": seconds}
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name} ended while it was measured")
        return float(json.loads(line)["ops_s"])


@contextmanager
def installed(ground: Ground, home: Path) -> Iterator[tuple[list[Runner], list[str]]]:
    """The rivals that run here, and a sentence for each one that does not."""
    python, why = _environment(home)
    if python is None:
        yield [], [why]
        return
    with ExitStack() as stack:
        running: list[Runner] = []
        absent: list[str] = []
        for name in NAMES:
            process = stack.enter_context(_worker(python, name, ground.database_url))
            assert process.stdout is not None
            if process.stdout.readline().strip() == "ready":
                running.append(Rival(name, process))
            else:
                absent.append(f"{name} did not start here; see its output above")
        yield running, absent


@contextmanager
def _worker(python: Path, name: str, url: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [python, WORKER, name, url],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=20)


def _environment(home: Path) -> tuple[Path | None, str]:
    """Its interpreter, or why there is none. What is there already is used again."""
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    packages = [*wanted["rivals"], "psycopg[binary,pool]"]
    python = home / "bin" / "python"
    note = home / "installed.json"
    if python.exists() and note.exists() and json.loads(note.read_text()) == packages:
        return python, ""
    install = ("install", "--quiet", "--disable-pip-version-check", *packages)
    commands: list[list[str]] = [
        [sys.executable, "-m", "venv", str(home)],
        [str(python), "-m", "pip", *install],
    ]
    for command in commands:
        try:
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS_MAX)
        except (subprocess.SubprocessError, OSError) as error:
            return None, f"no rivals: they could not be installed ({error})"
    note.write_text(json.dumps(packages))
    return python, ""
