"""A real `manage.py up` in a folder of its own, for tests that look at it from outside."""

import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.processes import descendants, still_alive_after
from tests.support.stack import ROOT

READY = re.compile(r"^ready: desk (http://127\.0\.0\.1:\d+) api (http://127\.0\.0\.1:\d+)$")
READY_SECONDS_MAX = 240


def bare_env(var: Path, **more: str) -> dict[str, str]:
    """The environment of somebody who has set nothing but the data folder."""
    ours = ("COUNTERFOIL_", "DATABASE_URL", "REDIS_URL", "CELERY_", "DJANGO_")
    env = {k: v for k, v in os.environ.items() if not k.startswith(ours)}
    return {**env, "COUNTERFOIL_VAR": str(var), **more}


@dataclass(slots=True)
class Up:
    """One running `up`; `lines` is what it had printed when it was ready."""

    env: dict[str, str]
    process: subprocess.Popen[str]
    lines: list[str] = field(default_factory=list)
    desk: str = ""
    api: str = ""

    def family(self) -> set[int]:
        return descendants(self.process.pid)

    def interrupt(self) -> str:
        """Press Ctrl-C and return what was still printed."""
        self.process.send_signal(signal.SIGINT)
        return self.process.communicate(timeout=60)[0]


def start(env: dict[str, str], *arguments: str) -> Up:
    """Start `manage.py up` (or the given command) and wait for its `ready:` line."""
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "manage.py"), *(arguments or ("up",))],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    up = Up(env=env, process=process)
    assert process.stdout is not None
    give_up_at = time.monotonic() + READY_SECONDS_MAX
    for line in process.stdout:
        up.lines.append(line.rstrip("\n"))
        found = READY.match(up.lines[-1])
        if found:
            up.desk, up.api = found.groups()
            return up
        if time.monotonic() > give_up_at:
            process.terminate()
    raise AssertionError("up did not get ready:\n" + "\n".join(up.lines))


class KeptUp:
    """One `up` that several tests share; it comes back when one of them has stopped it."""

    def __init__(self, env: dict[str, str]) -> None:
        self._env = env
        self._up: Up | None = None
        self._seen: set[int] = set()

    def running(self) -> Up:
        if self._up is None or self._up.process.poll() is not None:
            self._up = start(self._env)
        self._seen |= self._up.family()
        return self._up

    def stop(self) -> None:
        """Stop it and see that nothing of any run is left."""
        if self._up is not None and self._up.process.poll() is None:
            self._seen |= self._up.family()
            self._up.interrupt()
        assert still_alive_after(self._seen, seconds=10) == set()
