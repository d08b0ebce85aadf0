"""HTTP transports that let no broken response of a model pass for a whole one.

    client = anthropic.Anthropic(http_client=anthropic.DefaultHttpxClient(transport=Guard()))
    client = openai.AsyncOpenAI(
        http_client=openai.DefaultAsyncHttpxClient(transport=AsyncGuard(on_record=keep))
    )

A stream that ends too early raises nothing in the SDKs, and some frameworks then run the calls that
it announced. Under a guard the end of such a stream is an error, `httpx2.RemoteProtocolError`,
which SDKs and frameworks treat as a lost connection. The guard reads the bytes themselves, so it
also sees what an SDK hides. A response that was not streamed is left as it is.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Final

import httpx2
from typing_extensions import override

from effects.client.clock import elapsed_clock_seconds
from effects.core.streams import Ending, Protocol, StreamReader, StreamRecord
from effects.core.vocabulary import Terminal

__all__ = ["AsyncGuard", "Guard"]

PROTOCOLS: Final = {
    "/messages": Protocol.ANTHROPIC,
    "/responses": Protocol.OPENAI_RESPONSES,
    "/chat/completions": Protocol.OPENAI_CHAT,
}
"""Endings of the paths of the three protocols, behind whatever prefix a gateway has."""

LAST_LINE: Final = re.compile(rb"[\r\n]data: ?\[DONE\]")
"""Behind it the OpenAI SDK reads no further, so a verdict at the end of the body would be too late.
A text that speaks of it stands inside a JSON string, where no line begins."""
LAST_LINE_BYTES: Final = len(b"\ndata: [DONE]")

OnRecord = Callable[[StreamRecord], object]


class _Watch:
    """One streamed response as its bytes pass."""

    def __init__(self, protocol: Protocol, on_record: OnRecord | None) -> None:
        self._reader: StreamReader | None = StreamReader(protocol)
        self._on_record = on_record
        self._tail = b""

    def feed(self, chunk: bytes) -> None:
        """The next bytes, before anybody else reads them. Raises as `end` does."""
        if self._reader is None:
            return
        self._reader.feed(chunk, at=elapsed_clock_seconds())
        seen = self._tail + chunk
        self._tail = seen[-LAST_LINE_BYTES:]
        if LAST_LINE.search(seen):
            self.end()

    def close(self, ending: Ending) -> StreamRecord | None:
        """The record, the first time that the end is seen."""
        reader, self._reader = self._reader, None
        if reader is None:
            return None
        record = reader.close(ending)
        if self._on_record is not None:
            self._on_record(record)
        return record

    def end(self) -> None:
        """Nothing more comes. Raises unless the response ended as its protocol says."""
        record = self.close(Ending.CLEAN)
        if record is not None and not _may_pass(record):
            why = record.error_type or record.reason or "without its last event"
            raise httpx2.RemoteProtocolError(
                f"The model's response is not whole ({record.terminal}: {why}). None of its calls "
                "may be run."
            )


def _may_pass(record: StreamRecord) -> bool:
    """A text that was ended by a limit is what it is; calls in it are not whole."""
    if record.terminal is Terminal.INCOMPLETE:
        return not record.calls
    return record.terminal is Terminal.SUCCESS


def _watch_of(
    request: httpx2.Request, response: httpx2.Response, on_record: OnRecord | None
) -> _Watch | None:
    path = request.url.path.rstrip("/")
    protocol = next((PROTOCOLS[end] for end in PROTOCOLS if path.endswith(end)), None)
    kind = response.headers.get("content-type", "")
    streamed = response.is_success and kind.startswith("text/event-stream")
    return _Watch(protocol, on_record) if protocol is not None and streamed else None


def _uncompressed(request: httpx2.Request) -> httpx2.Request:
    """The bytes are read as they pass, so they are asked for as they are."""
    request.headers["accept-encoding"] = "identity"
    return request


class _Watched(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, watch: _Watch) -> None:
        self._stream, self._watch = stream, watch

    @override
    def __iter__(self) -> Iterator[bytes]:
        try:
            for chunk in self._stream:
                self._watch.feed(chunk)
                yield chunk
        except GeneratorExit:
            self._watch.close(Ending.CANCELLED)
            raise
        except BaseException:
            self._watch.close(Ending.RESET)
            raise
        self._watch.end()

    @override
    def close(self) -> None:
        self._watch.close(Ending.CANCELLED)
        self._stream.close()


class _AsyncWatched(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, watch: _Watch) -> None:
        self._stream, self._watch = stream, watch

    @override
    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in self._stream:
                self._watch.feed(chunk)
                yield chunk
        except GeneratorExit:
            self._watch.close(Ending.CANCELLED)
            raise
        except BaseException:
            self._watch.close(Ending.RESET)
            raise
        self._watch.end()

    @override
    async def aclose(self) -> None:
        self._watch.close(Ending.CANCELLED)
        await self._stream.aclose()


class Guard(httpx2.BaseTransport):
    """Passes everything on through `transport`, an `httpx2.HTTPTransport` by default, and watches
    the streams of models. `on_record` is given the record of each; it must not raise."""

    def __init__(
        self,
        transport: httpx2.BaseTransport | None = None,
        *,
        on_record: OnRecord | None = None,
    ) -> None:
        self._transport = transport or httpx2.HTTPTransport()
        self._on_record = on_record

    @override
    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        response = self._transport.handle_request(_uncompressed(request))
        watch = _watch_of(request, response, self._on_record)
        if watch is not None:
            assert isinstance(response.stream, httpx2.SyncByteStream)
            response.stream = _Watched(response.stream, watch)
        return response

    @override
    def close(self) -> None:
        self._transport.close()


class AsyncGuard(httpx2.AsyncBaseTransport):
    """`Guard`, awaited."""

    def __init__(
        self,
        transport: httpx2.AsyncBaseTransport | None = None,
        *,
        on_record: OnRecord | None = None,
    ) -> None:
        self._transport = transport or httpx2.AsyncHTTPTransport()
        self._on_record = on_record

    @override
    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        response = await self._transport.handle_async_request(_uncompressed(request))
        watch = _watch_of(request, response, self._on_record)
        if watch is not None:
            assert isinstance(response.stream, httpx2.AsyncByteStream)
            response.stream = _AsyncWatched(response.stream, watch)
        return response

    @override
    async def aclose(self) -> None:
        await self._transport.aclose()
