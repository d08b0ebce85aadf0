"""Starts worker processes and listens to them: the queue and the supervisor of the sandbox."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final

from reconcile.sandbox.jobs import Job, Stage, Word, World
from reconcile.sandbox.worker import run

_FORKSERVER: Final = multiprocessing.get_context("forkserver")
_FORKSERVER.set_forkserver_preload(["reconcile.sandbox.warm"])
LISTEN_SECONDS: Final = 0.2


@dataclass(slots=True)
class Delivery:
    """One job in one worker process, and everything that it has said so far."""

    job: Job
    process: BaseProcess
    pipe: Connection
    words: list[Word] = field(default_factory=list)

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
        """Listen until the worker is gone, and collect it."""
        if not self.pipe.closed:
            self.listen(lambda: False)
            self.process.join()
            self.pipe.close()

    def await_end_within(self, seconds: float) -> None:
        """Listen until the worker says that it has ended, is gone, or the time is over."""
        until = time.monotonic() + seconds
        self.listen(lambda: self.reached(Stage.ENDED) or time.monotonic() >= until)

    def wake(self) -> None:
        """Let a frozen worker go on."""
        frozen = [word.pid for word in self.words if word.stage is Stage.FROZEN]
        for pid in frozen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

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
    ours, theirs = _FORKSERVER.Pipe(duplex=False)
    process = _FORKSERVER.Process(
        target=run, args=(world, job, theirs), name=job.worker, daemon=True
    )
    process.start()
    theirs.close()
    return Delivery(job=job, process=process, pipe=ours)


def pause(seconds: float) -> None:
    """Let real time pass."""
    time.sleep(seconds)
