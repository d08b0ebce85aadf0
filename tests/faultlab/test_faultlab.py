"""The fault lab's rows as tests, and what `make faultlab` makes of a red one."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconcile.sandbox.provider.server import Provider
from tests.faultlab import sections
from tests.faultlab.lab import Lab, Scene, a_lab
from tests.faultlab.rows import NO_LEDGER, Result, Row, carry_out
from tests.faultlab.table import summed_up


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    with Provider(tmp_path_factory.mktemp("provider")) as provider:
        yield provider


@pytest.fixture
def lab(live_api: str, provider: Provider) -> Lab:
    return a_lab(live_api, provider)


@pytest.mark.parametrize(
    ("row", "way"),
    [pytest.param(row, way, id=f"{row.name}, {way}") for row in sections.ROWS for way in row.ways],
)
def test_the_lab_shows_green(row: Row, way: str, lab: Lab) -> None:
    result = carry_out(lab, row, way)
    assert result.got == result.expected, result.trace


def test_every_part_of_the_lab_has_all_its_rows() -> None:
    assert Counter(row.section for row in sections.ROWS) == {
        "The local experiment": 3,
        "The acceptance matrix": 10,
        "The routes that replay a turn": 5,
        "The five layers": 5,
        "Probes of the rivals": 10,
    }


def a_row(**got: object) -> Row:
    def run(_: Scene) -> dict[str, object]:
        if "error" in got:
            raise ValueError(got["error"])
        return dict(got)

    return Row(
        section="A section",
        source="a test",
        name="a row",
        expected={"effects": 1},
        run=run,
        ways=(NO_LEDGER,),
    )


def result_of(tmp_path: Path, **got: object) -> Result:
    with Provider(tmp_path) as provider:
        return carry_out(Lab(ways={}, provider=provider, workspace_id=0), a_row(**got), NO_LEDGER)


def test_two_effects_where_one_is_due_are_red_and_the_command_fails(tmp_path: Path) -> None:
    red = result_of(tmp_path / "provider", effects=2)
    assert (red.green, red.got) == (False, {"effects": 2})
    told = summed_up([red], tmp_path / "results.json")
    assert told == (1, f"0 green, 1 red; {tmp_path / 'results.json'}")
    (kept,) = json.loads((tmp_path / "results.json").read_text())
    assert (kept["name"], kept["green"], kept["got"]) == ("a row", False, {"effects": 2})


def test_a_row_that_raises_is_red_and_says_what_it_raised(tmp_path: Path) -> None:
    red = result_of(tmp_path / "provider", error="the provider is on fire")
    assert (red.green, red.got) == (False, {"raised": "ValueError: the provider is on fire"})
    assert "on fire" in red.trace


def test_a_lab_without_a_red_row_succeeds(tmp_path: Path) -> None:
    green = result_of(tmp_path / "provider", effects=1)
    assert summed_up([green], tmp_path / "results.json")[0] == 0
