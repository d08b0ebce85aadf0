"""What a row of the tables is: one exact class of exceptions, when it is raised, what it proves.

A row speaks for one class and not for its subclasses: one from elsewhere may mean anything. Only
`ITS_ANSWER` takes the subclasses in, since an answer is the provider's word and not the class's.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

__all__ = ["Client", "ErrorProof", "Row", "answered", "by_cause", "by_stage", "silent", "unsent"]


class ErrorProof(Enum):
    """What a class of exceptions proves about the request that met it."""

    UNSENT = "no byte of the request was sent"
    WHILE_CONNECTING = "unsent if raised while connecting, unknown otherwise"
    ITS_CAUSE = "what its cause proves"
    ITS_ANSWER = "what the answer in it proves, by the contract"
    NOTHING = "unknown"


@dataclass(frozen=True, slots=True)
class Row:
    """`name` is the top package and the class, `when` one clause that says when it is raised."""

    name: str
    proof: ErrorProof
    when: str


@dataclass(frozen=True, slots=True)
class Client:
    """The rows of one library, and what else its users should know, as a list in Markdown."""

    name: str
    rows: tuple[Row, ...]
    notes: str = ""


def unsent(name: str, when: str) -> Row:
    return Row(name, ErrorProof.UNSENT, when)


def by_stage(name: str, when: str) -> Row:
    return Row(name, ErrorProof.WHILE_CONNECTING, when)


def by_cause(name: str, when: str) -> Row:
    return Row(name, ErrorProof.ITS_CAUSE, when)


def answered(name: str, when: str) -> Row:
    return Row(name, ErrorProof.ITS_ANSWER, when)


def silent(name: str, when: str) -> Row:
    return Row(name, ErrorProof.NOTHING, when)
