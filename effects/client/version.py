"""The client's version, as it introduces itself to the ledger."""

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.1.0"
