"""Secrets that this machine makes up for itself and keeps in its data folder."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

SECRET_BYTES = 48


def kept_secret(path: Path) -> str:
    """Return the secret kept in `path`; make one up (mode 0600) if there is none.

    Two processes that start together agree: the file appears whole or not at all, and the first one
    wins. Raises `OSError` if the folder cannot be written.
    """
    with suppress(FileNotFoundError):
        return path.read_text(encoding="ascii").strip()
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(secrets.token_urlsafe(SECRET_BYTES) + "\n")
        with suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    return path.read_text(encoding="ascii").strip()
