"""Whether the marker was in the request: read from the bytes that were built, never assumed.

Not finding an effect at the provider proves something only if the request carried our marker. So
what the tool meant to send does not count; what stands in the request that the library built does.
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["marker_in_error", "marker_in_result"]

CHAIN_LENGTH_MAX: Final = 40


def marker_in_error(error: BaseException, marker: str) -> bool | None:
    """Whether the request that a failed attempt was sending held the marker; None if no exception
    of the chain carries its request (httpx, httpx2 and requests do, also under the Stripe SDK)."""
    this: BaseException | None = error
    for _ in range(CHAIN_LENGTH_MAX):
        if this is None:
            return None
        found = _marker_in_request(_request_of(this), marker)
        if found is not None:
            return found
        this = this.__cause__ or this.__context__
    return None


def marker_in_result(result: Any, marker: str) -> bool | None:
    """Whether a tool's result shows that the marker arrived: a provider object that carries it in
    its metadata, or a response whose request held it. None if the result does not show it."""
    found = _marker_in_request(_request_of(result), marker)
    metadata = getattr(result, "metadata", None)
    if metadata is None and isinstance(result, dict):
        metadata = result.get("metadata")
    if metadata is None:
        return found
    values = metadata.values() if isinstance(metadata, dict) else _values_of(metadata)
    return True if marker in values else found


def _values_of(metadata: Any) -> list[Any]:
    to_dict = getattr(metadata, "to_dict", None)
    return list(to_dict().values()) if callable(to_dict) else []


def _request_of(thing: Any) -> Any:
    try:
        return getattr(thing, "request", None)
    except RuntimeError:  # httpx says so where there is no request.
        return None


def _marker_in_request(request: Any, marker: str) -> bool | None:
    if request is None:
        return None
    try:
        body = request.content if hasattr(request, "content") else getattr(request, "body", None)
    except Exception:  # noqa: BLE001 - a streamed body cannot be read again, so nothing is known
        return None
    if isinstance(body, str):
        body = body.encode()
    if isinstance(body, bytes):
        url = str(getattr(request, "url", ""))
        return marker.encode() in body or marker in url
    return None
