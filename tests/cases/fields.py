"""What a case says, read member by member, so that nothing of it stays unread.

A case passes only if every member of its input and its expectation was interpreted. What people
alone can read is prose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.cases.bank import Digits

PROSE: Final = frozenset({"must", "must_not", "notes", "title"})
"""Members for people: asserted in tests that carry the case's id."""

_NOTHING: Final = object()


class Fault(Exception):
    """A case that cannot be judged as it stands: where, and why."""

    def __init__(self, where: str, says: str) -> None:
        super().__init__(f"{where}: {says}")
        self.where, self.says = where, says


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """What was expected at a place, and what came."""

    where: str
    expected: Any
    got: Any


@dataclass(slots=True)
class Findings:
    """Everything that was found out about one case."""

    differences: list[Difference] = field(default_factory=list)

    def equal(self, where: str, expected: Any, got: Any) -> None:
        if expected != got:
            self.differences.append(Difference(where=where, expected=expected, got=got))

    def check(self, where: str, expected: str, got: Any, *, holds: bool) -> None:
        if not holds:
            self.differences.append(Difference(where=where, expected=expected, got=got))


def _is_disguised(found: Any, kind: type | tuple[type, ...]) -> bool:
    """A boolean is no number here, and a number that kept its digits is no text."""
    return (isinstance(found, bool) and kind is int) or (isinstance(found, Digits) and kind is str)


class Fields:
    """The members of one object of a case. `take` interprets one; what nobody took is a fault."""

    def __init__(self, where: str, members: Any) -> None:
        if not isinstance(members, Mapping):
            raise Fault(where, "is no object")
        self.where = where
        self._members = dict(members)
        self._taken: set[str] = set()

    def has(self, name: str) -> bool:
        return name in self._members

    def take(self, name: str, kind: type | tuple[type, ...], default: Any = _NOTHING) -> Any:
        """One member, which must be of `kind`. Without a default it must be there."""
        self._taken.add(name)
        found = self._members.get(name, default)
        if found is _NOTHING:
            raise Fault(self.at(name), "is missing")
        if name in self._members and (not isinstance(found, kind) or _is_disguised(found, kind)):
            kinds = kind if isinstance(kind, tuple) else (kind,)
            wanted = " or ".join(one.__name__ for one in kinds)
            raise Fault(self.at(name), f"is no {wanted}")
        return found

    def pass_over(self, *names: str) -> None:
        """Members that are facts for somebody else: they change no answer here."""
        self._taken |= set(names)

    def at(self, name: str) -> str:
        return f"{self.where}.{name}"

    def rest(self) -> dict[str, Any]:
        """The members that nobody has taken yet."""
        return {name: said for name, said in self._members.items() if name not in self._taken}

    def finish(self) -> None:
        """Raises `Fault` for the first member that nobody interpreted."""
        for name in self._members:
            if name not in self._taken | PROSE:
                raise Fault(self.at(name), "is not interpreted")
