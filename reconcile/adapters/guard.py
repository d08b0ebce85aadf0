"""What holds for every adapter's looks, whoever wrote it: no secret in them, and no endless bytes.

A provider may answer a refusal with the very credential that it refused. What is kept as evidence
is read by many people and for years, so credentials are taken out of it here, once for all
adapters.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import unquote, urlsplit

from reconcile.adapters.base import RAW_BYTES_MAX, Look, Lookup, Place, Probe, Scan, kept

SECRET_CHARACTERS_MIN: Final = 6
"""What is shorter could stand in any text by chance."""
TAKEN_OUT: Final = "[secret]"
_CUT_ROOM: Final = 100
"""How much longer than the limit a raw answer may be that was cut already, with its last line."""


def guarded(lookup: Lookup) -> Lookup:
    """The look-up, with what holds for all of them."""
    ask, ask_many = lookup.look, lookup.look_many

    def look(probe: Probe) -> Look:
        return _clean(ask(probe), probe.place)

    def look_many(probes: Sequence[Probe]) -> Scan:
        assert ask_many is not None, "this route cannot be shared"
        scan = ask_many(probes)
        place = probes[0].place
        return replace(
            scan, looks={claim_id: _clean(one, place) for claim_id, one in scan.looks.items()}
        )

    return replace(lookup, look=look, look_many=look_many if ask_many else None)


def _clean(look: Look, place: Place) -> Look:
    raw = look.raw
    if raw is not None and len(raw) > RAW_BYTES_MAX + _CUT_ROOM:
        raw = kept(raw)
    for secret in _credentials_in(place.secret):
        if raw is not None:
            raw = raw.replace(secret.encode(), TAKEN_OUT.encode())
        look = replace(
            look,
            why=look.why.replace(secret, TAKEN_OUT),
            query=look.query.replace(secret, TAKEN_OUT),
        )
    return replace(look, raw=raw)


def _credentials_in(secret: str) -> list[str]:
    """Everything in a connection's secret that opens something, in the spellings that travel.

    Longest first, so that no part of one is left standing.
    """
    found = {secret}
    if "://" in secret:
        # What is no address after all is taken out whole.
        with suppress(ValueError):
            found.add(urlsplit(secret).password or "")
    elif ":" in secret:
        # A client's id and its secret; the id may be shown.
        found.add(secret.partition(":")[2])
    found |= {unquote(one) for one in found}
    found |= {base64.b64encode(one.encode()).decode() for one in found}
    return sorted((one for one in found if len(one) >= SECRET_CHARACTERS_MIN), key=len)[::-1]
