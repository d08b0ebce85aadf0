"""What a provider publishes about keys and about reading back, as typed and frozen data.

One file in `data/` is one contract. Every part of it names its source; a part whose source could
not be verified is kept, shown as such, and used as if it were not there. "Not published" is a
value of its own: it says that somebody looked.
"""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = [
    "PERMANENT_SECONDS",
    "Answer",
    "Basis",
    "Conflict",
    "Key",
    "KeyPlace",
    "Limit",
    "Lookup",
    "MatchedBy",
    "Part",
    "Published",
    "Refusals",
    "Replay",
    "ReplayKind",
    "RouteDelay",
    "Scope",
    "ScopeWord",
    "Source",
    "Statuses",
    "Stored",
    "StoredKind",
    "Terms",
    "Version",
    "Window",
    "Working",
]

PERMANENT_SECONDS: Final = 10 * 365 * 24 * 60 * 60
"""A key that is never forgotten, as seconds: longer than any undecided call is kept open."""


class Data(BaseModel):
    """Read once, never changed; a member that nobody knows is a mistake in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


Words = Annotated[str, Field(min_length=1, max_length=600)]
Name = Annotated[str, Field(pattern=r"^[a-z0-9]+(?:[._][a-z0-9]+)*$", max_length=30)]
Status = Annotated[int, Field(ge=100, le=599)]


class Basis(StrEnum):
    """How a figure is known."""

    DOCUMENT = "document"  # the provider's own page
    COPY = "copy"  # a dated copy of the provider's page
    CODE = "code"  # the provider's own package
    THIRD_PARTY = "third_party"  # somebody else's tests or words
    OURS = "ours"  # our own rule
    NOT_FOUND = "not_found"  # looked for, and nobody says it
    NOT_VERIFIED = "not_verified"  # heard of, and used as if it were not published

    @property
    def words(self) -> str:
        return _BASIS_WORDS[self]


_BASIS_WORDS: Final = {
    Basis.DOCUMENT: "provider's page",
    Basis.COPY: "copy of the provider's page",
    Basis.CODE: "provider's package",
    Basis.THIRD_PARTY: "third party",
    Basis.OURS: "our own rule",
    Basis.NOT_FOUND: "looked for, not found",
    Basis.NOT_VERIFIED: "not verified, used as unknown",
}


class Source(Data):
    """Where a figure stands: a page, a package or a thread, and when it was looked at."""

    id: str
    title: Words
    url: Annotated[str, Field(pattern=r"^https://")] = ""
    basis: Basis
    checked: date

    @property
    def verified(self) -> bool:
        """Whether what it says may be relied on."""
        return self.basis is not Basis.NOT_VERIFIED


class Part(Data):
    """One statement of a contract with its source. `note` is a sentence for people."""

    source: Source
    note: str = ""

    @property
    def verified(self) -> bool:
        return self.source.verified


class KeyPlace(StrEnum):
    """Where in a request the key stands."""

    HEADER = "header"
    BODY = "body"
    URL = "url"
    DIRECTIVE = "directive"  # part of a GraphQL operation
    NONE = "none"


class Key(Part):
    """Where the key goes. `name` is the header or the member; empty where there is none."""

    where: KeyPlace
    name: str = ""
    characters_max: Annotated[int, Field(ge=1)] | None = None
    required: bool = False

    @model_validator(mode="after")
    def _named(self) -> Self:
        if (self.where is KeyPlace.NONE) == bool(self.name):
            raise ValueError("a key has a name exactly where it has a place")
        return self


class Published(StrEnum):
    """Whether a provider gives the figure."""

    PUBLISHED = "published"
    NOT_PUBLISHED = "not_published"
    PERMANENT = "permanent"
    NO_KEY = "no_key"


class Window(Part):
    """How long a key is honoured, counted from its first receipt. `minimum`: at least so long."""

    state: Published
    seconds: Annotated[int, Field(ge=1)] | None = None
    minimum: bool = False

    @model_validator(mode="after")
    def _figure(self) -> Self:
        if (self.state is Published.PUBLISHED) != (self.seconds is not None):
            raise ValueError("seconds are given exactly where the window is published")
        return self


class ScopeWord(StrEnum):
    """What a key is one and the same within."""

    ACCOUNT = "account"
    COMPANY = "company"
    REGION = "region"
    MODE = "mode"
    ENDPOINT = "endpoint"
    VERB = "verb"
    API = "api"
    OBJECT = "object"
    SERVICE = "service"
    NOT_PUBLISHED = "not_published"


class Scope(Part):
    """Within what a key is one and the same, the widest first."""

    within: tuple[ScopeWord, ...] = Field(min_length=1)


class StoredKind(StrEnum):
    """What a provider keeps under a key."""

    ALL = "all"  # every answer of an execution that began, server errors too
    SUCCESS = "success_only"
    NOT_REFUSALS = "not_4xx"
    STATE = "current_state"
    INTENT = "intent"
    OBJECT = "object"
    NOTHING = "nothing"
    NOT_PUBLISHED = "not_published"


class Stored(Part):
    kind: StoredKind


class Answer(Part):
    """An answer that the provider gives in one situation. Codes are as the provider writes them;
    an empty tuple of statuses says that nothing is published."""

    statuses: tuple[Status, ...] = ()
    codes: tuple[str, ...] = ()


class Conflict(Part):
    """What a 409 of this provider means for the write that it answers."""

    means: Literal["in_flight", "exists", "mismatch", "either", "not_published"]


class ReplayKind(StrEnum):
    """What the same request with the same key brings while the key is honoured."""

    SNAPSHOT = "snapshot"  # the first answer, letter by letter
    STATE = "current_state"  # the object as it is now
    RUNS_FAILED = "re_executes_failed"
    EXISTING_ID = "returns_existing_id"
    LINK = "rejects_with_link"
    OVERWRITES = "overwrites"  # done again, to the same end
    NONE = "second_effect"
    NOT_PUBLISHED = "not_published"


class Replay(Part):
    """`marker` is the header and value by which an answer says that it is no new execution."""

    kind: ReplayKind
    marker: tuple[str, str] | None = None


class RouteDelay(StrEnum):
    """How late a route may show what has happened; the words of the adapters."""

    NONE = "none"
    EVENTUAL = "eventual"
    UNKNOWN = "unknown"


class MatchedBy(StrEnum):
    """By what an effect is recognised on a route."""

    KEY = "key"
    MARKER = "marker"
    REFERENCE = "reference"
    ID = "id"
    WINDOW = "window"


class Lookup(Part):
    """One read-only route. `absence_proves`: a whole reading that shows nothing can be proof."""

    route: Words
    finds_by: tuple[MatchedBy, ...] = Field(min_length=1)
    delay: RouteDelay
    absence_proves: bool = False
    kept_days: Annotated[int, Field(ge=1)] | None = None

    @model_validator(mode="after")
    def _absence(self) -> Self:
        if self.absence_proves and self.delay is not RouteDelay.NONE:
            raise ValueError("a route that may show an effect late cannot prove that there is none")
        if self.absence_proves and not self.verified:
            raise ValueError("what is not verified cannot prove that there is none")
        return self


class Limit(Part):
    """How often a provider may be asked: `requests` within `seconds`."""

    what: Words
    requests: Annotated[int, Field(ge=1)]
    seconds: Annotated[int, Field(ge=1)]


class Statuses(Part):
    """The words of one kind of object. `final` are those that nothing follows."""

    noun: Words
    words: tuple[str, ...] = Field(min_length=1)
    final: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _among(self) -> Self:
        strange = set(self.final) - set(self.words)
        if strange:
            raise ValueError(f"final but not among the words: {', '.join(sorted(strange))}")
        return self


class OpenCode(Data):
    """A code under which nothing is proven."""

    code: Words
    why: Words


class OpenStatus(Data):
    """A status that proves nothing at this provider although the base table lists it."""

    status: Status
    why: Words


class Refusals(Part):
    """How the table of refusals differs from the one it is made of: by proving less."""

    base: Literal["generic", "stripe.v1"]
    hosts: tuple[str, ...] = ()
    needs_code: tuple[Status, ...] = ()
    open_statuses: tuple[OpenStatus, ...] = ()
    open_codes: tuple[OpenCode, ...] = ()


class Working(Part):
    """For how long a provider may still work on a request whose answer was lost."""

    seconds: Annotated[int, Field(ge=1)] | None = None


class Version(Part):
    """How the version of the API is chosen, and what that does to a repeat."""

    how: Words


class Terms(Data):
    """One contract. `adapters` are the kinds of connection that can ask this provider."""

    name: Name
    title: Words
    provider: Words
    note: str = ""
    adapters: tuple[str, ...] = ()
    key: Key
    window: Window
    scope: Scope
    stored: Stored
    mismatch: Answer
    in_flight: Answer
    conflict: Conflict
    replay: Replay
    lookups: tuple[Lookup, ...] = ()
    limits: tuple[Limit, ...] = ()
    statuses: tuple[Statuses, ...] = ()
    refusals: Refusals
    working: Working
    version: Version | None = None

    @model_validator(mode="after")
    def _key_and_window(self) -> Self:
        if (self.key.where is KeyPlace.NONE) != (self.window.state is Published.NO_KEY):
            raise ValueError("a contract without a key has the window no_key, and only such a one")
        return self

    @property
    def has_key(self) -> bool:
        return self.key.where is not KeyPlace.NONE

    @property
    def window_seconds(self) -> int | None:
        """The window that may be relied on; None: none is published, or nobody could verify it."""
        if not self.window.verified:
            return None
        if self.window.state is Published.PERMANENT:
            return PERMANENT_SECONDS
        return self.window.seconds

    @property
    def working_seconds(self) -> int | None:
        """The published longest work of the provider, or None."""
        return self.working.seconds if self.working.verified else None
