"""Asks Salesforce for the record that bears our reference as its external id. Reads only.

The record is read at the address under which it was upserted
(https://developer.salesforce.com/docs/platform/api-rest/guide/resources-sobject-upsert-get.html):
200 is one record, 300 several. 404 means a record, an object or a field that is not there, and one
that this user may not see ("verify that there are no sharing issues",
https://developer.salesforce.com/docs/atlas.en-us.api_rest.meta/api_rest/errorcodes.htm). So after
300 and 404 ``queryAll`` is asked, which refuses names that do not exist and shows what was deleted
(https://developer.salesforce.com/docs/platform/api-rest/guide/dome-queryall.html). Every upsert
holds the external id in its address, so no request can have left without it.

Nothing that is published says that a committed record is read at once everywhere, so an absence is
no proof unless the registry entry says so, and that the user sees every record of the object.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, Final
from urllib.parse import quote

from pydantic import Field

from effects.core.vocabulary import SightingWord
from reconcile.adapters.answering import CannotSay, Told, begun, misconfigured, unusable
from reconcile.adapters.base import Delay, Look, Lookup, MatchedBy, Probe, Route, literal
from reconcile.adapters.door import Answered
from reconcile.adapters.object_rules import (
    ObjectRules,
    Wanted,
    match_of,
)
from reconcile.adapters.rest import (
    Finding,
    ProviderLookup,
    Reference,
    Rest,
    account_is_known,
    found_out,
    listed,
    member,
    placed,
    read_as,
    references,
    remember_account,
)

ROUTE: Final = "Record by external id"
ID_CHARACTERS: Final = 15
"""An id has fifteen characters; three more, where they are there, only check the case of these."""
TOKEN_PATH: Final = "/services/oauth2/token"  # noqa: S105 - a path, which is no secret
THERE: Final = "there"
DELETED: Final = "deleted"
WORDS: Final = {THERE: SightingWord.FOUND, DELETED: SightingWord.FOUND_DIFFERENT}
"""Our words for a record that has no status of its own, and for one in the recycle bin."""

ApiName = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,79}$")]


class SalesforceLookup(ProviderLookup):
    """`object` and `external_id` are API names ("Refund__c", "Counterfoil__c"). `reference` is what
    the external id holds: the marker, the key, the claim's id, or a member of the arguments.

    `status`, `amount` and `currency` name fields of the record, `compare` members of the arguments
    and the fields that show the same. `sees_all_records`: the user of this connection may read
    every record of the object.
    """

    object: ApiName
    external_id: ApiName
    reference: Reference = "marker"
    status: ApiName | None = None
    amount: ApiName | None = None
    currency: ApiName | None = None
    compare: Annotated[dict[str, ApiName], Field(max_length=10)] = {}
    sees_all_records: bool = False
    api_version: Annotated[str, Field(pattern=r"^v[1-9][0-9]{1,2}\.0$")] = "v68.0"

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that a query must ask for, each once."""
        named = ("Id", "IsDeleted", self.external_id, self.status, self.amount, self.currency)
        return tuple(dict.fromkeys(name for name in (*named, *self.compare.values()) if name))


read_config: Final = read_as(SalesforceLookup)


def look_for_record(probe: Probe) -> Look:
    """`lookup_kind` "salesforce.records". Never raises for anything that a provider does."""
    try:
        config = read_config(probe.config)
        rules = _rules(config)
        asked = references(probe, rules)
    except ValueError as error:
        return misconfigured(probe, unusable(error), ROUTE)
    told = Told()
    asking = _Asking(probe, config, rules, told)
    base = begun(probe, ROUTE, rules=rules)
    if not config.sees_all_records:
        base = replace(base, delay_class=Delay.UNKNOWN)
    return found_out(probe, base, told, lambda look: asking.find(asked, look))


LOOKUPS: Final = (
    Lookup(
        kind="salesforce.records",
        label="Salesforce: the record with our external id",
        connection_kind="salesforce",
        look=look_for_record,
        read_config=read_config,
        contract="salesforce",
        routes=(
            Route(
                name=ROUTE, delay_class=None, proves_absence=True, matched_by=MatchedBy.REFERENCE
            ),
        ),
    ),
)


