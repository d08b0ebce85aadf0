"""What a model is shown of a decorated tool: its words and the schema of its arguments."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError, create_model

from effects.client.decorate import AsyncTool, Tool
from effects.core.vocabulary import EffectClass

__all__ = ["arguments_model", "description_of", "what_is_wrong"]


def arguments_model(tool: Tool | AsyncTool) -> type[BaseModel]:
    """The arguments of a tool as a pydantic model, made from its function's annotations.

    It checks and describes; it never converts. A parameter without an annotation takes anything.
    Arguments that the function does not name are refused, unless it takes `**others`. Raises
    pydantic's errors for an annotation that has no JSON schema.
    """
    function = _function_of(tool)
    hints = _hints_of(function)
    parameters = list(inspect.signature(function).parameters.values())
    if tool.effect_class is not EffectClass.READ:
        parameters = parameters[1:]  # The call itself, which no model writes.
    fields: dict[str, Any] = {}
    extra: typing.Literal["allow", "forbid"] = "forbid"
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            extra = "allow"
            continue
        required = parameter.default is inspect.Parameter.empty
        default = ... if required else parameter.default
        fields[parameter.name] = (hints.get(parameter.name, Any), default)
    return create_model(tool.name, __config__=ConfigDict(extra=extra), **fields)


def what_is_wrong(arguments: type[BaseModel], text: str) -> str | None:
    """What is wrong with arguments in JSON text, or None. It is strict: the function gets exactly
    what the model wrote, so "12" is no number. The values themselves are not repeated."""
    try:
        arguments.model_validate_json(text, strict=True)
    except ValidationError as error:
        faults = [
            f"{'.'.join(map(str, fault['loc'])) or 'arguments'}: {fault['msg']}"
            for fault in error.errors(include_url=False, include_input=False)
        ]
        return "; ".join(faults)
    return None


def description_of(tool: Tool | AsyncTool, description: str | None) -> str:
    """What the model is told a tool does: what was given, or the function's docstring. Raises
    TypeError if there is neither, because a model would have to guess."""
    words = description or inspect.getdoc(_function_of(tool)) or ""
    if not words.strip():
        raise TypeError(f"{tool.name} has no docstring and no description. Say what it does.")
    return words


def _function_of(tool: Tool | AsyncTool) -> Callable[..., Any]:
    function: Callable[..., Any] = typing.cast("Any", tool).__wrapped__
    return function


def _hints_of(function: Callable[..., Any]) -> dict[str, Any]:
    """The annotations as types. What cannot be resolved, such as a class that is local to another
    function, takes anything."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except (NameError, TypeError):
        written = inspect.get_annotations(function)
        return {name: hint for name, hint in written.items() if not isinstance(hint, str)}
