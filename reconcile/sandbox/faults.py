"""Which fault meets which request: chosen by a pure function from a plan and a seed.

A fault is chosen by the request itself (the header ``X-Sandbox-Fault``), else by the first rule
of the plan that matches, else by the plan's rates. The rates are drawn from a digest of the seed
and of what the request is (operation, key or reference, how often it was sent before), never from
a shared random generator: two runs with the same seed meet the same faults in whatever order the
threads arrive.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

FAULT_HEADER: Final = "x-sandbox-fault"
"""Lower-case name of the request header that asks for one fault: ``name`` or ``name=seconds``."""

RULES_PER_PLAN_MAX: Final = 10_000
SECONDS_MAX: Final = 3_600.0


class Fault(StrEnum):
    """What goes wrong with one request, in the order in which a request meets it."""

    NONE = "none"
    DROP_BEFORE = "drop_before"  # the connection closes, nothing was applied
    RATE_LIMIT_429 = "rate_limit_429"  # turned away before the key is looked at
    DELAY = "delay"  # the server works on it for a while, then applies it
    REFUSE_402 = "refuse_402"  # executed and declined; the refusal is stored
    ERROR_500 = "error_500"  # no effect; the 500 is stored
    ERROR_500_THEN_LATE_COMMIT = "error_500_then_late_commit"  # 500 now, the effect later
    GATEWAY_DUPLICATE = "gateway_duplicate"  # a proxy sends the same request twice
    DROP_AFTER_COMMIT = "drop_after_commit"  # applied, then the connection closes
    CUT_MID_BODY = "cut_mid_body"  # applied, then the answer stops half-way


class PlanRefused(ValueError):
    """A fault plan, or a fault header, that cannot be read; the message says which part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenFault:
    """One fault; ``seconds`` is how long a delay lasts or how late a late commit comes."""

    kind: Fault
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the plan may know about one request. ``send_number`` is 0 for the first send."""

    operation: str
    is_write: bool
    idempotency_key: str | None = None
    reference: str | None = None
    marker: str | None = None
    api_version: str | None = None
    fault_header: str | None = None
    send_number: int = 0

    @property
    def identity(self) -> str:
        """What makes two requests sends of the same thing."""
        return self.idempotency_key or self.reference or self.marker or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One fault for the requests that match every field given; None matches everything.

    ``sends_max`` limits the rule to the first sends of each request, so that a retry passes.
    """

    fault: Fault
    operation: str | None = None
    idempotency_key: str | None = None
    reference: str | None = None
    marker: str | None = None
    sends_max: int | None = 1
    seconds: float | None = None

    def matches(self, asked: Asked) -> bool:
        """True if this rule speaks about the request."""
        wanted = (
            (self.operation, asked.operation),
            (self.idempotency_key, asked.idempotency_key),
            (self.reference, asked.reference),
            (self.marker, asked.marker),
        )
        if any(want is not None and want != have for want, have in wanted):
            return False
        return self.sends_max is None or asked.send_number < self.sends_max


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A recipe. ``rates`` are shares of 1 among writes; ``operations`` limits them, if given."""

    seed: int = 0
    rates: Mapping[Fault, float] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    operations: tuple[str, ...] = ()
    delay_seconds: float = 1.5
    late_commit_seconds: float = 3.0


def choose(plan: Plan, asked: Asked) -> ChosenFault:
    """The fault that this request meets under this plan.

    Raises PlanRefused if the request's own header names no fault.
    """
    if asked.fault_header is not None:
        kind, seconds = parse_header(asked.fault_header)
        return _with_seconds(plan, kind, seconds)
    for rule in plan.rules:
        if rule.matches(asked):
            return _with_seconds(plan, rule.fault, rule.seconds)
    if not asked.is_write or (plan.operations and asked.operation not in plan.operations):
        return ChosenFault(kind=Fault.NONE)
    return _with_seconds(plan, _drawn(plan, asked), None)


def _drawn(plan: Plan, asked: Asked) -> Fault:
    point = _point(plan.seed, asked)
    reached = 0.0
    for kind in Fault:
        reached += plan.rates.get(kind, 0.0)
        if point < reached:
            return kind
    return Fault.NONE


def _point(seed: int, asked: Asked) -> float:
    """A number in [0, 1) that depends on nothing but the seed and the request."""
    parts = (str(seed), asked.operation, asked.identity, str(asked.send_number))
    digest = hashlib.sha256("\0".join(parts).encode()).digest()
    return int.from_bytes(digest[:8]) / 2**64


def _with_seconds(plan: Plan, kind: Fault, seconds: float | None) -> ChosenFault:
    if seconds is None:
        usual = {
            Fault.DELAY: plan.delay_seconds,
            Fault.ERROR_500_THEN_LATE_COMMIT: plan.late_commit_seconds,
        }
        seconds = usual.get(kind, 0.0)
    return ChosenFault(kind=kind, seconds=seconds)


def parse_header(value: str) -> tuple[Fault, float | None]:
    """Read ``name`` or ``name=seconds``. Raises PlanRefused."""
    name, _, seconds = value.strip().partition("=")
    return _fault(name.strip()), _seconds(seconds) if seconds else None


def parse_plan(raw: object) -> Plan:
    """Read a plan from decoded JSON. Raises PlanRefused with the field that is wrong."""
    if not isinstance(raw, dict):
        raise PlanRefused("a plan is a JSON object")
    known = {"seed", "rates", "rules", "operations", "delay_seconds", "late_commit_seconds"}
    if unknown := sorted(set(raw) - known):
        raise PlanRefused(f"unknown plan field {unknown[0]!r}; known: {', '.join(sorted(known))}")
    plan = Plan()
    return Plan(
        seed=_whole(raw.get("seed", plan.seed), "seed"),
        rates=_rates(raw.get("rates", {})),
        rules=_rules(raw.get("rules", [])),
        operations=tuple(str(name) for name in raw.get("operations", [])),
        delay_seconds=_seconds(raw.get("delay_seconds", plan.delay_seconds)),
        late_commit_seconds=_seconds(raw.get("late_commit_seconds", plan.late_commit_seconds)),
    )


def _rates(raw: object) -> dict[Fault, float]:
    if not isinstance(raw, dict):
        raise PlanRefused("rates is an object of fault name to share")
    rates = {_fault(name): _number(share, "rate") for name, share in raw.items()}
    if any(share < 0 for share in rates.values()) or sum(rates.values()) > 1:
        raise PlanRefused("rates are shares of 1: none negative, together at most 1")
    return rates


def _rules(raw: object) -> tuple[Rule, ...]:
    if not isinstance(raw, list) or len(raw) > RULES_PER_PLAN_MAX:
        raise PlanRefused(f"rules is a list of at most {RULES_PER_PLAN_MAX} objects")
    return tuple(_rule(item) for item in raw)


def _rule(raw: object) -> Rule:
    matchers = ("operation", "idempotency_key", "reference", "marker")
    if not isinstance(raw, dict) or set(raw) - {*matchers, "fault", "sends_max", "seconds"}:
        raise PlanRefused(f"a rule has fault, sends_max, seconds and any of {matchers}")
    sends_max = raw.get("sends_max", 1)
    seconds = raw.get("seconds")
    return Rule(
        fault=_fault(raw.get("fault")),
        sends_max=None if sends_max is None else _whole(sends_max, "sends_max"),
        seconds=None if seconds is None else _seconds(seconds),
        **{name: str(raw[name]) for name in matchers if raw.get(name) is not None},
    )


def _fault(name: object) -> Fault:
    try:
        return Fault(str(name))
    except ValueError:
        raise PlanRefused(f"no fault {name!r}; known: {', '.join(Fault)}") from None


def _seconds(value: object) -> float:
    seconds = _number(value, "seconds")
    if not 0 <= seconds <= SECONDS_MAX:
        raise PlanRefused(f"seconds must be between 0 and {SECONDS_MAX:g}, not {seconds:g}")
    return seconds


def _number(value: object, name: str) -> float:
    try:
        return float(str(value))
    except ValueError:
        raise PlanRefused(f"{name} must be a number, not {value!r}") from None


def _whole(value: object, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise PlanRefused(f"{name} must be a whole number, not {value!r}")
    return value
