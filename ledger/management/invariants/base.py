"""What a check is, what it finds, and how it asks the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from django.db import connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One place where an invariant does not hold: of what, and what is wrong."""

    of: str
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One invariant, as a sentence that is true of a sound record."""

    id: str
    sentence: str
    find: Callable[[], Iterable[Difference]]


def rows_of(sql: str) -> Callable[[], Iterator[Difference]]:
    """A check that asks one question."""

    def find() -> Iterator[Difference]:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            for of, says in cursor.fetchall():
                yield Difference(of=str(of), says=str(says))

    return find
