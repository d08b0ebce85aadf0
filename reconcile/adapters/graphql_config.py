"""How a question to a GraphQL server is described in the registry."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Final, Literal, Self

from graphql import (
    DocumentNode,
    FragmentDefinitionNode,
    GraphQLError,
    NonNullTypeNode,
    OperationDefinitionNode,
    OperationType,
    parse,
)
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from reconcile.adapters.base import faults_of
from reconcile.adapters.object_rules import ARGUMENT_PREFIX, Expression, ObjectRules

DOCUMENT_CHARACTERS_MAX: Final = 10_000
DOCUMENT_TOKENS_MAX: Final = 2000
VARIABLES_MAX: Final = 20
CONSTANT: Final = "="
CURSOR: Final = "cursor"
IDENTITY: Final = frozenset({"reference", "key", "marker", "claim"})
_WINDOW: Final = frozenset({"since", "until"})


@lru_cache(maxsize=256)
def read_document(text: str) -> DocumentNode:
    """The parsed document, if it holds one query and nothing else. Raises ValueError."""
    try:
        document = parse(text, no_location=True, max_tokens=DOCUMENT_TOKENS_MAX)
    except (GraphQLError, RecursionError) as error:
        said = error.message if isinstance(error, GraphQLError) else "it is nested too deeply"
        raise ValueError(f"is no GraphQL document: {said}") from None
    operations = [d for d in document.definitions if isinstance(d, OperationDefinitionNode)]
    writes = [one for one in operations if one.operation is not OperationType.QUERY]
    if writes:
        raise ValueError(f"holds a {writes[0].operation.value}; only a query is ever asked")
    if len(operations) != 1:
        raise ValueError(f"holds {len(operations)} operations; one query is asked")
    if not all(
        isinstance(d, OperationDefinitionNode | FragmentDefinitionNode)
        for d in document.definitions
    ):
        raise ValueError("defines types; it holds one query and its fragments")
    return document


def _checked_document(text: str) -> str:
    read_document(text)
    return text


def _checked_variables(variables: dict[str, str]) -> dict[str, str]:
    for name, source in variables.items():
        if source.startswith(CONSTANT):
            try:
                json.loads(source.removeprefix(CONSTANT))
            except ValueError:
                raise ValueError(f"{name}: after = stands JSON, like =100 or =null") from None
        elif source not in IDENTITY | _WINDOW | {CURSOR} and not source.startswith(ARGUMENT_PREFIX):
            known = ", ".join(sorted(IDENTITY | _WINDOW | {CURSOR}))
            raise ValueError(f"{name} is {source!r}; say {known}, arguments.<member> or =<JSON>")
    return variables


class GraphqlAbsentWhen(BaseModel):
    """What the server promises about something that it has never seen. Nothing: no absence.

    `empty`: the list is there and has no object. `null`: the member is there and is null.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    empty: bool = False
    null: bool = False


class GraphqlLookup(ObjectRules):
    """A tool's look-up by one registered query.

    `path` is where the server listens, at the connection's host. `variables` says what each
    variable of the query is: reference, key, marker, claim, since, until, cursor, a member of the
    arguments, or a constant ("=100"). The expressions are read in the answer's `data`: `items`
    finds the objects or the one object, `page_info` what the Relay specification calls PageInfo
    (https://relay.dev/graphql/connections.htm), `account` whose answer it is.
    """

    path: Annotated[str, Field(max_length=500, pattern=r"^/([^/\s?#{}][^\s?#{}]*)?$")] = "/graphql"
    document: Annotated[
        str, Field(max_length=DOCUMENT_CHARACTERS_MAX), AfterValidator(_checked_document)
    ]
    variables: Annotated[
        dict[str, str], Field(max_length=VARIABLES_MAX), AfterValidator(_checked_variables)
    ] = {}
    items: Annotated[Expression, Field(min_length=1)]
    page_info: Expression = ""
    account: Expression = ""
    instants: Literal["iso", "unix"] = "iso"
    absent_when: GraphqlAbsentWhen = GraphqlAbsentWhen()
    auth_header: Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{1,60}$")] = "Authorization"
    auth_prefix: Annotated[str, Field(max_length=40)] = "Bearer "

    @property
    def parsed(self) -> DocumentNode:
        return read_document(self.document)

    @model_validator(mode="after")
    def _variables_fit(self) -> Self:
        operation = next(
            d for d in self.parsed.definitions if isinstance(d, OperationDefinitionNode)
        )
        declared = {one.variable.name.value: one for one in operation.variable_definitions or ()}
        if odd := sorted(set(self.variables) - set(declared)):
            raise ValueError(f"variables: the query declares no ${odd[0]}")
        missing = sorted(
            name
            for name, one in declared.items()
            if isinstance(one.type, NonNullTypeNode)
            and one.default_value is None
            and name not in self.variables
        )
        if missing:
            raise ValueError(f"variables: the query needs ${missing[0]}")
        if (CURSOR in self.variables.values()) != bool(self.page_info):
            raise ValueError("page_info and a variable that is the cursor belong together")
        return self


class GraphqlQuestion(GraphqlLookup):
    """A question that names the call."""

    @model_validator(mode="after")
    def _names_the_call(self) -> Self:
        sources = set(self.variables.values())
        if not sources & IDENTITY and self.reference not in sources:
            raise ValueError("variables: one of them names the call: reference, key, marker, claim")
        return self


class GraphqlList(GraphqlLookup):
    """A question for the time in question; every object shows at `reference_field` whose it is."""

    reference_field: Annotated[Expression, Field(min_length=1)]

    @model_validator(mode="after")
    def _names_the_window(self) -> Self:
        sources = set(self.variables.values())
        own = {s for s in sources if s in IDENTITY or s.startswith(ARGUMENT_PREFIX)}
        if "since" not in sources or own:
            raise ValueError("variables: a list is asked by since (and until), and by no call's")
        return self


def read_config(config: Mapping[str, Any]) -> GraphqlQuestion:
    """The look-up of a registry entry. Raises ValueError with one sentence a fault, for people."""
    try:
        return GraphqlQuestion.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None


def read_list_config(config: Mapping[str, Any]) -> GraphqlList:
    """As `read_config`, for a list."""
    try:
        return GraphqlList.model_validate(dict(config))
    except ValidationError as error:
        raise ValueError(faults_of(error)) from None