class _Asking:
    """All questions of one look-up."""

    def __init__(
        self, probe: Probe, config: SalesforceLookup, rules: ObjectRules, told: Told
    ) -> None:
        self.probe = probe
        self.config = config
        self.rules = rules
        self.rest = Rest(probe.place, told, token_path=TOKEN_PATH, refine=_limit_of)
        self.api = f"/services/data/{config.api_version}"

    def find(self, wanted: tuple[Wanted, ...], base: Look) -> Finding:
        finding = Finding(base=self._placed(base))
        asked = []
        for one in wanted:
            path = f"{self.api}/sobjects/{self.config.object}/{self.config.external_id}"
            path = f"{path}/{quote(one.reference, safe='')}"
            asked.append(f"GET {path}")
            for record in self._records(path, one.reference, finding):
                self._take(record, one, finding)
        finding.base = replace(finding.base, query="; ".join(asked))
        return finding

    def _placed(self, base: Look) -> Look:
        """The look, if the secret is of the registered organisation and of the workspace's mode.

        https://developer.salesforce.com/docs/atlas.en-us.object_reference.meta/object_reference
        names both fields of Organization; not every user may read them.
        """
        place = self.probe.place
        if account_is_known(place):
            return base
        query = {"q": "SELECT Id, IsSandbox FROM Organization LIMIT 1"}
        status, answer = self.rest.read(f"{self.api}/query", query, also=(400, 403, 404))
        rows = listed(answer, "records") if status == 200 else []
        if not rows:
            return replace(base, right_place=False)
        sandbox = member(rows[0], "IsSandbox")
        if isinstance(sandbox, bool) and sandbox is not (place.mode == "test"):
            kind = "a sandbox" if sandbox else "a production organisation"
            why = f"The secret belongs to {kind}, the workspace is {place.mode}."
            raise CannotSay(SightingWord.MISCONFIGURED, why)
        found = member(rows[0], "Id")
        same = isinstance(found, str) and found[:ID_CHARACTERS] == place.account[:ID_CHARACTERS]
        placed_now = placed(
            base, place.account if same else found, mode_known=isinstance(sandbox, bool)
        )
        if placed_now.right_place:
            remember_account(place)
        return placed_now

    def _records(self, path: str, reference: str, finding: Finding) -> list[dict[str, Any]]:
        """Every record that bears this external id. Raises `CannotSay`."""
        status, answer = self.rest.read(path, also=(300, 404))
        if status == 200:
            return [answer]
        fields, name = ", ".join(self.config.fields), self.config.external_id
        text = reference.replace("\\", "\\\\").replace("'", "\\'")
        # The names are checked when the entry is read, and the text is quoted.
        query = f"SELECT {fields} FROM {self.config.object} WHERE {name} = '{text}'"  # noqa: S608 - as said above
        _, answer = self.rest.read(f"{self.api}/queryAll", {"q": query})
        finding.complete &= member(answer, "done") is True
        return listed(answer, "records")

    def _take(self, record: object, one: Wanted, finding: Finding) -> None:
        if str(member(record, self.config.external_id)).lower() != one.reference.lower():
            # External ids are compared without regard to case unless the field says otherwise.
            raise CannotSay(SightingWord.UNMAPPED, "Another call's record is in the answer.")
        match = match_of(self.probe, self.rules, record, one.life)
        if member(record, "IsDeleted") is True:
            match = replace(match, status=DELETED, word=SightingWord.FOUND_DIFFERENT)
        finding.matches.append(match)
        finding.items.append(record)


def _rules(config: SalesforceLookup) -> ObjectRules:
    return config.rules(
        WORDS,
        reference=config.reference,
        id="Id",
        status=config.status or f"'{THERE}'",
        amount=config.amount or "",
        amount_is_minor=False,
        currency=config.currency or "",
        compare=config.compare,
    )


def _limit_of(answered: Answered) -> tuple[SightingWord, str] | None:
    """The organisation's limit on requests, which is answered like a lack of permission."""
    if answered.status != 403:
        return None
    try:
        errors = json.loads(answered.body)
    except ValueError:
        return None
    codes = [member(one, "errorCode") for one in errors] if isinstance(errors, list) else []
    if "REQUEST_LIMIT_EXCEEDED" not in codes:
        return None
    return SightingWord.RATE_LIMITED, f"The organisation's requests are used up: {literal(codes)}"
