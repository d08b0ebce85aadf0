"""Questions to a provider's JSON API over HTTP, for adapters that know the provider by name.

A secret is a token as it is sent, or "<client id>:<client secret>", which signs in for one by OAuth
2.0 client credentials where the provider has them. What a process once learned of a secret (its
token, whose account it is) is remembered for a while; a token that is refused is asked for anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlencode, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import (
    NOT_SET,
    CannotSay,
    Told,
    as_evidence,
    checked_place,
    completed,
    fault_of_status,
    in_vain,
    misconfigured,
    seen_in,
    unreadable,
)
from reconcile.adapters.base import Look, Place, Probe, checked_map, faults_of, literal
from reconcile.adapters.door import Answered, NoAnswer, NotAllowed, get, sign_in
from reconcile.adapters.matching import Match
from reconcile.adapters.object_rules import (
    ARGUMENT_PREFIX,
    OWN_REFERENCES,
    ObjectRules,
    Wanted,
    decoded,
    wanted,
)

REMEMBERED_SECONDS: Final = 600.0
"""How long a process remembers whose account a secret is, and a token that names no end."""
TOKEN_MARGIN_SECONDS: Final = 60.0
REFERENCES_MAX: Final = 10
"""Most generations of a key that one look-up asks about, each with its own question."""
REQUEST_ID_HEADERS: Final = ("x-request-id", "paypal-debug-id", "cko-request-id")
_TOKENS: Final[dict[tuple[str, str], tuple[str, float]]] = {}
_ACCOUNTS: Final[dict[tuple[str, ...], float]] = {}


def forget() -> None:
    """Sign in anew, and ask anew whose account each secret is."""
    _TOKENS.clear()
    _ACCOUNTS.clear()


# What a registry entry may say


def _checked_reference(reference: str) -> str:
    if reference in OWN_REFERENCES | {"claim"} or reference.startswith(ARGUMENT_PREFIX):
        return reference
    raise ValueError("says marker, key, claim or arguments.<member>")


Reference = Annotated[str, Field(max_length=200), AfterValidator(_checked_reference)]
"""What tells this call's objects from all others, and stands in every request of the tool."""


def references(probe: Probe, rules: ObjectRules) -> tuple[Wanted, ...]:
    """Every reference that has to be asked about, each with a question of its own.

    Raises ValueError where there is none, and where there are too many: asking about some of them
    alone would pass silence about the others for an absence.
    """
    found = wanted(probe, rules)
    if len(found) > REFERENCES_MAX:
        many = f"it would take {len(found)} questions; at most {REFERENCES_MAX} are asked"
        raise ValueError(many)
    return found


