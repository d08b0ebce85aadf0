"""Programs on a leash: what to run, how to stop it, how to know that it is up."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Literal

type Identity = Literal["plain", "userns", "nobody"]

LEASH = Path(__file__).with_name("leash.py")
READY_POLL_SECONDS = 0.05
# What the leash itself needs on top of its program's patience before we stop waiting for it.
LEASH_GRACE_SECONDS = 5.0


class NotStarted(Exception):
    """A program ended, or said nothing for too long, before it was ready."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program of the stack. `ready` is asked until it says yes; without it, running is it."""

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    stop_seconds: float = 10.0
    # Long enough for a busy machine on which the first start compiles everything.
    ready_seconds: float = 180.0
    identity: Identity = "plain"
    ready: Callable[[], bool] | None = None
    # Where a supervisor writes what the program prints, instead of on the screen.
    log: Path | None = None


def leashed(program: Program) -> list[str]:
    """Return the command line that runs `program` on a leash."""
    return [
        sys.executable,
        "-I",
        "-S",
        str(LEASH),
        f"--stop-signal={int(program.stop_signal)}",
        f"--patience={program.stop_seconds}",
        f"--identity={program.identity}",
        "--",
        *program.argv,
    ]


def spawn(
    program: Program, *, stdout: int | IO[bytes], stderr: int | IO[bytes] = subprocess.STDOUT
) -> subprocess.Popen[bytes]:
    """Start `program` on a leash. The caller must keep the result: its `stdin` is the lifeline.

    The leash leads a session of its own, so that a Ctrl-C in the terminal reaches only the caller,
    who then stops its programs in the right order.
    """
    return subprocess.Popen(  # noqa: S603 - the programs are named by our own code.
        leashed(program),
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        env={**os.environ, "PYTHONUNBUFFERED": "1", **program.env},
        start_new_session=True,
    )


def stop(process: subprocess.Popen[bytes], program: Program) -> int:
    """Stop a program and wait for its end; return its exit code."""
    process.terminate()
    try:
        process.wait(program.stop_seconds + LEASH_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdin is not None:
        process.stdin.close()
    return process.returncode


def run_to_end(program: Program, *, seconds_max: float) -> str:
    """Run a program that ends by itself and return what it printed.

    Raises `NotStarted` with the output if it fails or takes longer than `seconds_max`.
    """
    process = spawn(program, stdout=subprocess.PIPE)
    # `communicate` would end the lifeline first, and with it the program.
    lifeline, process.stdin = process.stdin, None
    try:
        output = process.communicate(timeout=seconds_max)[0].decode(errors="replace")
    except subprocess.TimeoutExpired:
        stop(process, program)
        if process.stdout is not None:
            process.stdout.close()
        raise NotStarted(f"{program.name} took longer than {seconds_max} s") from None
    finally:
        if lifeline is not None:
            lifeline.close()
    if process.returncode != 0:
        raise NotStarted(f"{program.name} failed with {process.returncode}: {output.strip()}")
    return output


def wait_until_ready(process: subprocess.Popen[bytes], program: Program) -> None:
    """Wait for `program.ready`. Raises `NotStarted` if the program ends or takes too long."""
    give_up_at = time.monotonic() + program.ready_seconds
    while program.ready is not None and not program.ready():
        if process.poll() is not None:
            raise NotStarted(f"{program.name} ended with {process.returncode} while starting")
        if time.monotonic() > give_up_at:
            raise NotStarted(f"{program.name} was not ready after {program.ready_seconds} s")
        time.sleep(READY_POLL_SECONDS)
