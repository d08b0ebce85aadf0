"""Starts worker processes and listens to them: the queue and the supervisor of the sandbox."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Final

from reconcile.sandbox.jobs import Job, Stage, Word, World
from reconcile.sandbox.worker import run

_FORKSERVER: Final = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["reconcile.sandbox.warm"])
LISTEN_SECONDS: Final = 0.2
_ONE_AT_A_TIME: Final = threading.Lock()


@dataclass(slots=True)
class Delivery:
    """One job in one worker process, and everything that it has said so far."""

    job: Job
    process: BaseProcess
    pipe: Connection
    words: list[Word] = field(default_factory=list)
    woken: int = 0

    def listen(self, until: Callable[[], bool]) -> None:
        """Hear the worker out until the question says yes, or until it ends, however it ends."""
        while not until():
            try:
                if self.pipe.poll(LISTEN_SECONDS):
                    self.words.append(self.pipe.recv())
            except (EOFError, ConnectionResetError):
                break

    def reached(self, stage: Stage) -> bool:
        """Whether the worker has said that it got so far."""
        return any(word.stage is stage for word in self.words)

    def await_stage(self, *stages: Stage) -> None:
        """Listen until one of the stages is reached or the worker is gone."""
        self.listen(lambda: any(self.reached(stage) for stage in stages))

    def await_end(self) -> None:
        """Listen until the worker is gone, and collect it. One that is still frozen is woken."""
        while not self.pipe.closed:
            self.listen(lambda: self.times_frozen > self.woken)
            if self.times_frozen > self.woken:
                self.wake()
                continue
            self._collect()
            self.pipe.close()

    def _collect(self) -> None:
        # Starting a process asks after all others, so two threads could read one exit code, of
        # which the second finds nothing and says 255. One at a time, then.
        wait([self.process.sentinel])
        with _ONE_AT_A_TIME:
            self.process.join()

    def go_on(self) -> None:
        """Let a worker that waits for a word before it sends go on."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.pipe.send(None)

    def await_end_within(self, seconds: float) -> None:
        """Listen until the worker says that it has ended, is gone, or the time is over."""
        until = time.monotonic() + seconds
        self.listen(lambda: self.reached(Stage.ENDED) or time.monotonic() >= until)

    def wake(self) -> None:
        """Let a frozen worker go on."""
        while self.times_frozen > self.woken:
            self.woken += 1
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.words[-1].pid, signal.SIGCONT)

    @property
    def times_frozen(self) -> int:
        """How often it said that it is about to freeze."""
        return sum(word.stage is Stage.FROZEN for word in self.words)

    @property
    def was_killed(self) -> bool:
        """Whether a signal ended it, as opposed to its own end."""
        return self.process.exitcode == -signal.SIGKILL

    @property
    def last(self) -> Word | None:
        """The last thing that it was told, if it got so far."""
        told = [word for word in self.words if word.stage in {Stage.TOLD, Stage.ENDED}]
        return told[-1] if told else None


def deliver(world: World, job: Job) -> Delivery:
    """Hand a job to a new worker process."""
    ours, theirs = _FORKSERVER.Pipe()
    process = _FORKSERVER.Process(
        target=run, args=(world, job, theirs), name=job.worker, daemon=True
    )
    with _ONE_AT_A_TIME:
        process.start()
    theirs.close()
    return Delivery(job=job, process=process, pipe=ours)


def pause(seconds: float) -> None:
    """Let real time pass."""
    time.sleep(seconds)