class ProviderLookup(BaseModel):
    """What a registry entry may say for a provider that is known by name.

    `map` says of a status what it means for this tool, before what we hold it to mean.
    `delay_class` is how late the provider shows what it committed: none of these providers
    publishes it, so an absence is no proof until somebody who was told enters "none".
    `marker_in_every_request`: no request of this tool leaves without our marker.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    map: Annotated[dict[str, str], AfterValidator(checked_map)] = {}
    delay_class: Literal["none", "eventual", "unknown"] = "unknown"
    marker_in_every_request: bool = False

    def rules(self, words: Mapping[str, SightingWord], **members: Any) -> ObjectRules:
        """How objects are read: `words` is what we hold their statuses to mean."""
        meant = {status: word.value for status, word in words.items()} | self.map
        return ObjectRules(map=meant, delay_class=self.delay_class, **members)


def read_as[T: BaseModel](model: type[T]) -> Callable[[Mapping[str, Any]], T]:
    """What reads a registry entry, and raises ValueError with a sentence for people."""

    def read(config: Mapping[str, Any]) -> T:
        try:
            return model.model_validate(dict(config))
        except ValidationError as error:
            raise ValueError(faults_of(error)) from None

    return read


# Asking


@dataclass(slots=True)
class Rest:
    """One look-up's conversation. `token_path` is where a secret with a colon signs in."""

    place: Place
    told: Told
    headers: Mapping[str, str] = field(default_factory=dict)
    token_path: str = ""
    refine: Callable[[Answered], tuple[SightingWord, str] | None] = lambda _answered: None

    def read(
        self, path: str, params: Mapping[str, str] | None = None, *, also: Sequence[int] = ()
    ) -> tuple[int, Any]:
        """Status and decoded JSON of an answer with 200, or with one of `also`.

        Raises `CannotSay` for every other answer, and what the door raises.
        """
        query = f"?{urlencode(params)}" if params else ""
        answered = self._get(f"{self.place.base_url.rstrip('/')}{path}{query}")
        if answered.status != 200 and answered.status not in also:
            raise CannotSay(*self._fault(answered), self._told_of(answered))
        try:
            return answered.status, decoded(answered.body)
        except ValueError as error:
            told = self._told_of(answered)
            raise CannotSay(SightingWord.UNMAPPED, unreadable(error), told) from None

    def _get(self, url: str) -> Answered:
        answered = self._once(url)
        if answered.status == 401 and _TOKENS.pop(self._secret, None) is not None:
            # A token that we were given earlier may have ended before its time.
            answered = self._once(url)
        return answered

    def _once(self, url: str) -> Answered:
        bearer = {"Accept": "application/json", "Authorization": f"Bearer {self._token()}"}
        self.told.reads += 1
        answered = get(url, way=self.place.way, headers={**bearer, **self.headers})
        self._note(answered)
        return answered

    @property
    def _secret(self) -> tuple[str, str]:
        return (self.place.base_url, self.place.secret)

    def _token(self) -> str:
        client_id, colon, client_secret = self.place.secret.partition(":")
        if not (colon and self.token_path):
            return self.place.secret
        known = _TOKENS.get(self._secret)
        if known is not None and time.monotonic() < known[1]:
            return known[0]
        url = f"{self.place.base_url.rstrip('/')}{self.token_path}"
        way = self.place.way
        answered = sign_in(url, way=way, client_id=client_id, client_secret=client_secret)
        self._note(answered)
        token, seconds = _signed_in(answered)
        _TOKENS[self._secret] = (token, time.monotonic() + seconds)
        return token

    def _told_of(self, answered: Answered) -> bytes:
        """A body that was not expected, as it may be kept: without a token that we signed in for.

        The connection's own secret is taken out of every look, whoever made it.
        """
        known = _TOKENS.get(self._secret)
        return answered.body.replace(known[0].encode(), b"[token]") if known else answered.body

    def _note(self, answered: Answered) -> None:
        self.told.note(answered)
        names = (answered.headers.get(name, "") for name in REQUEST_ID_HEADERS)
        self.told.request_id = next((name for name in names if name), "")
        if self.told.retry_after_seconds is None:
            self.told.retry_after_seconds = _until_reset(answered)

    def _fault(self, answered: Answered) -> tuple[SightingWord, str]:
        fault = self.refine(answered) or fault_of_status(answered.status)
        if fault is not None and fault[0] is not SightingWord.UNMAPPED:
            return fault
        # "Not found" is what a wrong account or mode is answered with too, so it is no absence.
        said = literal(" ".join(self._told_of(answered).decode("utf-8", "replace").split()))
        why = f"The provider refuses the question (HTTP {answered.status}): {said}"
        return SightingWord.MISCONFIGURED, why


def _signed_in(answered: Answered) -> tuple[str, float]:
    """A token and how many seconds it may be used. Raises `CannotSay`."""
    if answered.status in {400, 401, 403}:
        why = f"The provider does not let us sign in (HTTP {answered.status})."
        raise CannotSay(SightingWord.MISCONFIGURED, why)
    fault = fault_of_status(answered.status)
    if fault is not None:
        raise CannotSay(*fault)
    try:
        said = decoded(answered.body)
    except ValueError:
        said = None
    token = said.get("access_token") if isinstance(said, dict) else None
    if not isinstance(token, str) or not token:
        # What was answered may hold a secret, so it is neither quoted nor kept.
        raise CannotSay(SightingWord.UNMAPPED, "The answer to signing in names no token.")
    lasts = said.get("expires_in")
    given = lasts if isinstance(lasts, int) else REMEMBERED_SECONDS + TOKEN_MARGIN_SECONDS
    return token, given - TOKEN_MARGIN_SECONDS


