"""Secrets at rest: sealed with a key of this installation, and bound to the place they are kept in.

AES-256-GCM (NIST SP 800-38D) with a random nonce. Each key is derived from one of
`COUNTERFOIL_SEALING_KEYS` by HKDF (RFC 5869): the first seals, any of them opens, so a key is
replaced by putting a new one in front. What is sealed for one row cannot be opened as another's.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings

_FORM: Final = b"\x01"  # the layout: form, key id, nonce, ciphertext with its tag
_KEY_ID_BYTES: Final = 4
_NONCE_BYTES: Final = 12  # SP 800-38D, 8.2
_KEY_BYTES: Final = 32


class CannotOpen(Exception):
    """What was sealed cannot be opened here: its key is not among ours, or it was tampered with."""


def seal(text: str, *, place: str) -> bytes:
    """`text` so that only this installation reads it. `place` names where it will be kept, such as
    "connection:12", and is needed to open it again."""
    key_id, key = _keys(tuple(settings.COUNTERFOIL_SEALING_KEYS))[0]
    nonce = os.urandom(_NONCE_BYTES)
    return _FORM + key_id + nonce + key.encrypt(nonce, text.encode(), place.encode())


def opened(sealed: bytes, *, place: str) -> str:
    """The text that was sealed for this place. Raises `CannotOpen`."""
    kept = bytes(sealed)
    key_id, rest = kept[1 : 1 + _KEY_ID_BYTES], kept[1 + _KEY_ID_BYTES :]
    nonce, body = rest[:_NONCE_BYTES], rest[_NONCE_BYTES:]
    key = dict(_keys(tuple(settings.COUNTERFOIL_SEALING_KEYS))).get(key_id)
    if kept[:1] != _FORM or key is None:
        raise CannotOpen("It was sealed with a key that this installation does not have.")
    try:
        return key.decrypt(nonce, body, place.encode()).decode()
    except (InvalidTag, ValueError) as error:
        raise CannotOpen("It was changed, or it was sealed for another place.") from error


@lru_cache(maxsize=8)
def _keys(written: tuple[str, ...]) -> tuple[tuple[bytes, AESGCM], ...]:
    """Each key with the id that sealed texts name it by."""
    made = []
    for one in written:
        derived = HKDF(
            algorithm=SHA256(), length=_KEY_BYTES, salt=None, info=b"counterfoil sealing"
        ).derive(one.encode())
        made.append((hashlib.sha256(derived).digest()[:_KEY_ID_BYTES], AESGCM(derived)))
    return tuple(made)
