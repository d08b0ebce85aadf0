"""Bodies of a call as its page shows them: the beginning, the size and the digest, never more.

A body of megabytes is neither read as a whole nor sent; whoever needs it takes it as a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from effects.core.exact_json import ARGUMENTS_BYTES_MAX
from reconcile.reading import cut_to_shown

if TYPE_CHECKING:
    from ledger.models import Claim

RAW_BYTES_SHOWN_MAX: Final = 4096
ARGUMENTS_BYTES_SHOWN_MAX: Final = 24_000

_RAW: Final = """
SELECT seq, size_bytes, substring(body FROM 1 FOR %(bytes_max)s), digest, emptied_reason
  FROM ledger_payload
 WHERE claim_id = %(claim_id)s AND workspace_id = %(workspace_id)s AND name = %(name)s
   AND seq = ANY(%(seqs)s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The beginning of a body; `text` None: it was emptied, for `reason`. `digest` is its SHA-256.

    `whole` is the complete text where it is short enough to be read as one, else None.
    """

    size_bytes: int
    text: str | None
    cut: bool
    digest: bytes
    reason: str = ""
    whole: str | None = None


def raw_previews(claim: Claim, seqs: Sequence[int]) -> dict[int, Preview]:
    """The beginnings of these events' raw answers, by the event's number."""
    if not seqs:
        return {}
    return {
        seq: _preview(size, body, digest, reason, shown_max=RAW_BYTES_SHOWN_MAX)
        for seq, size, body, digest, reason in _read(claim, "raw", seqs, RAW_BYTES_SHOWN_MAX)
    }


def arguments_preview(claim: Claim) -> Preview:
    """The arguments as they were received, or where they were emptied, how large they were."""
    if claim.arguments is not None:
        body = claim.arguments.encode()
        digest = hashlib.sha256(body).digest()
        return _preview(len(body), body, digest, "", shown_max=ARGUMENTS_BYTES_SHOWN_MAX)
    for _, size, body, digest, reason in _read(claim, "arguments", [0], ARGUMENTS_BYTES_MAX):
        return _preview(size, body, digest, reason, shown_max=ARGUMENTS_BYTES_SHOWN_MAX)
    return Preview(size_bytes=0, text=None, cut=False, digest=b"")


def _read(claim: Claim, name: str, seqs: Sequence[int], bytes_max: int) -> list[Any]:
    parameters: dict[str, Any] = {
        "claim_id": claim.pk,
        "workspace_id": claim.workspace_id,
        "name": name,
        "seqs": list(seqs),
        "bytes_max": bytes_max,
    }
    with connection.cursor() as cursor:
        cursor.execute(_RAW, parameters)
        rows: list[Any] = cursor.fetchall()
        return rows


def _preview(size: int, body: Any, digest: Any, reason: str | None, *, shown_max: int) -> Preview:
    if body is None:
        return Preview(
            size_bytes=size, text=None, cut=False, digest=bytes(digest), reason=reason or ""
        )
    read = bytes(body)
    text = read.decode("utf-8", "replace")
    shown = cut_to_shown(text, shown_max)
    return Preview(
        size_bytes=size,
        text=shown,
        cut=size > len(read) or len(shown) < len(text),
        digest=bytes(digest),
        whole=text if size == len(read) else None,
    )