def _until_reset(answered: Answered) -> int | None:
    """Seconds until the rate limit begins anew, where the answer dates it by its own clock."""
    try:
        reset = parsedate_to_datetime(answered.headers["ratelimit-reset"])
        now = parsedate_to_datetime(answered.headers["date"])
        return max(0, int((reset - now).total_seconds()))
    except (KeyError, TypeError, ValueError):
        return None


# The place


def host_mode(place: Place, hosts: Mapping[str, str]) -> str | None:
    """The mode that the provider's own host stands for; None for a host that it does not publish.

    `hosts` has the mode by host; a name in front of one ("shop.api.example") is the same host.
    """
    host = urlsplit(place.base_url).hostname or ""
    modes = (mode for name, mode in hosts.items() if host == name or host.endswith(f".{name}"))
    return next(modes, None)


def checked_mode(place: Place, mode: str | None, *, by: str) -> bool:
    """Whether the mode is known. Raises `CannotSay` for another mode than the workspace's."""
    if mode is not None and mode != place.mode:
        why = f"The {by} is for {mode} mode, the workspace is {place.mode}."
        raise CannotSay(SightingWord.MISCONFIGURED, why)
    return mode is not None


def placed(base: Look, found: object, *, mode_known: bool) -> Look:
    """The look, if the answer is of the registered account. Where none is registered, the secret
    says which one is meant, and the mode must be known. Raises `CannotSay` for another account."""
    if not base.account:
        return base if mode_known else replace(base, right_place=False)
    return checked_place(base, "account", found)


def account_is_known(place: Place) -> bool:
    """Whether it was confirmed lately that this secret belongs to the registered account."""
    return time.monotonic() < _ACCOUNTS.get(_name_of(place), 0.0)


def remember_account(place: Place) -> None:
    _ACCOUNTS[_name_of(place)] = time.monotonic() + REMEMBERED_SECONDS


def _name_of(place: Place) -> tuple[str, ...]:
    return (place.base_url, place.secret, place.account, place.mode)


# Answering


@dataclass(slots=True, kw_only=True)
class Finding:
    """What one look-up found: `items` are the matching objects, kept as evidence."""

    base: Look
    matches: list[Match] = field(default_factory=list)
    items: list[Any] = field(default_factory=list)
    complete: bool = True


def found_out(probe: Probe, base: Look, told: Told, ask: Callable[[Look], Finding]) -> Look:
    """The look that `ask` completes. Raises nothing that a provider could cause."""
    if not probe.place.secret:
        return misconfigured(probe, NOT_SET, base.route)
    try:
        finding = ask(base)
    except (CannotSay, NoAnswer, NotAllowed) as error:
        return in_vain(replace(base, right_place=False), error, told)
    except ValueError as error:
        look = replace(base, word=SightingWord.UNMAPPED, why=unreadable(error), right_place=False)
        return completed(look, told, raw=None)
    look = seen_in(finding.base, finding.matches, complete=finding.complete)
    return completed(look, told, raw=as_evidence(finding.items))


def member(item: object, *names: str) -> Any:
    """What is at these names inside an object, None where one of them is missing."""
    for name in names:
        if not isinstance(item, dict):
            return None
        item = item.get(name)
    return item


def listed(item: object, *names: str) -> list[dict[str, Any]]:
    """The objects at these names, none where nothing is there. Raises ValueError for else."""
    items = member(item, *names)
    if items is None:
        return []
    if not isinstance(items, list) or not all(isinstance(one, dict) for one in items):
        odd = f"{'.'.join(names)} is {literal(items)}, not a list of objects."
        raise ValueError(odd)
    return items


def counted(item: object, name: str) -> int:
    """The whole number at this name. Raises ValueError where there is none."""
    number = member(item, name)
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{name} is {literal(number)}, not a number.")  # noqa: TRY004 - it is the answer that is wrong, not the code
    return number
