"""Shows the ledger the tools of an agent that are not decorated, by LangChain's callbacks.

    callbacks = LedgerCallbacks(Events(url, token, source="urn:agent:billing"))
    graph.invoke(said, {"configurable": {"thread_id": "t-1"}, "callbacks": [callbacks]})

Such a tool is recorded, not protected: nobody asks before it runs. Needs the extra `langgraph`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

from typing_extensions import override

from effects.client.integrations.events import Events
from effects.client.integrations.langchain import OURS
from effects.client.results import arguments_text, result_text
from effects.core.events import (
    AttemptCompleted,
    AttemptEnded,
    AttemptFailed,
    AttemptStarted,
    AttemptUnknown,
    ClaimMade,
)
from effects.core.messages import ERROR_CHARACTERS_MAX, NAME_CHARACTERS_MAX, RESULT_BYTES_MAX
from effects.core.problems import ArgumentsRefused
from effects.core.vocabulary import EffectClass, Outcome

try:
    from langchain_core.callbacks import BaseCallbackHandler
    from langchain_core.messages import ToolMessage
    from langchain_core.tools import BaseTool
except ImportError as error:
    raise ImportError(
        "LangChain is not installed. Install the extra: pip install 'counterfoil[langgraph]'."
    ) from error

__all__ = ["LedgerCallbacks"]

logger = logging.getLogger("counterfoil")

ARGUMENTS_BYTES_MAX: Final = 256 * 1024
RUNS_OPEN_MAX: Final = 10_000
STOPPED: Final = "The agent stopped before it was seen how the tool ended."


class LedgerCallbacks(BaseCallbackHandler):
    """Records each run of a tool as an attempt, and ends each exactly once.

    `effect_classes` says by name what the tools may do; a tool that is not named counts as an
    unkeyed write, unless the registry knows it as a read, and one that only reads is not recorded.
    Decorated tools are left out: the ledger has their calls.

    A tool that returned is completed. One that raised, was cancelled, paused the graph, or whose
    error was turned into a message (`handle_tool_error`) is unknown: nobody can say how far a
    foreign tool had come. Arguments that the tool's schema refused never reached it: not sent.
    """

    def __init__(
        self, events: Events, effect_classes: Mapping[str, EffectClass | str] | None = None
    ) -> None:
        self._events = events
        self._classes = {name: EffectClass(kind) for name, kind in (effect_classes or {}).items()}
        self._open: set[UUID] = set()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends what is still running as unknown, and tells what is kept."""
        with self._lock:
            left = list(self._open)
        for run_id in left:
            self._end_unknown(run_id, STOPPED)
        self._events.flush()

    @override
    def on_tool_start(
        self,
        serialized: dict[str, Any],
        input_str: str,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        tags: list[str] | None = None,
        metadata: dict[str, Any] | None = None,
        inputs: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        known = metadata or {}
        tool = str((serialized or {}).get("name") or kwargs.get("name") or "a tool without a name")
        effect_class = self._classes.get(tool, EffectClass.UNKEYED_WRITE)
        if OURS in known or effect_class is EffectClass.READ:
            return
        with self._lock:
            if len(self._open) >= RUNS_OPEN_MAX:
                logger.error("The run %s is not recorded: RUNS_OPEN_MAX are open.", run_id)
                return
            self._open.add(run_id)
        name = str(run_id)  # The ledger knows by thread and call id that another run is a repeat.
        made = ClaimMade(
            claim=name,
            tool=tool[:NAME_CHARACTERS_MAX],
            effect_class=effect_class,
            arguments=_arguments(inputs),
            conversation=_name(known.get("thread_id")),
            call_id=_name(kwargs.get("tool_call_id")),
        )
        self._events.tell(f"{name}:made", "claim.made", made)
        self._events.tell(
            f"{name}:started", "attempt.started", AttemptStarted(claim=name, attempt=name)
        )
        self._events.send()

    @override
    def on_tool_end(
        self, output: Any, *, run_id: UUID, parent_run_id: UUID | None = None, **kwargs: Any
    ) -> None:
        said = output if isinstance(output, list) else [output]
        failed = [one for one in said if getattr(one, "status", None) == "error"]
        if failed:
            self._end_unknown(run_id, f"It answered with an error: {failed[0].content}")
            return
        name = str(run_id)
        done = AttemptCompleted(claim=name, attempt=name, result=_result(output))
        self._end(run_id, "attempt.completed", done)

    @override
    def on_tool_error(
        self,
        error: BaseException,
        *,
        run_id: UUID,
        parent_run_id: UUID | None = None,
        **kwargs: Any,
    ) -> None:
        words = f"{type(error).__name__}: {error}"
        if not _never_reached_the_tool(error):
            self._end_unknown(run_id, words)
            return
        name, shown = str(run_id), words[:ERROR_CHARACTERS_MAX]
        unsent = AttemptFailed(claim=name, attempt=name, proof=Outcome.NOT_SENT, error=shown)
        self._end(run_id, "attempt.failed", unsent)

    def _end_unknown(self, run_id: UUID, words: str) -> None:
        name, shown = str(run_id), words[:ERROR_CHARACTERS_MAX]
        self._end(run_id, "attempt.unknown", AttemptUnknown(claim=name, attempt=name, error=shown))

    def _end(self, run_id: UUID, kind: str, ended: AttemptEnded) -> None:
        """Whoever comes first ends the run; what was not recorded has no end either."""
        with self._lock:
            if run_id not in self._open:
                return
            self._open.remove(run_id)
        self._events.tell(f"{run_id}:ended", kind, ended)
        self._events.send()


def _name(value: Any) -> str | None:
    text = "" if value is None else str(value)
    return text if 0 < len(text) <= NAME_CHARACTERS_MAX else None


def _arguments(inputs: dict[str, Any] | None) -> str | None:
    if inputs is None:
        return None  # Nobody said, which is not the same as none.
    try:
        text = arguments_text(inputs)
    except ArgumentsRefused:
        return None
    return text if len(text.encode()) <= ARGUMENTS_BYTES_MAX else None


def _result(output: Any) -> str | None:
    told = output.content if isinstance(output, ToolMessage) else output
    text = result_text(told)
    return text if text is not None and len(text.encode()) <= RESULT_BYTES_MAX else None


def _never_reached_the_tool(error: BaseException) -> bool:
    """Whether LangChain's own reading of the arguments raised it. A validation error alone proves
    nothing: a tool that has sent may raise one over the answer."""
    trace = error.__traceback__
    inside = None if trace is None else trace.tb_next
    reading = BaseTool._to_args_and_kwargs.__code__  # noqa: SLF001 - where arguments are read
    return inside is not None and inside.tb_frame.f_code is reading
