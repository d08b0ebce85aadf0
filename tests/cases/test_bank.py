"""Every case of this folder is judged as `make cases` judges it, and none is only kept."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases import bank, words
from tests.cases.at_hand import FOLDER, the_case, the_cases
from tests.cases.fields import PROSE
from tests.cases.judge import judge
from tests.cases.kinds import asks_providers
from tests.support.stack import ROOT

TESTS = ROOT / "tests"


# Those that ask providers are judged outside a transaction, in test_providers_said.py.
@pytest.mark.django_db
@pytest.mark.parametrize(
    "case_id",
    [c.id for c in the_cases().values() if c.kind in bank.RUN and not asks_providers(c)],
)
def test_a_case_comes_out_as_expected(case_id: str) -> None:
    assert judge(the_case(case_id)).failures == ()


def marked(path: Path) -> Iterator[str]:
    """The ids of the cases whose points the tests of a file assert."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="mark"), attr="case")):
                yield from (str(ast.literal_eval(argument)) for argument in node.args)
            case _:
                pass


def ids_with_a_test() -> set[str]:
    return {case_id for path in TESTS.rglob("test_*.py") for case_id in marked(path)}


def test_every_case_with_points_for_people_has_a_test_of_its_id() -> None:
    spoken = {case.id for case in the_cases().values() if PROSE & case.expected.keys()}
    unrun = {case.id for case in the_cases().values() if case.kind not in bank.RUN}
    assert (spoken | unrun) - ids_with_a_test() == set()


def test_every_marked_id_is_a_case() -> None:
    assert ids_with_a_test() - the_cases().keys() == set()


def test_every_file_is_named_after_its_case_and_cites_where_it_comes_from() -> None:
    for path in bank.files(FOLDER):
        case = bank.read(path)
        assert path.name.startswith(f"{case.id}_")
        assert case.prose["title"]
        assert case.prose["what_happened"]
        assert all(url.startswith("https://github.com/") for url in case.prose["source_urls"])


def test_the_page_for_people_has_the_table_of_states() -> None:
    page = (FOLDER / "README.md").read_text(encoding="utf-8")
    for theirs, ours in words.STATES.items():
        assert f"| `{theirs}` | `{ours}` |" in page
