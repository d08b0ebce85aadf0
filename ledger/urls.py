"""Addresses of the record: the API and its description."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.urls import URLPattern, URLResolver, path, re_path
from django.views.decorators.csrf import csrf_exempt

from ledger.api import api
from ledger.openapi import PREFIX, docs, openapi_json
from ledger.otlp import traces
from ledger.pages import capture, events, tokens, turns
from ledger.refusals import MethodNotAllowed, NoSuchEndpoint, refused

PATH_CHARACTERS_SHOWN_MAX: Final = 200

View = Callable[..., HttpResponse]


def _with_problem_for_wrong_method(view: View) -> View:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = view(request, *args, **kwargs)
        if not isinstance(response, HttpResponseNotAllowed):
            return response
        problem = refused(MethodNotAllowed(allowed=sorted(response["Allow"].split(", "))))
        problem["Allow"] = response["Allow"]
        return problem

    return answer


@csrf_exempt
def _no_such_endpoint(_request: HttpRequest, rest: str) -> HttpResponse:
    shown = (
        rest if len(rest) <= PATH_CHARACTERS_SHOWN_MAX else f"{rest[:PATH_CHARACTERS_SHOWN_MAX]}…"
    )
    return refused(
        NoSuchEndpoint(f"The API has nothing at /{PREFIX}{shown}. Its addresses are at /api/docs.")
    )


_patterns, _app_name, _namespace = api.urls
# The framework's own root only answers with a page that nobody here serves.
_endpoints = [p for p in _patterns if isinstance(p, URLPattern) and p.name != "api-root"]
for _pattern in _endpoints:
    _pattern.callback = _with_problem_for_wrong_method(_pattern.callback)

urlpatterns: list[URLPattern | URLResolver] = [
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/<int:token_id>/revoke/", tokens.revoke, name="token-revoke"),
    path("events/", events.events, name="events"),
    path("events/<int:item_id>/", events.event, name="event"),
    path("events/<int:item_id>/again", events.again, name="event-again"),
    path("events/<int:item_id>/raw", events.raw, name="event-raw"),
    path("events/<int:item_id>/body", events.body, name="event-body"),
    path("turns/", turns.conversation, name="turns"),
    path("turns/read/", capture.capture, name="capture"),
    path("turns/<any:conversation>/<int:index>", turns.turn, name="turn"),
    # Where OpenTelemetry's exporters send to, so it lies outside the API's own prefix.
    path("v1/traces", traces, name="otlp-traces"),
    path("api/docs", docs, name="api-docs"),
    path("api/openapi.json", openapi_json, name="openapi-json"),
    path(PREFIX, (_endpoints, _app_name, _namespace)),
    # Not `<path:…>`, which a line end does not match: whatever the address, the answer is ours.
    re_path(rf"^{PREFIX}(?P<rest>[\s\S]*)$", _no_such_endpoint),
]
