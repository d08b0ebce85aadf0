"""Pages that say what went wrong, to what, and what to do next."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def stale_page(
    request: HttpRequest,
    *,
    what: str,
    since: list[str],
    back: str,
    template: str = "effects/409.html",
) -> HttpResponse:
    """409: somebody or something changed `what` after the page was opened.

    `since` says, one sentence each, what happened in between; `back` is the fresh page's address.
    """
    context = {"what": what, "since": since, "back": back}
    return render(request, template, context, status=409)
