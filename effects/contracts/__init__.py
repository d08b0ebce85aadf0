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
from effects.contracts.shape import PERMANENT_SECONDS, Basis, Published, Terms

__all__ = [
    "CONTRACTS",
    "PERMANENT_SECONDS",
    "Basis",
    "ContractFault",
    "Published",
    "Terms",
    "contract_of",
    "read_contract",
    "refusal_table",
]
