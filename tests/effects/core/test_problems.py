import pytest

from effects.core import problems
from effects.core.messages import Problem
from effects.core.problems import (
    KINDS,
    BadRequest,
    LedgerProblem,
    LedgerUnavailable,
    LimitExceeded,
    ScopeMissing,
    TokenRefused,
    problem_from_message,
)


def made(kind: type[LedgerProblem]) -> LedgerProblem:
    return kind(limit="arguments_bytes_max", value=10) if kind is LimitExceeded else kind()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_a_problem_survives_the_way_over_the_wire(kind):
    sent = made(kind)
    read = problem_from_message(Problem.model_validate_json(sent.to_message().model_dump_json()))
    assert type(read) is kind
    assert (read.detail, read.facts) == (sent.detail, sent.facts)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.code)
def test_a_problem_says_what_happened_and_what_to_do(kind):
    sentence = kind.sentence()
    assert sentence.endswith(".")
    assert "  " not in sentence
    assert len(sentence) > 60, "a code is not a sentence"
    assert 400 <= kind.status <= 599
    assert str(made(kind)) == made(kind).detail


def test_codes_are_stable_and_each_stands_for_one_kind():
    assert sorted(kind.code for kind in KINDS) == [
        "arguments_refused",
        "bad_request",
        "claim_not_found",
        "ledger_behind",
        "ledger_unavailable",
        "limit_exceeded",
        "no_identity",
        "not_offered",
        "scope_missing",
        "stale",
        "stale_fence",
        "token_refused",
    ]


def test_every_kind_is_exported():
    assert {kind.__name__ for kind in KINDS} <= set(problems.__all__)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, BadRequest),
        (401, TokenRefused),
        (403, ScopeMissing),
        (408, LedgerUnavailable),
        (422, BadRequest),
        (429, LedgerUnavailable),
        (500, LedgerUnavailable),
        (503, LedgerUnavailable),
        (302, LedgerUnavailable),
    ],
)
def test_a_code_from_a_newer_ledger_is_read_by_its_status(status, kind):
    message = Problem(title="New.", status=status, detail="Newer than this client.", code="newer")
    read = problem_from_message(message)
    assert type(read) is kind
    assert read.facts["unknown_code"] == "newer"


def test_a_limit_is_answered_with_its_name():
    problem = LimitExceeded(limit="arguments_bytes_max", value=262_144)
    assert "arguments_bytes_max (262144)" in problem.detail
    assert problem.to_message().model_dump()["limit"] == "arguments_bytes_max"
