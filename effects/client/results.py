"""Turns a tool's arguments and results into the JSON text that the ledger keeps, and back."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
import json
import uuid
from collections.abc import Callable, Mapping
from typing import Any, Final

from pydantic import BaseModel

from effects.core.exact_json import Refused, parse_json
from effects.core.messages import NAME_CHARACTERS_MAX, RESULT_BYTES_MAX
from effects.core.problems import ArgumentsRefused

__all__ = [
    "ObjectFrom",
    "arguments_text",
    "arguments_value",
    "object_of",
    "replayed_of",
    "result_text",
]

ObjectFrom = str | Callable[[Any], str | None]
"""Where a tool's result names the provider's object: a path such as "id" or "data.id" through
attributes and members, or a function."""

_TEXT_OF: Final = (uuid.UUID, decimal.Decimal, dt.date, dt.time)


def result_text(result: Any) -> str | None:
    """A tool's result as JSON text, or None if it is none or larger than RESULT_BYTES_MAX.

    Decimals, dates and UUIDs become strings; pydantic models, dataclasses and the Stripe SDK's
    objects become JSON objects. NaN and infinity have no place in JSON.
    """
    try:
        text = json.dumps(result, ensure_ascii=False, allow_nan=False, default=_plain)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError):
        return None
    return text if size <= RESULT_BYTES_MAX else None


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if _is_stripe_object(value):
        return value.to_dict(for_json=True)
    if isinstance(value, dt.date | dt.time):
        return value.isoformat()
    if isinstance(value, _TEXT_OF):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no JSON form.")


def _is_stripe_object(value: Any) -> bool:
    kinds = type(value).__mro__
    return any(kind.__module__.partition(".")[0] == "stripe" for kind in kinds) and hasattr(
        value, "to_dict"
    )


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Arguments as JSON text. Raises `ArgumentsRefused` for what JSON cannot hold exactly: a
    Decimal or a date must be a string, as the model wrote it."""
    try:
        return json.dumps(dict(arguments), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise ArgumentsRefused(
            f"The arguments have no exact JSON form: {error}. Give them as the model wrote them.",
            refusal="not_json",
        ) from error


def arguments_value(text: str) -> dict[str, Any]:
    """The arguments in a JSON text, for the tool's function; the text itself is what is claimed.

    A number that a float cannot hold exactly becomes a Decimal. Raises `ArgumentsRefused` with the
    same words as the ledger, before anything is asked or sent.
    """
    try:
        parse_json(text)
    except Refused as refused:
        raise ArgumentsRefused(str(refused), refusal=refused.code, at=refused.at) from refused
    value = json.loads(text, parse_float=_float_or_decimal)
    if not isinstance(value, dict):
        raise ArgumentsRefused(
            "The arguments are not a JSON object. Send an object, by argument name.",
            refusal="arguments_not_an_object",
        )
    return value


def _float_or_decimal(digits: str) -> float | decimal.Decimal:
    value, exact = float(digits), decimal.Decimal(digits)
    finite = value - value == 0
    return value if finite and decimal.Decimal(repr(value)) == exact else exact


def object_of(result: Any, object_from: ObjectFrom | None) -> str | None:
    """The provider object's name in a tool's result, or None if the tool does not say or the result
    does not have it. A wrong path must not turn an effect that happened into an error."""
    if object_from is None:
        return None
    try:
        found = object_from(result) if callable(object_from) else _follow(result, object_from)
    except Exception:  # noqa: BLE001 - the effect has happened, whatever the tool's function says
        return None
    usable = isinstance(found, str) and 0 < len(found) <= NAME_CHARACTERS_MAX
    return found if usable else None


def _follow(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[name] if isinstance(value, Mapping) else getattr(value, name)
    return value


def replayed_of(result: Any) -> bool | None:
    """Whether the Stripe SDK's object is the provider's stored answer; None for other results."""
    if not _is_stripe_object(result):
        return None
    headers = getattr(getattr(result, "last_response", None), "headers", None)
    if headers is None:
        return None
    found = {str(name).lower(): value for name, value in headers.items()}
    return found.get("idempotent-replayed") == "true"
