"""Whether our key is on the wire: sent with every request, and the same one for every attempt.

A key that the application hands to a library is not yet a key that the provider sees: some clients
set it for some endpoints only, some proxies strip headers. Only what the provider says it received
tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Wire(StrEnum):
    NOT_SEEN = "not_seen"  # nobody has shown a request yet
    IDENTICAL = "identical"  # every request carried the key that was granted
    MISSING = "missing"  # some request carried none
    DIFFERS = "differs"  # some request carried another one


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestSeen:
    """One request that a provider or a gateway recorded. `operation` names whose it is, `granted`
    are the keys that its attempts were given; `key` None: it was recorded without one."""

    operation: str
    granted: frozenset[str]
    key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WireCheck:
    """The answer for one tool. `requests` were looked at; `missing` and `differing` name the
    operations, `repeated` counts those with more than one request, which alone show sameness."""

    word: Wire
    requests: int = 0
    repeated: int = 0
    missing: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()

    @property
    def alarming(self) -> bool:
        return self.word in {Wire.MISSING, Wire.DIFFERS}


def check_wire(seen: Iterable[RequestSeen]) -> WireCheck:
    """A key that is missing outweighs one that differs: such a request is deduplicated by nobody.

    A quoted key is the same key (the header's value is a quoted string in the IETF's draft).
    """
    requests = list(seen)
    missing = {one.operation for one in requests if one.key is None}
    differing = {
        one.operation
        for one in requests
        if one.key is not None and not {one.key, one.key.strip('"')} & one.granted
    }
    counts: dict[str, int] = {}
    for one in requests:
        counts[one.operation] = counts.get(one.operation, 0) + 1
    word = Wire.IDENTICAL if requests else Wire.NOT_SEEN
    if differing:
        word = Wire.DIFFERS
    if missing:
        word = Wire.MISSING
    return WireCheck(
        word=word,
        requests=len(requests),
        repeated=sum(count > 1 for count in counts.values()),
        missing=tuple(sorted(missing)),
        differing=tuple(sorted(differing)),
    )
