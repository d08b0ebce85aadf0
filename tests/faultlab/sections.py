"""All rows of the lab, in the order in which they are printed."""

from __future__ import annotations

from typing import Final

from tests.faultlab.acceptance import MATRIX
from tests.faultlab.experiment import EXPERIMENT
from tests.faultlab.layers import LAYERS
from tests.faultlab.probes import PROBES
from tests.faultlab.routes import ROUTES
from tests.faultlab.rows import Row

ROWS: Final[tuple[Row, ...]] = tuple(
    row for section in (EXPERIMENT, MATRIX, ROUTES, LAYERS, PROBES) for row in section.rows
)
