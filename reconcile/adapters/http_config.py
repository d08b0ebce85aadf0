"""How a provider's own status endpoint, or its list, is described in the registry."""

from __future__ import annotations

from collections.abc import Mapping
from string import Formatter
from typing import Annotated, Any, Final, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from reconcile.adapters.base import faults_of
from reconcile.adapters.object_rules import ARGUMENT_PREFIX, Expression, ObjectRules

__all__ = [
    "ARGUMENT_PREFIX",
    "AbsentWhen",
    "HttpList",
    "HttpLookup",
    "Pages",
    "read_config",
    "read_list_config",
]

_IDENTITY: Final = frozenset({"reference", "key", "marker", "claim"})
_WINDOW: Final = frozenset({"since", "until"})


def _holes(url: str) -> frozenset[str]:
    if not url.startswith("/") or url.startswith("//"):
        raise ValueError("starts with one / and holds no host; the host is the connection's")
    return frozenset(hole for _, hole, _, _ in Formatter().parse(url) if hole is not None)


def _names_the_call(url: str) -> str:
    holes = _holes(url)
    if not holes or not holes <= _IDENTITY:
        raise ValueError("names the call by at least one of {reference}, {key}, {marker}, {claim}")
    return url


def _names_the_window(url: str) -> str:
    holes = _holes(url)
    if "since" not in holes or not holes <= _WINDOW:
        raise ValueError("names the time by {since}, and by {until} where the list needs it")
    return url


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


class Pages(BaseModel):
    """How one page leads to the next.

    `by` "cursor": what `at` finds in the answer is sent as the parameter `parameter` ("after").
    "link": what `at` finds is the address of the next page. "header": the header ``Link`` names it
    as ``rel="next"`` (RFC 8288). "number": pages are counted in `parameter`, from `first` on, until
    one is empty. Where `more` of the entry is given, no page follows one of which it is not true.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    by: Literal["cursor", "link", "header", "number"]
    at: Expression = ""
    parameter: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.\[\]-]{0,60}$")] = ""
    first: Annotated[int, Field(ge=0, le=1)] = 1

    @model_validator(mode="after")
    def _is_whole(self) -> Self:
        if self.by in {"cursor", "link"} and not self.at:
            raise ValueError("says where the answer holds it: at")
        if self.by in {"cursor", "number"} and not self.parameter:
            raise ValueError("names the parameter that asks for the next page: parameter")
        return self


class _HttpRules(ObjectRules):
    """What both ways of asking say.

    `items` finds the list of objects in the answer (empty: the answer is the object), `more` is
    true where further pages exist; without `pages` they are not read and the answer says nothing.
    `account` finds in the answer whose it is, to be compared with the connection's account.
    """

    items: Expression = ""
    more: Expression = ""
    pages: Pages | None = None
    account: Expression = ""
    auth_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,60}$")] = "Authorization"
    auth_prefix: Annotated[str, Field(max_length=40)] = "Bearer "


class HttpLookup(_HttpRules):
    """A tool's look-up at an address that names the call.

    `url` is a path template at the connection's host. `{reference}` is what `reference` names.
    """

    url: Annotated[str, Field(max_length=500), AfterValidator(_names_the_call)]
    absent_when: AbsentWhen = AbsentWhen()


class HttpList(_HttpRules):
    """A tool's look-up in a list of the time in question, which is read whole.

    `url` is a path template with `{since}`, and `{until}` where the list needs an end. `instants`
    says how both are written. Every object shows at `reference_field` whose it is.
    """

    url: Annotated[str, Field(max_length=500), AfterValidator(_names_the_window)]
    instants: Literal["iso", "unix"] = "iso"
    items: Annotated[Expression, Field(min_length=1)]
    reference_field: Annotated[Expression, Field(min_length=1)]


def read_config(config: Mapping[str, Any]) -> HttpLookup:
    """The look-up of a registry entry. Raises ValueError with one sentence a fault, for people."""
    try:
        return HttpLookup.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None


def read_list_config(config: Mapping[str, Any]) -> HttpList:
    """As `read_config`, for a list."""
    try:
        return HttpList.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None
