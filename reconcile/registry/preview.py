"""How the newest real calls of a tool would read, with settings that are only being typed. Pure but
for the reading of those calls' arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from effects import registry
from effects.models import Tool
from effects.money import Money
from reconcile.registry.arguments import Sample, fit, samples_of
from reconcile.registry.measured import Measured

SHOWN_MAX: Final = 3
FIELDS: Final = ("summary", "amount_field", "currency_field", "customer_field")
_CHARACTERS_MAX: Final = 300


@dataclass(slots=True, kw_only=True)
class Described:
    """The settings as they are typed; the part of a tool that `effects.registry` reads by."""

    name: str
    contract: str = "generic"
    summary: str = ""
    amount_field: str = ""
    amount_is_minor: bool = True
    currency_field: str = ""
    customer_field: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One real call as people would read it."""

    claim_id: str
    summary: str
    money: Money | None
    customer: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`faults`: what cannot be read as settings. `misses`: what the calls have nothing for."""

    read: int
    lines: tuple[Line, ...] = ()
    faults: tuple[str, ...] = ()
    misses: tuple[str, ...] = ()


def typed(data: Mapping[str, str], *, name: str) -> Described:
    """The settings out of a form that may be half typed."""
    said = {field: data.get(field, "").strip()[:_CHARACTERS_MAX] for field in FIELDS}
    return Described(
        name=name,
        contract=data.get("contract", "generic"),
        amount_is_minor=bool(data.get("amount_is_minor")),
        **said,
    )


def preview_of(tool: Tool, described: registry.Described, measured: Measured | None) -> Preview:
    """The newest calls of `tool`, read by `described`."""
    seen = measured.recent if measured else ()
    samples = samples_of(tool.workspace_id, seen) if seen else []
    return preview(described, samples)


def preview(described: registry.Described, samples: Sequence[Sample]) -> Preview:
    """These calls, read by these settings. Pure."""
    faults = tuple(_faults(described))
    if faults:
        return Preview(read=len(samples), faults=faults)
    return Preview(
        read=len(samples),
        lines=tuple(_line(described, sample) for sample in samples[:SHOWN_MAX]),
        misses=tuple(_misses(described, samples)),
    )


def _line(described: registry.Described, sample: Sample) -> Line:
    return Line(
        claim_id=sample.claim_id,
        summary=registry.summary_line(described, sample.text),
        money=registry.amount(described, sample.text),
        customer=registry.customer(described, sample.text),
    )


def _faults(described: registry.Described) -> list[str]:
    found = {
        "Summary": registry.template_fault(described.summary),
        "Amount field": registry.field_fault(described.amount_field),
        "Customer field": registry.field_fault(described.customer_field),
    }
    if not described.currency_field.startswith(registry.FIXED_CURRENCY):
        found["Currency field"] = registry.field_fault(described.currency_field)
    return [f"{field}: {fault}" for field, fault in found.items() if fault]


def _misses(described: registry.Described, samples: Sequence[Sample]) -> list[str]:
    if not samples:
        return []
    found = fit(described, samples)
    of = "the last call" if found.read == 1 else f"the last {found.read} calls"
    said = [f"{{{hole}}} is in none of {of}." for hole in found.holes_missed]
    if found.customer_missed:
        where = _some(found.customer_missed, found.read)
        said.append(f"{described.customer_field} matches nothing in {where}.")
    if found.amount_missed:
        said.append(_amount_words(described, samples, found.amount_missed))
    return said


def _amount_words(described: registry.Described, samples: Sequence[Sample], missed: int) -> str:
    """Which half is missing: the figure, or the currency without which it is none."""
    where = _some(missed, len(samples))
    if not any(registry.has_value(one.text, described.amount_field) for one in samples):
        return f"{described.amount_field} matches nothing in {where}."
    if not described.currency_field:
        return "There is a figure, and no currency: name its field, or a fixed one like =EUR."
    return f"No amount can be read in {where}: the figure or its currency is missing or odd."


def _some(missed: int, read: int) -> str:
    of = "the last call" if read == 1 else f"the last {read} calls"
    return of if missed == read else f"{missed} of {of}"


# What a tool that nobody entered is offered

_AMOUNTS: Final = ("amount", "total", "price", "value", "sum")
_CURRENCIES: Final = ("currency", "currency_code")
_CUSTOMERS: Final = ("customer", "customer_id", "buyer", "recipient", "email", "user_id", "to")


def suggested(names: Sequence[str]) -> dict[str, str]:
    """Fields of a tool by the paths of its arguments: an offer that a person looks at.

    A path is known by its last name; of two, the one that is less deep, then the first.
    """
    known: dict[str, str] = {}
    for path in names:
        last = path.rsplit(".", 1)[-1].casefold()
        if last not in known or path.count(".") < known[last].count("."):
            known[last] = path

    def first(wanted: Sequence[str]) -> str:
        return next((known[word] for word in wanted if word in known), "")

    offered = {
        "amount_field": first(_AMOUNTS),
        "currency_field": first(_CURRENCIES),
        "customer_field": first(_CUSTOMERS),
    }
    return {field: name for field, name in offered.items() if name}
