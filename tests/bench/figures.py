"""What was measured: one line for each figure, and the table that people read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One line of the results.

    A speed has operations a second, ours and those of the bare work in the same rounds. A cost has
    an amount for each operation (`value`, `raw_value`, in `unit`). `ratio` is ours to the bare one.
    """

    name: str
    transport: str
    clients: int
    ops_s: float | None = None
    raw_ops_s: float | None = None
    value: float | None = None
    raw_value: float | None = None
    unit: str = "operations/s"
    ratio: float


def speed(name: str, transport: str, clients: int, *, ops_s: float, raw_ops_s: float) -> Figure:
    return Figure(
        name=name,
        transport=transport,
        clients=clients,
        ops_s=round(ops_s, 1),
        raw_ops_s=round(raw_ops_s, 1),
        ratio=_ratio(ops_s, raw_ops_s),
    )


def cost(name: str, transport: str, *, value: float, raw_value: float, unit: str) -> Figure:
    return Figure(
        name=name,
        transport=transport,
        clients=1,
        value=round(value, 1),
        raw_value=round(raw_value, 1),
        unit=unit,
        ratio=_ratio(value, raw_value),
    )


def _ratio(ours: float, bare: float) -> float:
    return round(ours / bare, 3) if bare else 0.0


def write(figures: Sequence[Figure], path: Path) -> None:
    """One JSON object a line; what does not apply to a figure is left out of its line."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        json.dumps({name: value for name, value in asdict(figure).items() if value is not None})
        for figure in figures
    ]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def table(figures: Sequence[Figure]) -> str:
    head = (
        f"{'what':<16} {'transport':<13} {'clients':>7} {'ours':>9} {'bare':>9} {'ratio':>6}  unit"
    )
    rows = [head]
    for figure in figures:
        ours = figure.value if figure.ops_s is None else figure.ops_s
        bare = figure.raw_value if figure.raw_ops_s is None else figure.raw_ops_s
        assert ours is not None
        assert bare is not None
        rows.append(
            f"{figure.name:<16} {figure.transport:<13} {figure.clients:>7} "
            f"{ours:>9,.1f} {bare:>9,.1f} {figure.ratio:>6.2f}  {figure.unit}"
        )
    return "\n".join(rows)
