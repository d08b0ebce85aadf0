"""The house rules that no linter asks: how long files and functions may be, and what is banned."""

import ast
import itertools
import re
import subprocess
from pathlib import Path

import pytest

from tests.support.stack import ROOT

FILE_LINES_MAX = 400
FUNCTION_LINES_MAX = 60
APPS = ("effects", "ledger", "reconcile")


def python_files() -> list[Path]:
    """Return our own code; migrations are written by a machine and read by nobody."""
    found = [path for app in APPS for path in sorted((ROOT / app).rglob("*.py"))]
    return [path for path in found if "migrations" not in path.parts]


def test_there_is_code_to_judge():
    assert len(python_files()) > 30


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_files_and_functions_are_short_enough_to_be_read(path: Path):
    text = path.read_text(encoding="utf-8")
    lines = text.count("\n")
    assert lines <= FILE_LINES_MAX, f"{lines} lines: split the file along what it is about"

    too_long = [
        f"{node.name} at line {node.lineno} has {length}"
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (length := (node.end_lineno or node.lineno) - node.lineno + 1) > FUNCTION_LINES_MAX
    ]
    assert too_long == []


@pytest.mark.parametrize("app", APPS)
def test_every_folder_of_code_is_a_package(app: str):
    folders = {path.parent for path in (ROOT / app).rglob("*.py")}

    assert [str(f.relative_to(ROOT)) for f in folders if not (f / "__init__.py").exists()] == []


def test_the_root_of_effects_is_empty():
    # An agent imports this file: one line in it, and every agent carries what that line imports.
    assert (ROOT / "effects" / "__init__.py").read_bytes() == b""


EXCEPTION = re.compile(r"# (?:noqa|type: ignore)(?:: ([A-Z]+\d+)|\[([a-z-]+)\])?(.*)")


def unexplained(path: Path) -> list[str]:
    """Return the exceptions in `path` that name no rule, or a rule for which no reason is given.

    The reason stands behind one of them or in a comment above it; once in a file is enough.
    """
    reasons: dict[str, bool] = {}
    lines = path.read_text(encoding="utf-8").splitlines()
    for above, line in itertools.pairwise(["", *lines]):
        found = EXCEPTION.search(line)
        if found:
            rule = found[1] or found[2] or f"no rule in: {line.strip()}"
            explained = "-" in found[3] or "#" in found[3] or above.lstrip().startswith("#")
            reasons[rule] = reasons.get(rule, False) or (explained and "no rule" not in rule)
    return [f"{path.relative_to(ROOT)}: {rule}" for rule, given in reasons.items() if not given]


def test_every_exception_to_a_rule_says_which_rule_and_why():
    assert [words for path in python_files() for words in unexplained(path)] == []


def test_nothing_generated_is_kept_in_the_repository():
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.splitlines()
    unwanted = (".pyc", ".sqlite3", ".log", ".pem.key")

    assert [name for name in listed if name.endswith(unwanted) or name.startswith("var")] == []
