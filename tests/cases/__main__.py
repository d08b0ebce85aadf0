"""`python -m tests.cases FOLDER`: judges every case file of a folder.

A line for each case that fails, with what was expected and what came; the last line counts. It
starts a PostgreSQL of its own, which is thrown away at the end.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

import django
from django.test.utils import setup_test_environment

from tests.cases.bank import RUN, Case, Unreadable, files, read

CASE_SECONDS_MAX: Final = 60


class TooSlow(Exception):
    """A case that took longer than `CASE_SECONDS_MAX`."""


@contextmanager
def a_database() -> Iterator[None]:
    """A PostgreSQL with the product's own migrations, for as long as the block lasts."""
    from django.db import connection  # noqa: PLC0415 - the settings come first

    from tests import settings as test_settings  # noqa: PLC0415 - as above
    from tests.support import stack  # noqa: PLC0415 - as above

    postgres, folder = test_settings.TEST_POSTGRES, test_settings.TEST_VAR
    folder.mkdir(mode=0o700)
    try:
        (folder / "static").mkdir()
        postgres.initialise()
        with stack.running(postgres.program(), log=folder / "postgres.log"):
            connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            yield
            connection.close()
    finally:
        for leftover in (folder, postgres.data.parent):
            shutil.rmtree(leftover, ignore_errors=True)


@contextmanager
def a_limit_of(seconds: int) -> Iterator[None]:
    """Raises `TooSlow` in the block when the time is over."""

    def over(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@dataclass(slots=True)
class Report:
    """What is printed in the end."""

    passed: int = 0
    failed: int = 0
    elsewhere: Counter[str] = field(default_factory=Counter)

    def show(self) -> None:
        if self.elsewhere:
            print(f"{self.elsewhere.total()} in tests only ({_counted(self.elsewhere)})")
        print(f"{self.passed} passed, {self.failed} failed")


def _counted(kinds: Counter[str]) -> str:
    return ", ".join(f"{ascii(kind)[1:-1][:40]} {count}" for kind, count in sorted(kinds.items()))


def fail(report: Report, line: str) -> None:
    report.failed += 1
    print(line)


def run(paths: list[Path], report: Report) -> None:
    cases: list[Case] = []
    for path in paths:
        try:
            case = read(path)
        except Unreadable as unreadable:
            fail(report, f"FAIL {ascii(path.name)[1:-1]}  {unreadable}")
            continue
        if case.kind in RUN:
            cases.append(case)
        else:
            report.elsewhere[case.kind] += 1
    if cases:
        with a_database():
            from tests.cases.kinds import asks_providers  # noqa: PLC0415 - as in judge_one

            # What asks providers cannot be undone: its calls stay, so it comes after all others.
            for case in sorted(cases, key=asks_providers):
                judge_one(case, report)


def judge_one(case: Case, report: Report) -> None:
    from tests.cases.judge import judge, line  # noqa: PLC0415 - the models need the set-up before

    try:
        with a_limit_of(CASE_SECONDS_MAX):
            verdict = judge(case)
    except TooSlow:
        says = f"it takes longer than the limit CASE_SECONDS_MAX, {CASE_SECONDS_MAX} s"
        fail(report, f"FAIL {ascii(case.id)[1:-1]}  {says}")
        return
    if verdict.passed:
        report.passed += 1
    else:
        fail(report, line(verdict))


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.cases FOLDER", file=sys.stderr)
        return 2
    try:
        paths = files(Path(arguments[0]))
    except Unreadable as unreadable:
        print(f"cases: {unreadable}", file=sys.stderr)
        return 2
    report = Report()
    run(paths, report)
    report.show()
    return 1 if report.failed else 0


if __name__ == "__main__":
    os.environ["DJANGO_SETTINGS_MODULE"] = "tests.settings"
    django.setup()
    setup_test_environment()
    logging.disable()  # What the doors refuse is what the cases are about.
    raise SystemExit(main(sys.argv[1:]))
