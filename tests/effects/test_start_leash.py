"""Nothing outlives whoever started it, and nothing that crashed stays down."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from effects.local import supervisor as supervisor_module
from effects.local.processes import NotStarted, Program, run_to_end, spawn, stop
from effects.local.supervisor import GaveUp, Supervisor, restart_delay_seconds
from tests.support.processes import alive, descendants, still_alive_after
from tests.support.stack import ROOT

# Starts a program on a leash, says so, and waits to be killed.
STARTER = """
import subprocess, sys, time
from effects.local.processes import Program, spawn
program = Program(name="test", argv=("sh", "-c", sys.argv[1]), stop_seconds=1)
child = spawn(program, stdout=None, stderr=None)
time.sleep(600)
"""


def started_by_somebody(script: str) -> subprocess.Popen[str]:
    """Start `script` on a leash held by another process, and wait until it says that it is up."""
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, script], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert starter.stdout is not None
    assert starter.stdout.readline().strip() == "up"
    return starter


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("echo up; exec sleep 600", id="a plain program"),
        pytest.param("trap '' TERM; echo up; while :; do sleep 1; done", id="one that will not"),
        pytest.param("sleep 600 & sleep 600 & echo up; wait", id="one with children"),
        pytest.param(
            f'{sys.executable} -c \'import os, time; os.setsid(); print("up", flush=True);'
            " time.sleep(600)' & wait",
            id="one whose child left the group",
        ),
        pytest.param("echo up; kill -STOP $$", id="a frozen one"),
    ],
)
def test_kill_minus_nine_of_the_starter_leaves_nothing(script: str):
    starter = started_by_somebody(script)
    family = descendants(starter.pid)
    assert len(family) >= 2  # The leash and its program: the test would pass on nothing at all.

    starter.kill()
    starter.communicate()

    assert still_alive_after(family, seconds=10) == set()


def test_a_killed_leash_takes_its_program_along_where_the_kernel_can():
    if sys.platform != "linux":
        return  # Elsewhere only the lifeline protects, and this test cuts the hand that holds it.
    script = Program(name="t", argv=("sh", "-c", "echo up; exec sleep 600"))
    process = spawn(script, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    family = descendants(process.pid)
    assert len(family) == 1

    process.kill()
    process.communicate()

    assert still_alive_after(family, seconds=5) == set()


def test_a_program_is_stopped_with_its_own_signal():
    script = "trap 'exit 7' INT; echo up; while :; do sleep 0.05; done"
    program = Program(name="t", argv=("sh", "-c", script), stop_signal=signal.SIGINT)
    process = spawn(program, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"

    assert stop(process, program) == 7
    process.stdout.close()


def test_patience_ends():
    script = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    program = Program(name="t", argv=("sh", "-c", script), stop_seconds=0.2)
    process = spawn(program, stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"

    assert stop(process, program) == 128 + signal.SIGKILL
    process.stdout.close()


def test_what_a_program_prints_comes_back():
    assert run_to_end(Program(name="t", argv=("echo", "hello")), seconds_max=20) == "hello\n"


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        pytest.param(("sh", "-c", "echo why; exit 3"), "failed with 3: why", id="it fails"),
        pytest.param(("/no/such/program",), "cannot start /no/such/program", id="it is not there"),
        pytest.param(("sleep", "600"), "took longer than", id="it takes too long"),
    ],
)
def test_a_program_that_does_not_succeed_says_why(argv: tuple[str, ...], words: str):
    seconds = 1.5 if argv[0] == "sleep" else 20
    with pytest.raises(NotStarted, match=words):
        run_to_end(Program(name="t", argv=argv), seconds_max=seconds)


class Screen:
    def __init__(self) -> None:
        self.lines: list[tuple[str, str]] = []

    def __call__(self, name: str, line: str) -> None:
        self.lines.append((name, line))

    def says(self, words: str) -> bool:
        return any(words in line for _, line in self.lines)


@pytest.fixture
def keep_signals():
    """Give the test run its own signal handlers back."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.getsignal(number) for number in numbers]
    yield
    signal.set_wakeup_fd(-1)
    for number, handler in zip(numbers, before, strict=True):
        signal.signal(number, handler)


def once_there(path: Path) -> str:
    """Shell words that wait for a file: what dies before it was seen up has not started at all."""
    return f"until [ -e {path} ]; do sleep 0.01; done"


def shell(name: str, script: str) -> Program:
    return Program(name=name, argv=("sh", "-c", script))


@pytest.mark.usefixtures("keep_signals")
class TestSupervisor:
    def test_restarts_what_crashes_until_somebody_presses_ctrl_c(self, tmp_path: Path):
        screen, runs = Screen(), tmp_path / "runs"
        script = f"echo run >> {runs}; [ $(wc -l < {runs}) -ge 3 ] && kill -INT {os.getpid()};"
        started = tmp_path / "started"
        with Supervisor(say=screen) as supervisor:
            supervisor.start([shell("crasher", f"{once_there(started)}; {script} exit 5")])
            started.touch()
            supervisor.run()

        assert runs.read_text().count("run") == 3
        assert screen.says("crasher ended with 5; again in 0.5 s")
        assert screen.says("crasher ended with 5; again in 1 s")

    def test_gives_up_on_what_dies_again_and_again_and_stops_the_rest(
        self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ):
        monkeypatch.setattr(supervisor_module, "DEATHS_IN_A_ROW_MAX", 3)
        monkeypatch.setattr(supervisor_module, "RESTART_SECONDS_MAX", 0.01)
        monkeypatch.setattr(supervisor_module, "WATCH_SECONDS", 0.05)
        screen, others = Screen(), descendants(os.getpid())
        words = "crasher ended with 5, 3 times in a row"
        started = tmp_path / "started"
        with Supervisor(say=screen) as supervisor:
            supervisor.start([shell("steady", "sleep 600")])
            script = f"{once_there(started)}; echo the reason; exit 5"
            supervisor.start([shell("crasher", script)])
            started.touch()
            with pytest.raises(GaveUp, match=words):
                supervisor.run()

        assert screen.lines.count(("crasher", "the reason")) == 3
        assert screen.says("crasher ended with 5; again in 0.01 s")
        assert screen.says("steady stopped")
        assert alive(descendants(os.getpid()) - others) == set()

    def test_stops_in_reverse_order(self):
        screen, others = Screen(), descendants(os.getpid())
        with Supervisor(say=screen) as supervisor:
            supervisor.start([shell("first", "sleep 600")])
            supervisor.start([shell("second", "sleep 600")])
            family = descendants(os.getpid()) - others

        stopped = [line.split()[0] for _, line in screen.lines if "stopped" in line]
        assert stopped == ["second", "first"]
        assert alive(family) == set()

    def test_says_which_program_did_not_start(self):
        screen = Screen()
        broken = replace(shell("broken", "echo reason; exit 4"), ready=lambda: False)
        with (
            Supervisor(say=screen) as supervisor,
            pytest.raises(NotStarted, match="broken ended with 4 while starting"),
        ):
            supervisor.start([broken])

        assert ("broken", "reason") in screen.lines

    def test_keeps_what_a_short_program_prints(self):
        with Supervisor(say=Screen()) as supervisor:
            lines = supervisor.run_once(shell("seed", "echo a; echo; echo b"), seconds_max=20)

        assert lines == ["a", "", "b"]


def test_the_pause_before_a_restart_grows_to_a_limit():
    assert [restart_delay_seconds(n) for n in (1, 2, 3, 4)] == [0.5, 1, 2, 4]
    assert restart_delay_seconds(50) == 30
