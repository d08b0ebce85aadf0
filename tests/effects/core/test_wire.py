"""When our key counts as being on the wire."""

import pytest

from effects.core.diagnosis.wire import RequestSeen, Wire, check_wire


def seen(operation: str, key: str | None, *granted: str) -> RequestSeen:
    return RequestSeen(operation=operation, granted=frozenset(granted or ("k-1",)), key=key)


CHECKS = [
    ([], Wire.NOT_SEEN, 0),
    ([seen("a", "k-1")], Wire.IDENTICAL, 0),
    ([seen("a", "k-1"), seen("a", "k-1")], Wire.IDENTICAL, 1),
    ([seen("a", '"k-1"')], Wire.IDENTICAL, 0),
    ([seen("a", "k-2", "k-1", "k-2")], Wire.IDENTICAL, 0),
    ([seen("a", None)], Wire.MISSING, 0),
    ([seen("a", "k-1"), seen("a", None)], Wire.MISSING, 1),
    ([seen("a", "other")], Wire.DIFFERS, 0),
    ([seen("a", "")], Wire.DIFFERS, 0),
    ([seen("a", "other"), seen("b", None)], Wire.MISSING, 0),
]


@pytest.mark.parametrize(("requests", "word", "repeated"), CHECKS)
def test_only_what_a_provider_recorded_shows_a_key(
    requests: list[RequestSeen], word: Wire, repeated: int
) -> None:
    found = check_wire(requests)
    assert (found.word, found.repeated, found.requests) == (word, repeated, len(requests))
    assert found.alarming == (word in {Wire.MISSING, Wire.DIFFERS})


@pytest.mark.case("P04")
def test_a_missing_key_names_its_calls_beside_those_with_another_one() -> None:
    found = check_wire([seen("a", None), seen("b", "x"), seen("c", "k-1")])
    assert (found.missing, found.differing) == (("a",), ("b",))
