"""Takes credentials out of a text that will be kept, such as the text of an exception."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["redacted"]

_SECRETS: Final = (
    (re.compile(r"(?i)\b(sk|rk|pk|whsec)_((?:live|test)_)?[a-z0-9]{6,}"), r"\1_[removed]"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9._~+/=-]{6,}"), r"\1 [removed]"),
    (re.compile(r"(?i)(://)[^/@\s]+@"), r"\1[removed]@"),
    # A query may carry a token under any name, and an error's text does not need it.
    (re.compile(r"(?i)(https?://[^\s?'\"]+)\?[^\s'\"]+"), r"\1?[removed]"),
)


def redacted(text: str) -> str:
    """The text without keys of the shapes that payment services use, bearer tokens, passwords in
    addresses, and query strings. It narrows what leaks; a secret of another shape passes."""
    for secret, stand_in in _SECRETS:
        text = secret.sub(stand_in, text)
    return text
