"""The services under a test run, and real servers of ours for tests that need a process."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from effects.local.ports import LOOPBACK, any_free_port
from effects.local.processes import Program, spawn, stop, wait_until_ready

ROOT = Path(__file__).resolve().parents[2]


@contextmanager
def running(program: Program, *, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run `program` until the block ends; what it prints goes to the end of `log`."""
    with log.open("ab") as output:
        process = spawn(program, stdout=output)
    try:
        wait_until_ready(process, program)
        yield process
    except Exception as error:
        tail = log.read_text(errors="replace")[-4000:]
        error.add_note(f"{program.name} had printed:\n{tail}")
        raise
    finally:
        stop(process, program)


def answers(url: str) -> bool:
    """Say whether somebody serves `url` with a success."""
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(response.status == 200)
    except (OSError, urllib.error.HTTPError):
        return False


def door(
    name: str, interface: str, application: str, *, env: dict[str, str]
) -> tuple[str, Program]:
    """Return the address and the program of one real server on a free port."""
    port = any_free_port()
    url = f"http://{LOOPBACK}:{port}"
    argv = (
        *(sys.executable, "-m", "granian", "--interface", interface, "--host", LOOPBACK),
        *("--port", str(port), "--workers", "1", "--workers-kill-timeout", "5"),
        *("--log-level", "warning", application),
    )
    program = Program(
        name=name,
        argv=argv,
        env={"DJANGO_SETTINGS_MODULE": "effects.settings", **env},
        ready=lambda: answers(url + "/healthz"),
    )
    return url, program


def manage(*arguments: str, env: dict[str, str] | None = None) -> str:
    """Run one `manage.py` command of the product and return what it printed."""
    done = subprocess.run(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "effects.settings", **(env or {})},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
