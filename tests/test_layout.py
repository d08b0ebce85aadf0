"""An agent imports the client and nothing of the desk."""

import os
import subprocess
import sys
import sysconfig

import pytest

from tests.support.stack import ROOT

# A finder in front of all others refuses what an agent does not have; what is left must do.
BLOCKED = (
    *("django", "celery", "channels", "ninja", "psycopg", "redis", "granian", "whitenoise"),
    *("stripe", "requests", "httpx", "ledger", "reconcile"),
)
IMPORT_WITHOUT = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ImportError(f"{{name}} was imported by the agent's side")

sys.meta_path.insert(0, Refuse())
import {module}
"""


INTEGRATIONS = "effects.client.integrations"
# What an extra brings along: an integration stands on its SDK, and LangChain on these.
BROUGHT_ALONG = {
    INTEGRATIONS: ("requests", "httpx"),
    "effects.client.postgres_link": ("psycopg",),
    "effects.client.transport_postgres": ("psycopg",),
}


def import_alone(module: str) -> subprocess.CompletedProcess[str]:
    allowed = [
        name for start, names in BROUGHT_ALONG.items() if module.startswith(start) for name in names
    ]
    blocked = tuple(name for name in BLOCKED if name not in allowed)
    code = IMPORT_WITHOUT.format(blocked=blocked, module=module)
    # Isolated: no environment, no user site, no current folder. Only the packages and this clone.
    path = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {sysconfig.get_path('purelib')!r}]\n"
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", path + code],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def modules_of(package: str) -> list[str]:
    folder = ROOT / package.replace(".", "/")
    return [
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(folder.rglob("*.py"))
    ]


AGENTS_SIDE = [*modules_of("effects.client"), *modules_of("effects.core")]


@pytest.mark.parametrize(
    "module", [module for module in AGENTS_SIDE if not module.startswith(INTEGRATIONS)]
)
def test_the_agents_side_stands_without_the_desk(module: str):
    done = import_alone(module)

    assert done.returncode == 0, done.stderr


def test_the_integrations_stand_without_the_desk():
    # All at once: their SDKs take seconds to import.
    done = import_alone(", ".join(modules_of(INTEGRATIONS)))

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", ["effects.models", "effects.celery", "ledger.models"])
def test_the_block_works(module: str):
    done = import_alone(module)

    assert done.returncode != 0
    assert "was imported by the agent's side" in done.stderr
