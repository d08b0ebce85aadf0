"""Bodies of a call to keep as files, exactly as they were received."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_safe

from effects.access import DeskRequest, membership_required
from effects.core.problems import ClaimNotFound
from ledger import queries as record

DOWNLOADS: Final = frozenset({"arguments", "raw", "result"})


@require_safe
@membership_required
def body(request: DeskRequest, claim_id: UUID, seq: int, name: str) -> HttpResponse:
    """A body as it was received, to keep: never shown by the browser as a page of ours."""
    if name not in DOWNLOADS:
        raise Http404("There is no such body.")
    try:
        claim = record.claim(request.workspace.pk, claim_id)
    except ClaimNotFound as missing:
        raise Http404("No call of this workspace has this id.") from missing
    kept = record.payload(claim, seq, name)
    inline = claim.arguments if name == "arguments" and seq == 0 else None
    if kept is None and inline is None:
        raise Http404("There is no such body.")
    if kept is not None and kept.body is None and inline is None:
        raise Http404(f"This body was emptied: {kept.emptied_reason or 'no reason was kept'}.")
    content = inline.encode() if inline is not None else bytes(kept.body or b"") if kept else b""
    response = HttpResponse(content, content_type="application/octet-stream")
    response["Content-Disposition"] = f'attachment; filename="{name}-{claim_id}-{seq}.txt"'
    response["X-Content-Type-Options"] = "nosniff"
    return response
