"""What an agent installs, and what it may rely on."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import effects.client
from effects.core import problems
from effects.core.problems import LedgerProblem

ROOT = Path(effects.client.__file__).parents[2]
PAGE = (ROOT / "docs" / "client.md").read_text()
SERVER_ONLY = ["django", "celery", "channels", "psycopg", "ninja", "redis"]
OTHERS = ["stripe", "requests", "httpx", "urllib3", "aiohttp"]


def test_every_public_name_is_documented_and_nothing_else_is_public():
    in_table = set(re.findall(r"^\| `(\w+)", PAGE, flags=re.MULTILINE))
    assert in_table == set(effects.client.__all__)


@pytest.mark.parametrize("name", effects.client.__all__)
def test_every_public_name_exists_and_says_what_it_is(name):
    public = getattr(effects.client, name)
    assert name == "VERSION" or (public.__doc__ or "").strip(), name


def test_every_error_that_reaches_an_agent_is_public_by_its_kind():
    kinds = {kind for kind in vars(problems).values() if isinstance(kind, type)}
    public = {getattr(effects.client, name) for name in effects.client.__all__}
    raised = {kind for kind in kinds if issubclass(kind, LedgerProblem) and kind.status != 409}
    for kind in raised:
        assert public & set(kind.__mro__), kind


def test_the_version_is_that_of_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == effects.client.VERSION


def test_the_package_needs_pydantic_and_httpx2_and_nothing_else():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert sorted(re.split(r"[<>=]", needed)[0] for needed in project["dependencies"]) == [
        "httpx2",
        "pydantic",
    ]


def test_the_client_works_where_neither_the_server_nor_any_providers_library_exists():
    program = f"""
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {SERVER_ONLY + OTHERS}:
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocked())
from effects.client import Ledger, ToolCall, effect

ledger = Ledger("http://127.0.0.1:9", "a-token")

@effect(ledger, effect_class="unkeyed_write")
def send(call):
    raise AssertionError("ran")

print(send(ToolCall(conversation="c", turn_index=0)).status)
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ran.stdout.strip(), ran.returncode) == ("ledger_unavailable", 0), ran.stderr


def test_importing_the_client_imports_nothing_until_a_name_is_used():
    program = """
import sys
import effects.client
heavy = {"asyncio", "httpx2", "psycopg", "pydantic"}
print(sorted(heavy & set(sys.modules)))
print(effects.client.Ledger.__name__, "Ledger" in dir(effects.client), "pydantic" in sys.modules)
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["[]", "Ledger True True"]


def test_a_type_checker_sees_the_names_where_they_are_imported_from():
    tree = ast.parse(Path(effects.client.__file__).read_text())
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == effects.client.WHERE
    assert sorted(seen) == sorted(effects.client.__all__)


def test_a_name_that_the_client_has_not_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Legder'"):
        _ = effects.client.Legder


def test_only_who_asks_for_postgresql_needs_psycopg():
    program = """
import sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name == "psycopg":
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
import effects.client

try:
    effects.client.Ledger("postgresql://agent@127.0.0.1/ledger")
except ModuleNotFoundError as missing:
    print(missing)
"""
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "pip install 'counterfoil[postgres]'" in ran.stdout


PYTHON = re.compile(r"```python\n(.*?)```", flags=re.DOTALL)


@pytest.mark.parametrize("number", range(len(PYTHON.findall(PAGE))))
def test_the_examples_are_python(number):
    compile(PYTHON.findall(PAGE)[number], "docs/client.md", "exec")


def test_the_page_is_short():
    assert len(PAGE.splitlines()) <= 180
