"""Prints the page docs/contracts.md: `python -m effects.contracts > docs/contracts.md`."""

from __future__ import annotations

import sys

from effects.contracts.page import contract_page

if __name__ == "__main__":
    sys.stdout.write(contract_page())
