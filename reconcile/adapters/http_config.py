"""How a provider's own status endpoint is described in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Annotated, Any, Final, Literal

import jmespath
from jmespath.exceptions import JMESPathError
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from reconcile.adapters.base import checked_map, faults_of

EXPRESSION_CHARACTERS_MAX: Final = 300
ARGUMENT_PREFIX: Final = "arguments."
_HOLES: Final = frozenset({"reference", "key", "marker", "claim"})


def _checked_template(url: str) -> str:
    if not url.startswith("/") or url.startswith("//"):
        raise ValueError("starts with one / and holds no host; the host is the connection's")
    holes = {hole for _, hole, _, _ in Formatter().parse(url) if hole is not None}
    if not holes or not holes <= _HOLES:
        raise ValueError("names the call by at least one of {reference}, {key}, {marker}, {claim}")
    return url


def _checked_expression(expression: str) -> str:
    try:
        jmespath.compile(expression or "@")
    except JMESPathError as error:
        raise ValueError(f"is not a JMESPath expression: {error}") from None
    return expression


Expression = Annotated[
    str, Field(max_length=EXPRESSION_CHARACTERS_MAX), AfterValidator(_checked_expression)
]


class AbsentWhen(BaseModel):
    """What the provider promises about something that it has never seen. Nothing: no absence.

    `http_status` is the provider's answer for it. A gateway answers 404 too, so its body must be
    JSON or empty, and `body`, where given, must be true of it ("error.code == 'not_found'").
    `empty`: the list of objects is there and has none.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    http_status: Literal[404, 410] | None = None
    body: Expression = ""
    empty: bool = False


class HttpLookup(BaseModel):
    """A tool's look-up, as the registry holds it.

    `url` is a path template at the connection's host. `{reference}` is what `reference` names: the
    marker, the key, the claim's id, or a member of the arguments ("arguments.order_id"); it must be
    part of every request that this tool sends, because absence rests on it, and of no other call's.
    The other entries are JMESPath expressions: `items` finds the list of objects in the answer
    (empty: the answer is the object), and the rest read one object. `more` is true where further
    pages exist.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: Annotated[str, Field(max_length=500), AfterValidator(_checked_template)]
    reference: Annotated[str, Field(max_length=200)] = "marker"
    items: Expression = ""
    id: Expression = "id"
    status: Expression = "status"
    reference_field: Expression = ""
    amount: Expression = ""
    amount_is_minor: bool = True
    currency: Expression = ""
    customer: Expression = ""
    more: Expression = ""
    map: Annotated[dict[str, str], Field(min_length=1), AfterValidator(checked_map)]
    absent_when: AbsentWhen = AbsentWhen()
    delay_class: Literal["none", "eventual", "unknown"] = "unknown"
    auth_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,60}$")] = "Authorization"
    auth_prefix: Annotated[str, Field(max_length=40)] = "Bearer "


def read_config(config: Mapping[str, Any]) -> HttpLookup:
    """The look-up of a registry entry. Raises ValueError with one sentence a fault, for people."""
    try:
        return HttpLookup.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None
