"""Reads the contracts from their files, once; a mistake in one stops the start, by its name."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any, Final

from pydantic import ValidationError

from effects.contracts.shape import Refusals, Source, Terms
from effects.core.answers import TABLES, Contract
from effects.core.refusals import RefusalTable

__all__ = ["CONTRACTS", "ContractFault", "contract_of", "read_contract", "refusal_table"]

GENERIC: Final = "generic"
_SUFFIX: Final = ".toml"


class ContractFault(ValueError):
    """A contract's file that cannot be relied on. The sentence names the file and the member."""


def read_contract(file_name: str, text: str) -> Terms:
    """One contract from its file. Raises `ContractFault`.

    A part names its source by the id of one of the file's `[sources]`.
    """
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ContractFault(f"{file_name}: {error}") from None
    sources = _sources(file_name, found.pop("sources", {}))
    named = {name: _with_source(file_name, name, part, sources) for name, part in found.items()}
    try:
        terms = Terms.model_validate(named)
    except ValidationError as error:
        raise ContractFault(f"{file_name}: {_fault_words(error)}") from None
    if file_name != f"{terms.name}{_SUFFIX}":
        raise ContractFault(f"{file_name}: holds the contract {terms.name!r}")
    _table(terms.name, terms.refusals, terms.replay.marker)
    return terms


def contract_of(name: str) -> Terms | None:
    """The contract of this name, or None: a tool's row may name one that is not here any more."""
    return CONTRACTS.get(name)


def refusal_table(name: str) -> RefusalTable:
    """Which answers prove a refusal under this contract; an unknown contract is read as generic.

    Give it to `effects.core.refusals.proves_refusal`.
    """
    terms = CONTRACTS.get(name) or CONTRACTS[GENERIC]
    return _table(terms.name, terms.refusals, terms.replay.marker)


def _table(name: str, refusals: Refusals, marker: tuple[str, str] | None) -> RefusalTable:
    base = TABLES[Contract(refusals.base)]
    narrowed = base.narrowed(
        without={row.status: row.why for row in refusals.open_statuses},
        needs_code=frozenset(refusals.needs_code),
        open_codes={row.code: row.why for row in refusals.open_codes},
        hosts=frozenset(refusals.hosts),
    )
    return replace(narrowed, name=name, replay_marker=marker)


def _sources(file_name: str, given: Mapping[str, Any]) -> dict[str, Source]:
    try:
        return {id_: Source.model_validate({"id": id_, **part}) for id_, part in given.items()}
    except (ValidationError, TypeError) as error:
        words = _fault_words(error) if isinstance(error, ValidationError) else str(error)
        raise ContractFault(f"{file_name}: sources: {words}") from None


def _with_source(file_name: str, name: str, part: Any, sources: Mapping[str, Source]) -> Any:
    """The part with its source in the place of the source's id; lists of parts alike."""
    if isinstance(part, list):
        return [_with_source(file_name, name, item, sources) for item in part]
    if not isinstance(part, dict):
        return part
    source = sources.get(part.get("source", ""))
    if source is None:
        raise ContractFault(f"{file_name}: {name} names no source of this file")
    return {**part, "source": source}


def _fault_words(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors(include_url=False)
    )


def _read_all() -> dict[str, Terms]:
    folder = files("effects.contracts") / "data"
    texts = {
        entry.name: entry.read_text(encoding="utf-8")
        for entry in folder.iterdir()
        if entry.name.endswith(_SUFFIX)
    }
    found = (read_contract(name, texts[name]) for name in sorted(texts))
    # The generic one is what a tool has until somebody chooses, so it is offered first.
    return {terms.name: terms for terms in sorted(found, key=lambda t: t.name != GENERIC)}


CONTRACTS: Final[Mapping[str, Terms]] = _read_all()
"""Every contract by its name, "generic" first, then in the order of their names."""
