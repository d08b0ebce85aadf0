"""`@effect`: a tool's function whose every call is claimed first and reported afterwards."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, cast, overload

from effects.client.aio import AsyncCall, AsyncLedger
from effects.client.asking import Asked, ToolCall, claim_request
from effects.client.call import Call
from effects.client.effect_result import Effect
from effects.client.ledger import Ledger
from effects.client.results import ObjectFrom, arguments_text, arguments_value, result_text
from effects.core.failures import Contract, ErrorRules, error_rules
from effects.core.for_model import exact_value
from effects.core.vocabulary import EffectClass

__all__ = ["AsyncTool", "Prepared", "Tool", "effect"]

_UNBINDABLE: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)


@overload
def effect(
    ledger: Ledger | Callable[[], Ledger],
    *,
    effect_class: EffectClass | str,
    tool: str | None = None,
    contract: ErrorRules | Contract | str | None = None,
    object_from: ObjectFrom | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


@overload
def effect(
    ledger: AsyncLedger | Callable[[], AsyncLedger],
    *,
    effect_class: EffectClass | str,
    tool: str | None = None,
    contract: ErrorRules | Contract | str | None = None,
    object_from: ObjectFrom | None = None,
) -> Callable[[Callable[..., Awaitable[Any]]], AsyncTool]: ...


def effect(
    ledger: Any,
    *,
    effect_class: EffectClass | str,
    tool: str | None = None,
    contract: ErrorRules | Contract | str | None = None,
    object_from: ObjectFrom | None = None,
) -> Callable[[Callable[..., Any]], Any]:
    """Declares a function as a tool that may change the world, beside its class.

    A write (`keyed_write` or `unkeyed_write`) gets its `Call` as first argument and the model's
    arguments by name. It makes one changing request, with no repeats by its HTTP library, and
    returns the result, or raises what the library raised. A `read` gets the arguments only and
    takes no claim.

    `tool` is the name in the registry, the function's own by default. `contract` says by which
    rules its errors are read: a provider's ("stripe.v1", "generic", "grpc"), or `ErrorRules` with
    rows of your own. `object_from` says where
    the result names the provider's object, such as "id". `ledger` may be a function that is called
    at each call, for agents that configure themselves later.

    With an `AsyncLedger` the function is async, and so is the tool. Raises TypeError at the
    decoration for a generator, for parameters that have no name, and for a plain function with an
    async ledger or the other way round.
    """
    in_force = EffectClass(effect_class)
    rules = error_rules(contract)

    def decorate(function: Callable[..., Any]) -> Any:
        # Not asked for its kind where it is a function: it may not be ready to be called yet.
        awaited = inspect.iscoroutinefunction(function)
        if isinstance(ledger, (Ledger, AsyncLedger)) and awaited != isinstance(ledger, AsyncLedger):
            kinds = ("an async function", "AsyncLedger") if awaited else ("a plain one", "Ledger")
            raise TypeError(f"{function.__name__} is {kinds[0]}: declare it with an {kinds[1]}.")
        kind: Any = AsyncTool if awaited else Tool
        return kind(
            function,
            ledger,
            name=tool or function.__name__,
            effect_class=in_force,
            contract=rules,
            object_from=object_from,
        )

    return decorate


class Declared:
    """What a decorated function is, whether it is awaited or not."""

    def __init__(
        self,
        function: Callable[..., Any],
        ledger: Any,
        *,
        name: str,
        effect_class: EffectClass,
        contract: ErrorRules | Contract | None,
        object_from: ObjectFrom | None,
    ) -> None:
        functools.update_wrapper(cast("Any", self), function)
        self.name = name
        self.effect_class = effect_class
        self._function = function
        self._ledger = ledger
        self._contract = contract
        self._object_from = object_from
        self._signature = _signature(function, effect_class)

    def prepare(self, at: ToolCall, arguments: str) -> Prepared:
        """A call that is checked and not asked for yet, for several that are asked for at once.
        Raises as `run` does before anything is asked."""
        return self._prepared(at, arguments, self._value(arguments))

    def _prepared(self, at: ToolCall, text: str, arguments: dict[str, Any]) -> Prepared:
        if self.effect_class is EffectClass.READ:
            return Prepared(tool=self, arguments=arguments)
        asked = Asked(
            request=claim_request(
                tool=self.name, effect_class=self.effect_class, arguments=text, at=at
            ),
            contract=self._contract,
            object_from=self._object_from,
            outside=sys.exception(),
            received=at.received,
        )
        return Prepared(tool=self, arguments=arguments, asked=asked)

    def _ledger_now(self) -> Any:
        """The ledger that this tool asks, made now where it is a function."""
        known = isinstance(self._ledger, (Ledger, AsyncLedger))
        return self._ledger if known else self._ledger()

    def _checked(self, arguments: dict[str, Any]) -> str:
        self._signature.bind(**arguments)
        text = arguments_text(arguments)
        arguments_value(text)
        return text

    def _value(self, arguments: str) -> dict[str, Any]:
        value = arguments_value(arguments)
        self._signature.bind(**value)
        return value


class Tool(Declared):
    """A decorated function. Call it with the model's call and the arguments by name, or give `run`
    the arguments as the JSON text that the model wrote, which compares most exactly."""

    def __call__(self, at: ToolCall, /, **arguments: Any) -> Effect:
        """Runs the tool once, if the ledger permits. See `run`."""
        return self._run(at, self._checked(arguments), arguments)

    def run(self, at: ToolCall, arguments: str) -> Effect:
        """Claims, runs the function, reports, and returns what it came to. The exceptions of the
        function are sorted and returned in the effect, not raised.

        Raises, before anything is asked or sent: `ArgumentsRefused` or another `BadRequest`, and
        TypeError for arguments that the function does not take. Raises `TokenRefused` or
        `ScopeMissing` if the ledger does not know this agent. KeyboardInterrupt, SystemExit and
        the like are reported as unknown and raised again.
        """
        return self._run(at, arguments, self._value(arguments))

    def _run(self, at: ToolCall, text: str, arguments: dict[str, Any]) -> Effect:
        prepared = self._prepared(at, text, arguments)
        asked = prepared.asked
        if asked is None:
            return prepared.finish(None)
        return prepared.finish(self._ledger_now().begin(asked))

    def carry_out(self, call: Call, arguments: dict[str, Any]) -> Effect:
        """Runs the function for a granted attempt, and reports how it ended."""
        try:
            with self._ledger_now().kept_alive(call):
                result = self._function(call, **arguments)
            if not call.ended and _runs_later(result):
                raise TypeError(f"{self.name} returned {type(result).__name__}, which runs later.")  # noqa: TRY301 - one path sorts and reports
        except Exception as error:  # noqa: BLE001 - whatever it is, it is sorted and reported
            return call.fail(error)
        except BaseException as error:
            call.fail(error)
            raise
        return call.complete(result)

    def read(self, arguments: dict[str, Any]) -> Effect:
        """Runs the function of a tool that changes nothing."""
        return _read_effect(self._function(**arguments))


class AsyncTool(Declared):
    """A decorated async function. The same as `Tool`, awaited; its function gets an `AsyncCall`."""

    async def __call__(self, at: ToolCall, /, **arguments: Any) -> Effect:
        """Runs the tool once, if the ledger permits. See `Tool.run`."""
        return await self._run(at, self._checked(arguments), arguments)

    async def run(self, at: ToolCall, arguments: str) -> Effect:
        """See `Tool.run`. A task that is cancelled while the function runs reports the attempt as
        unknown; the report goes on after the cancellation."""
        return await self._run(at, arguments, self._value(arguments))

    async def _run(self, at: ToolCall, text: str, arguments: dict[str, Any]) -> Effect:
        prepared = self._prepared(at, text, arguments)
        begun = None if prepared.asked is None else await self._ledger_now().begin(prepared.asked)
        return await prepared.finish_async(begun)

    async def carry_out(self, call: Call, arguments: dict[str, Any]) -> Effect:
        """Runs the function for a granted attempt, and reports how it ended."""
        ledger: AsyncLedger = self._ledger_now()
        try:
            with ledger.plain.kept_alive(call):
                result = await self._function(AsyncCall(call, ledger), **arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is sorted and reported
            failed = error
            return await ledger.report(lambda: call.fail(failed))
        except BaseException as error:
            stopped = error
            await ledger.report(lambda: call.fail(stopped))
            raise
        return await ledger.report(lambda: call.complete(result))

    async def read(self, arguments: dict[str, Any]) -> Effect:
        """Runs the function of a tool that changes nothing."""
        return _read_effect(await self._function(**arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """One call of a tool, checked. `asked` is what to ask the ledger; None: nothing is to be."""

    tool: Any  # a Tool or an AsyncTool
    arguments: dict[str, Any]
    asked: Asked | None = None

    def finish(self, begun: Call | Effect | None) -> Effect:
        """What the call comes to, after the ledger's answer."""
        assert isinstance(self.tool, Tool)
        if begun is None:
            return self.tool.read(self.arguments)
        return begun if isinstance(begun, Effect) else self.tool.carry_out(begun, self.arguments)

    async def finish_async(self, begun: Call | Effect | None) -> Effect:
        """The same for an async tool."""
        assert isinstance(self.tool, AsyncTool)
        if begun is None:
            return await self.tool.read(self.arguments)
        if isinstance(begun, Effect):
            return begun
        return await self.tool.carry_out(begun, self.arguments)


def _read_effect(result: Any) -> Effect:
    text = result_text(result)
    shown = None if text is None else exact_value(text)
    told = {"status": "completed", "result": shown}
    return Effect(status="completed", for_model=told, result=shown, value=result)


def _signature(function: Callable[..., Any], effect_class: EffectClass) -> inspect.Signature:
    """The parameters that the model fills. Refuses what cannot be claimed around."""
    name = getattr(function, "__name__", repr(function))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise TypeError(f"{name} is a generator: it runs after it returned. Return a result.")
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if effect_class is not EffectClass.READ:
        if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
            raise TypeError(f"{name} has no first parameter for its call. Add one.")
        parameters = parameters[1:]
    unnamed = [each.name for each in parameters if each.kind in _UNBINDABLE]
    if unnamed:
        raise TypeError(f"{name}: parameter {unnamed[0]} takes no name. Arguments go by name.")
    return signature.replace(parameters=parameters)


def _runs_later(result: Any) -> bool:
    later = inspect.isawaitable(result) or inspect.isgenerator(result)
    if inspect.iscoroutine(result) or inspect.isgenerator(result):
        result.close()
    return later or inspect.isasyncgen(result)
