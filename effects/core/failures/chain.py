"""Reads an exception's chain and its tracebacks: which library, which function, what it held.

Nothing is imported and nothing is changed. A class is named by its top package and its own name,
"requests.ConnectTimeout", wherever inside the package it lives.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import FrameType
from typing import Final

__all__ = ["CHAIN_LENGTH_MAX", "chain_of", "frames_of", "name_of", "names_of", "place_of"]

CHAIN_LENGTH_MAX: Final = 40
FRAMES_MAX: Final = 2000


def name_of(kind: type[BaseException]) -> str:
    """Top package and class: "requests.ConnectTimeout"."""
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def names_of(kind: type[BaseException]) -> list[str]:
    """The names of the class and of every class above it, the nearest first."""
    return [name_of(one) for one in kind.__mro__ if issubclass(one, BaseException)]


def chain_of(error: BaseException, outside: BaseException | None) -> Iterator[BaseException]:
    """The exception, its causes, its contexts (also where they are not shown), the members of a
    group and the reasons that urllib3 and urllib keep in an attribute; each once."""
    seen: set[int] = set() if outside is None else {id(outside)}
    waiting: list[BaseException] = [error]
    while waiting:
        this = waiting.pop()
        if id(this) in seen:
            continue
        seen.add(id(this))
        yield this
        if len(seen) > CHAIN_LENGTH_MAX:
            yield RuntimeError("The chain of exceptions is too long to be read.")
            return
        further = [this.__context__, this.__cause__, getattr(this, "reason", None)]
        further += getattr(this, "exceptions", ())
        waiting += [one for one in further if isinstance(one, BaseException)]


def frames_of(error: BaseException) -> Iterator[FrameType]:
    """The frames of its traceback, the outermost first."""
    trace = error.__traceback__
    for _ in range(FRAMES_MAX):
        if trace is None:
            return
        yield trace.tb_frame
        trace = trace.tb_next


def place_of(frame: FrameType) -> tuple[str, str]:
    """Top package and function: ("socket", "create_connection")."""
    module = str(frame.f_globals.get("__name__", ""))
    return module.partition(".")[0], frame.f_code.co_name
