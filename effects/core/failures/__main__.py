"""Prints the page docs/errors.md: `python -m effects.core.failures > docs/errors.md`."""

from __future__ import annotations

import sys

from effects.core.failures.page import error_page

if __name__ == "__main__":
    sys.stdout.write(error_page())
