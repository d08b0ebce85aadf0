"""Model responses as they arrive: read from bytes or from an SDK's events, and judged at the end.

`StreamReader` reads one response of one protocol. What it gives is a `StreamRecord`: how the stream
ended, every tool call with the state of its arguments, and what may be dispatched.
"""

from effects.core.streams.reader import Ending, Protocol, StreamReader, read_stream
from effects.core.streams.record import (
    ArgumentsState,
    CallRecord,
    Death,
    Dispatched,
    NotDispatchable,
    StreamFlag,
    StreamRecord,
)
from effects.core.streams.unapplied import StreamGap, unapplied

__all__ = [
    "ArgumentsState",
    "CallRecord",
    "Death",
    "Dispatched",
    "Ending",
    "NotDispatchable",
    "Protocol",
    "StreamFlag",
    "StreamGap",
    "StreamReader",
    "StreamRecord",
    "read_stream",
    "unapplied",
]
