"""What holds for every adapter's looks, whoever wrote it: there is one, without secrets, bounded.

A provider may answer a refusal with the very credential that it refused. What is kept as evidence
is read by many people and for years, so credentials are taken out of it here, once for all
adapters. And whatever an adapter did not expect of an answer is a look-up that failed: it is logged
as the fault of ours that it is, and no claim goes without its next turn for it.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from urllib.parse import unquote, urlsplit

from effects.core.vocabulary import SightingWord
from reconcile.adapters.base import RAW_BYTES_MAX, Look, Lookup, Place, Probe, Scan, kept

_log = logging.getLogger(__name__)

SECRET_CHARACTERS_MIN: Final = 6
"""What is shorter could stand in any text by chance."""
TAKEN_OUT: Final = "[secret]"
UNEXPECTED: Final = "The answer was none that this look-up can read, and it stopped. See its log."
_CUT_ROOM: Final = 100
"""How much longer than the limit a raw answer may be that was cut already, with its last line."""


def guarded(lookup: Lookup) -> Lookup:
    """The look-up, with what holds for all of them."""
    ask, ask_many = lookup.look, lookup.look_many

    def look(probe: Probe) -> Look:
        try:
            return _clean(ask(probe), probe.place)
        except AssertionError:
            raise  # The caller is wrong, not the answer.
        except Exception:  # noqa: BLE001 - that is what this is for; it is logged with its trace
            return _unexpected(probe, lookup)

    def look_many(probes: Sequence[Probe]) -> Scan:
        assert ask_many is not None, "this route cannot be shared"
        try:
            scan = ask_many(probes)
        except AssertionError:
            raise
        except Exception:  # noqa: BLE001 - as above
            return Scan(looks={probe.claim_id: _unexpected(probe, lookup) for probe in probes})
        place = probes[0].place
        return replace(
            scan, looks={claim_id: _clean(one, place) for claim_id, one in scan.looks.items()}
        )

    return replace(lookup, look=look, look_many=look_many if ask_many else None)


def _unexpected(probe: Probe, lookup: Lookup) -> Look:
    _log.exception("The look-up %s met an answer that it did not expect.", lookup.kind)
    return Look(
        word=SightingWord.LOOKUP_FAILED,
        why=UNEXPECTED,
        route="Adapter",
        asked_at=probe.asked_at,
        account=probe.place.account,
        mode=probe.place.mode,
        right_place=False,
    )


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
