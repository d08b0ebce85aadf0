"""docs/errors.md says what the table says."""

from __future__ import annotations

import re

import pytest

from effects.core.failures import ErrorProof
from effects.core.failures.page import error_page
from effects.core.failures.table import CLIENTS, LISTED
from tests.support.stack import ROOT

PAGE = (ROOT / "docs" / "errors.md").read_text(encoding="utf-8")


def test_the_page_is_what_the_table_says():
    assert error_page() == PAGE, "make it: python -m effects.core.failures > docs/errors.md"


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)
def test_the_page_has_a_table_for_each_client(client):
    _, found, rest = PAGE.partition(f"\n## {client.name}\n")
    assert found
    section = rest.partition("\n## ")[0]
    assert re.findall(r"^\| `([\w.]+)` \|", section, flags=re.MULTILINE) == [
        row.name for row in client.rows
    ]


def test_the_page_names_every_row_and_every_proof_that_a_user_can_give():
    assert all(f"| `{name}` |" in PAGE for name in LISTED)
    givable = set(ErrorProof) - {ErrorProof.ITS_ANSWER}
    assert {proof.name for proof in givable} <= set(PAGE.split("`"))


def test_the_examples_are_python():
    for example in re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL):
        compile(example, "docs/errors.md", "exec")
