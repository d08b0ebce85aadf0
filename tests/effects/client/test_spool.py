"""What could not be told is kept: through kills, a full disk, two processes and bad records."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from effects.client.spool import Kept, Spool, SpoolFull
from effects.core.problems import (
    ClaimNotFound,
    LedgerProblem,
    LedgerUnavailable,
    ScopeMissing,
    TokenRefused,
)

PROCESSES = multiprocessing.get_context("fork")


def a_record(number: int) -> Kept:
    return Kept(verb="complete", claim=f"claim-{number}", body={"fence": 1, "result": "é" * number})


def told_by(spool: Spool) -> list[Kept]:
    told: list[Kept] = []
    spool.deliver(told.append)
    return told


def in_a_process(work: Callable[..., Any], *arguments: Any) -> int:
    """Runs it in a process of its own; answers how that ended: 0, or minus the signal."""
    process = PROCESSES.Process(target=work, args=arguments)
    process.start()
    process.join(30)
    assert process.exitcode is not None
    return process.exitcode


def kill_this_process(*_: object) -> Any:
    os.kill(os.getpid(), signal.SIGKILL)


def test_records_are_told_once_in_the_order_in_which_they_were_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for number in range(20):
        spool.keep(a_record(number))
    assert spool.waiting() == 20
    assert told_by(Spool(tmp_path / "spool")) == [a_record(number) for number in range(20)]
    assert spool.waiting() == 0
    assert told_by(spool) == []


def die_at(calls: list[int], nth: int, real: Callable[..., Any], *, after: bool = False) -> Any:
    """The function, except that its nth call in this process is the last thing that it does."""

    def doomed(*arguments: Any) -> Any:
        calls.append(1)
        if len(calls) == nth and not after:
            kill_this_process()
        answer = real(*arguments)
        if len(calls) == nth:
            kill_this_process()
        return answer

    return doomed


def keep_and_die(folder: Path, step: str) -> None:
    match step:
        case "half of it written":
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_FSIZE, (60, resource.RLIM_INFINITY))
        case "before the file is synced":
            os.fsync = die_at([], 1, os.fsync)
        case "after the file is synced":
            os.fsync = die_at([], 1, os.fsync, after=True)
        case "before the rename":
            Path.rename = die_at([], 1, Path.rename)  # type: ignore[method-assign]
        case "after the rename":
            Path.rename = die_at([], 1, Path.rename, after=True)  # type: ignore[method-assign]
        case "before the folder is synced":
            os.fsync = die_at([], 2, os.fsync)
        case _:
            assert step == "at the end"
    Spool(folder).keep(a_record(2))


@pytest.mark.parametrize(
    ("step", "kept"),
    [
        ("half of it written", False),
        ("before the file is synced", False),
        ("after the file is synced", False),
        ("before the rename", False),
        ("after the rename", True),
        ("before the folder is synced", True),
        ("at the end", True),
    ],
)
def test_a_killed_process_leaves_a_whole_record_or_none(
    tmp_path: Path,
    step: str,
    kept: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """kill -9 leaves what the kernel has; a rename that happened is seen by everybody else."""
    Spool(tmp_path).keep(a_record(1))
    died = in_a_process(keep_and_die, tmp_path, step)
    assert died in ({0} if step == "at the end" else {-signal.SIGKILL, -signal.SIGXFSZ})
    spool = Spool(tmp_path)
    spool.keep(a_record(3))
    expected = [a_record(1), a_record(2), a_record(3)] if kept else [a_record(1), a_record(3)]
    assert told_by(spool) == expected
    assert spool.refused() == []


def tell_and_die(folder: Path, log: Path) -> None:
    def tell(record: Kept) -> None:
        with log.open("a") as lines:
            lines.write(record.claim + "\n")
        if record == a_record(2):
            kill_this_process()

    Spool(folder).deliver(tell)


def test_a_deliverer_that_is_killed_after_the_answer_tells_that_one_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for number in (1, 2, 3):
        spool.keep(a_record(number))
    assert in_a_process(tell_and_die, tmp_path / "spool", tmp_path / "log") == -signal.SIGKILL
    assert (tmp_path / "log").read_text().split() == ["claim-1", "claim-2"]
    assert told_by(spool) == [a_record(2), a_record(3)]


def keep_many(folder: Path, first: int) -> None:
    spool = Spool(folder)
    for number in range(first, first + 40):
        spool.keep(a_record(number))


def deliver_many(folder: Path, log: Path) -> None:
    def tell(record: Kept) -> None:
        with log.open("a") as lines:
            lines.write(record.claim + "\n")

    spool = Spool(folder)
    for _ in range(50):
        spool.deliver(tell)


def test_two_processes_keep_and_two_deliver_and_each_record_is_told_once(tmp_path: Path) -> None:
    work = [
        PROCESSES.Process(target=keep_many, args=(tmp_path / "spool", 100)),
        PROCESSES.Process(target=keep_many, args=(tmp_path / "spool", 200)),
        PROCESSES.Process(target=deliver_many, args=(tmp_path / "spool", tmp_path / "a")),
        PROCESSES.Process(target=deliver_many, args=(tmp_path / "spool", tmp_path / "b")),
    ]
    for process in work:
        process.start()
    for process in work:
        process.join(60)
        assert process.exitcode == 0
    deliver_many(tmp_path / "spool", tmp_path / "a")
    lists = [(tmp_path / log).read_text().split() for log in "ab" if (tmp_path / log).exists()]
    told = [claim for claims in lists for claim in claims]
    expected = [f"claim-{number}" for number in (*range(100, 140), *range(200, 240))]
    assert sorted(told) == sorted(expected)
    for claims in lists:
        for hundred in ("claim-1", "claim-2"):
            of_one_process = [claim for claim in claims if claim.startswith(hundred)]
            assert of_one_process == sorted(of_one_process)


def keep_on_a_full_disk(folder: Path) -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (300, resource.RLIM_INFINITY))
    spool = Spool(folder)
    spool.keep(a_record(1))
    with pytest.raises(SpoolFull, match=r"claim claim-200 could not be kept .* Make room there"):
        spool.keep(a_record(200))
    spool.keep(a_record(3))


def test_where_the_disk_takes_no_more_the_record_is_refused_and_the_others_stay(
    tmp_path: Path,
) -> None:
    assert in_a_process(keep_on_a_full_disk, tmp_path) == 0
    assert told_by(Spool(tmp_path)) == [a_record(1), a_record(3)]
    assert list(tmp_path.glob("*.draft")) == []


@pytest.mark.parametrize(
    ("limits", "named"), [({"records_max": 2}, "RECORDS_MAX"), ({"bytes_max": 600}, "BYTES_MAX")]
)
def test_the_limit_is_named_and_loses_nothing(
    tmp_path: Path, limits: dict[str, int], named: str
) -> None:
    spool = Spool(tmp_path, **limits)
    spool.keep(a_record(0))
    spool.keep(a_record(1))
    with pytest.raises(SpoolFull, match=named):
        spool.keep(a_record(200))
    assert told_by(spool)[:2] == [a_record(0), a_record(1)]


@pytest.mark.parametrize(
    "problem", [LedgerUnavailable(), TokenRefused(), ScopeMissing()], ids=lambda p: p.code
)
def test_everything_waits_while_the_ledger_is_away_or_the_token_is_refused(
    tmp_path: Path, problem: LedgerProblem
) -> None:
    spool = Spool(tmp_path)
    spool.keep(a_record(1))
    spool.keep(a_record(2))

    def tell(_: Kept) -> None:
        raise problem

    assert (spool.deliver(tell).told, spool.waiting()) == (0, 2)
    assert told_by(spool) == [a_record(1), a_record(2)]


def test_a_record_that_is_refused_is_set_aside_with_the_reason_and_blocks_nobody(
    tmp_path: Path,
) -> None:
    spool = Spool(tmp_path)
    for number in (1, 2, 3):
        spool.keep(a_record(number))
    told: list[Kept] = []

    def tell(record: Kept) -> None:
        if record == a_record(2):
            raise ClaimNotFound("No claim claim-2 is in this workspace.")
        told.append(record)

    delivered = spool.deliver(tell)
    assert (delivered.told, delivered.refused, delivered.waiting) == (2, 1, 0)
    assert told == [a_record(1), a_record(3)]
    ((name, why),) = spool.refused()
    assert why == "No claim claim-2 is in this workspace."
    assert (tmp_path / "refused" / f"{name}.record").exists()


@pytest.mark.parametrize("damage", ["cut", "changed", "another version", "empty"])
def test_a_damaged_file_is_set_aside_and_swallows_nothing(tmp_path: Path, damage: str) -> None:
    spool = Spool(tmp_path)
    for number in (1, 2, 3):
        spool.keep(a_record(number))
    path = sorted(tmp_path.glob("*.record"))[1]
    whole = path.read_bytes()
    path.write_bytes(
        {
            "cut": whole[:-5],
            "changed": whole.replace(b"claim-2", b"claim-9"),
            "another version": whole.replace(b"spool-1", b"spool-7"),
            "empty": b"",
        }[damage]
    )
    assert told_by(spool) == [a_record(1), a_record(3)]
    assert len(spool.refused()) == 1


def test_only_its_owner_can_read_a_record(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.keep(a_record(1))
    (path,) = (tmp_path / "spool").glob("*.record")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "spool").stat().st_mode) == 0o700
    assert json.loads(path.read_bytes().partition(b"\n")[2])["claim"] == "claim-1"
