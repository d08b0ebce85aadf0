"""What an agent installs: the wheel, on the oldest Python it promises, where no server is."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support.stack import ROOT

TESTS = ("core", "streams", "client")
TOOLS = ("pytest", "hypothesis")
PROVIDERS = ("aiohttp", "anthropic", "botocore", "grpcio", "httpx", "openai", "requests", "stripe")
INSTALLED = {*sys.stdlib_module_names, *TOOLS, "httpx2", "pydantic"}
"""What can be imported in that place, beside our own; the file of a test that needs more is left
out of it."""
FOR_THE_REPOSITORY = {
    "test_canonical_cases.py",
    "test_failures_page.py",
    "test_package.py",
    "test_wheel.py",
}
"""Files that read the documentation or the case bank, which no agent installs."""
INI = """[pytest]
addopts = --import-mode=importlib -q -p no:cacheprovider
markers =
  case
  slow
"""


def oldest_python() -> Path | None:
    found = [
        shutil.which("python3.11"),
        *sorted(str(path) for path in Path.home().glob(".pyenv/versions/3.11.*/bin/python3")),
        shutil.which("python3"),
        "/usr/bin/python3",
    ]
    for candidate in filter(None, found):
        says = subprocess.run(
            [candidate, "-c", "import sys; print(sys.version_info[:2] == (3, 11))"],
            capture_output=True,
            text=True,
            check=False,
        )
        if says.stdout.strip() == "True":
            return Path(candidate)
    return None


def run(*argv: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(word) for word in argv],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-6000:]
    return done.stdout


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an environment that holds the wheel and nothing of the server."""
    python = oldest_python()
    if python is None:
        pytest.skip("no Python 3.11 on this machine")
    place = tmp_path_factory.mktemp("wheel")
    run(python, "-m", "venv", place / "venv", cwd=place)
    run(place / "venv/bin/pip", "wheel", "-q", "--no-deps", "-w", place, ROOT, cwd=place)
    (wheel,) = place.glob("*.whl")
    install(place, wheel, *TOOLS)
    return place


def install(place: Path, *packages: str | Path) -> None:
    """As they are here, so that a new version of theirs is no news of ours."""
    wanted = [one if isinstance(one, Path) else f"{one}=={version(one)}" for one in packages]
    run(place / "venv/bin/pip", "install", "-q", *wanted, cwd=place)


def imports(path: Path) -> Iterator[str]:
    """What the file imports when it is imported itself."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def runs_there(path: Path, installed: set[str], seen: set[Path]) -> bool:
    """Whether a test's file, and whatever of the tests it imports, needs only what is there."""
    seen.add(path)
    for name in imports(path):
        top = name.partition(".")[0]
        if top == "tests":
            other = ROOT / (name.replace(".", "/") + ".py")
            if other.exists() and other not in seen and not runs_there(other, installed, seen):
                return False
        elif (
            name.startswith("effects.") and not name.startswith(("effects.core", "effects.client"))
        ) or top not in installed | {"effects"}:
            return False
    return True


def copied(place: Path, installed: set[str]) -> list[str]:
    """The client's own tests in that place; nothing of the server's code or fixtures."""
    shutil.rmtree(place / "tests", ignore_errors=True)
    needed: set[Path] = set()
    assert runs_there(ROOT / "tests/effects/client/conftest.py", installed, needed)
    chosen = []
    for folder in TESTS:
        for path in sorted((ROOT / "tests/effects" / folder).rglob("test_*.py")):
            seen: set[Path] = set()
            fixtures = re.search(r"live_api|django_db|transactional_db", path.read_text())
            if (
                path.name not in FOR_THE_REPOSITORY
                and not fixtures
                and runs_there(path, installed, seen)
            ):
                needed |= seen
                chosen.append(str(path.relative_to(ROOT)))
    needed |= {ROOT / "docs/canonical-form-vectors.json", *(ROOT / "tests/effects").glob("*.pem")}
    for path in needed:
        target = place / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return chosen


def passed(place: Path, files: Sequence[str]) -> int:
    (place / "pytest.ini").write_text(INI)
    said = run(place / "venv/bin/python", "-m", "pytest", *files, cwd=place)
    (count,) = re.findall(r"(\d+) passed", said)
    return int(count)


def test_the_wheel_holds_the_client_and_nothing_of_the_server(place: Path) -> None:
    (wheel,) = place.glob("*.whl")
    names = run(sys.executable, "-m", "zipfile", "-l", wheel, cwd=place)
    folders = set(re.findall(r"^(effects/\w+)/", names, flags=re.MULTILINE))
    assert folders == {"effects/core", "effects/client"}
    listed = run(place / "venv/bin/pip", "list", "--format=freeze", cwd=place).lower()
    assert not re.search(r"^(django|celery|psycopg|channels)", listed, flags=re.MULTILINE)
    said = run(
        place / "venv/bin/python", "-c", "import effects.client as c; print(c.__file__)", cwd=place
    )
    assert str(place) in said


def test_the_clients_own_tests_pass_there(place: Path) -> None:
    """But for those that need a provider's library or a live ledger, and the long laws."""
    files = [name for name in copied(place, INSTALLED) if not name.endswith("_laws.py")]
    assert "tests/effects/streams/test_streams.py" in files
    assert passed(place, files) > 300


@pytest.mark.slow
def test_the_errors_of_every_library_are_sorted_there_as_well(place: Path) -> None:
    install(place, *PROVIDERS)
    known = {"urllib3", "grpc", *PROVIDERS}
    files = copied(place, INSTALLED | known)
    assert any("failures" in name for name in files)
    assert passed(place, files) > 400
