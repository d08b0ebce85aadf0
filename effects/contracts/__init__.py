"""What providers promise about keys and reading back, as data with a source for every figure.

Needs no Django. `CONTRACTS` holds them by the names that stand in `Tool.contract`;
`refusal_table` is a contract's part that says which answers prove a refusal.
"""

from __future__ import annotations

from effects.contracts.load import (
    CONTRACTS,
    ContractFault,
    contract_of,
    read_contract,
    refusal_table,
)
from effects.contracts.narrowing import (
    ASSUMED_WORKING_SECONDS,
    Compared,
    Promise,
    Remark,
    compared,
    faults,
    filled,
    remarks,
)
from effects.contracts.reading import Line, lines_of, promise_words, window_words
from effects.contracts.shape import PERMANENT_SECONDS, Basis, Published, Source, Terms

__all__ = [
    "ASSUMED_WORKING_SECONDS",
    "CONTRACTS",
    "PERMANENT_SECONDS",
    "Basis",
    "Compared",
    "ContractFault",
    "Line",
    "Promise",
    "Published",
    "Remark",
    "Source",
    "Terms",
    "compared",
    "contract_of",
    "faults",
    "filled",
    "lines_of",
    "promise_words",
    "read_contract",
    "refusal_table",
    "remarks",
    "window_words",
]
