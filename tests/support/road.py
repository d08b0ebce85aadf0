"""What a walk over the whole road needs: a real worker beside the desk, and a person's decision."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Page

from effects.local.processes import Program
from reconcile.sandbox.provider.server import Provider
from tests import settings as test_settings
from tests.support import stack

WORKER_MILLISECONDS = 60_000
"""Longest wait for what two more processes do: the broker's first connection, and the worker."""


def decide(page: Page, choice: str, reason: str, button: str | None = None) -> None:
    """Picks a decision, reviews it and records it."""
    page.get_by_role("radio", name=re.compile(f"^{choice}")).check()
    page.get_by_role("button", name="Review the decision").click()
    page.get_by_label("Reason").fill(reason)
    page.get_by_role("dialog").get_by_role("button", name=button or choice).click()


@contextmanager
def a_worker(process_env: dict[str, str], folder: Path) -> Iterator[str]:
    """A real worker beside the desk, and a sandbox provider that it may ask; its address."""
    with Provider(folder / "sandbox") as provider:
        env = {
            **process_env,
            "COUNTERFOIL_PRIVATE_ORIGINS": provider.url,
            "SANDBOX_READ_KEY": "rk_test_halden",
            "PYTHONWARNINGS": "ignore:You're running the worker with superuser",
        }
        argv = (sys.executable, "-m", "celery", "-q", "-A", "effects.celery", "worker")
        program = Program(
            name="worker",
            argv=(*argv, "-P", "solo", "-l", "WARNING", "--without-gossip", "--without-mingle"),
            env=env,
        )
        with stack.running(program, log=test_settings.TEST_VAR / "worker.log"):
            yield provider.url
