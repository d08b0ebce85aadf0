"""Runs one program and sees to it that nothing of it outlives whoever started it.

This file is a program of its own, started by path in a bare interpreter. It imports nothing of
ours.
Its standard input is a lifeline: a pipe whose other end only the starter holds. When the starter is
gone, for whatever reason, `kill -9` included, the pipe ends, and the leash stops the program: first
with the program's own stop signal, then, when its patience is over, by force and with the whole
process group. The kernel's parent-death signal covers the leash itself being killed; it exists on
Linux only, a pipe everywhere.
"""

import argparse
import contextlib
import ctypes
import os
import pwd
import select
import signal
import sys
import time
from pathlib import Path

LIFELINE_FD = 0
# When nobody is left to wait for a clean end, a worker must not wait for a broker that is gone too.
ORPHAN_PATIENCE_SECONDS = 5.0
PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
NOT_STARTED = 127

# PostgreSQL's initdb wants an account behind its user id, and this one is everywhere.
NOBODY = "nobody"


def main() -> int:
    arguments = _arguments()
    wake_fd = _wake_on(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)
    # Orphans of the program become our children, so that they can be found and ended.
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    child = os.fork()
    if child == 0:
        _become(arguments)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.setpgid(child, child)  # Both sides do it, so that neither can be too late.
    code = _watch(child, wake_fd, stop_signal=arguments.stop_signal, patience=arguments.patience)
    _end_the_rest(child)
    return code


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--stop-signal", type=int, default=int(signal.SIGTERM))
    parser.add_argument("--patience", type=float, default=10.0, help="seconds until SIGKILL")
    parser.add_argument("--identity", choices=("plain", "userns", "nobody"), default="plain")
    parser.add_argument("argv", nargs="+")
    return parser.parse_args()


def _wake_on(*signals: int) -> int:
    """Turn signals into bytes (their numbers) on a pipe; return its reading end."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.set_blocking(writing, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in signals:
        signal.signal(number, lambda _number, _frame: None)
    return reading


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


def _become(arguments: argparse.Namespace) -> None:
    """Turn the forked child into the program. Never returns."""
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(
            signal.SIGPIPE, signal.SIG_DFL
        )  # Python ignores it, and exec would keep that.
        os.setpgid(0, 0)
        os.dup2(os.open(os.devnull, os.O_RDONLY), LIFELINE_FD)
        {"plain": lambda: None, "userns": _map_to_nobody, "nobody": _drop_to_nobody}[
            arguments.identity
        ]()
        _prctl(PR_SET_PDEATHSIG, arguments.stop_signal)  # A change of user id clears it: so after.
        os.execvp(arguments.argv[0], arguments.argv)  # noqa: S606 - no shell is the point.
    except OSError as error:
        sys.stderr.write(f"cannot start {arguments.argv[0]}: {error}\n")
        sys.stderr.flush()
    finally:
        os._exit(NOT_STARTED)


def _map_to_nobody() -> None:
    """Look like `nobody` from the inside, stay root on disk: no account, no chown, no chmod."""
    account = pwd.getpwnam(NOBODY)
    uid, gid = os.geteuid(), os.getegid()
    os.unshare(os.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{account.pw_uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{account.pw_gid} {gid} 1")


def _drop_to_nobody() -> None:
    account = pwd.getpwnam(NOBODY)
    os.setgroups([])
    os.setgid(account.pw_gid)
    os.setuid(account.pw_uid)


def _watch(child: int, wake_fd: int, *, stop_signal: int, patience: float) -> int:
    """Wait for the program's end, stopping it when asked or when the lifeline ends."""
    watched = [LIFELINE_FD, wake_fd]
    kill_at: float | None = None
    while True:
        wait = None if kill_at is None else max(0.0, kill_at - time.monotonic())
        readable, _, _ = select.select(watched, [], [], wait)
        stop = False
        if LIFELINE_FD in readable and not os.read(LIFELINE_FD, 4096):
            watched.remove(LIFELINE_FD)
            patience = min(patience, ORPHAN_PATIENCE_SECONDS)
            stop = True
        if wake_fd in readable:
            woken_by = os.read(wake_fd, 4096)
            stop = stop or any(number != signal.SIGCHLD for number in woken_by)
        code = _reap(child)
        if code is not None:
            return code
        if stop and kill_at is None:
            kill_at = time.monotonic() + patience
            os.kill(child, stop_signal)
            os.kill(child, signal.SIGCONT)  # A frozen program would never see the first.
        elif kill_at is not None and (stop or time.monotonic() >= kill_at):
            os.kill(child, signal.SIGKILL)


def _reap(child: int) -> int | None:
    """Collect every child that ended; return the program's exit code once it is among them."""
    code = None
    with contextlib.suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == child:
                ended = os.waitstatus_to_exitcode(status)
                code = ended if ended >= 0 else 128 - ended
    return code


def _end_the_rest(child: int) -> None:
    """Kill what the program left behind: its group, and on Linux also who left the group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    with contextlib.suppress(ChildProcessError, FileNotFoundError):
        while True:
            for pid in children.read_text().split():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main())
