"""What became of one call of a run, in the words of the run's page."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from effects.core.vocabulary import ClaimState, SightingWord
from reconcile.judge import Meaning
from reconcile.models import RunItem
from reconcile.situation import Strength

if TYPE_CHECKING:
    from reconcile.investigate import Looked

FOLLOWED_CHARACTERS_MAX: Final = 500
ROUTE_CHARACTERS_MAX: Final = 200

_Result = RunItem.Result
_NOTHING_LEARNT: Final = {
    SightingWord.LOOKUP_FAILED: _Result.ERROR,
    SightingWord.MISCONFIGURED: _Result.ERROR,
    SightingWord.RATE_LIMITED: _Result.LIMITED,
}
_SETTLED: Final = {
    Meaning.HAPPENED: _Result.HAPPENED,
    Meaning.DID_NOT_HAPPEN: _Result.NOT_HAPPENED,
}
_ACTS: Final = {
    Meaning.HAPPENED: "settled as happened",
    Meaning.DID_NOT_HAPPEN: "settled as not executed",
    Meaning.DUPLICATED: "marked as conflicted",
}


def result_of(looked: Looked) -> RunItem.Result:
    """Under which count a call comes."""
    if looked.word is None:
        return _Result.SKIPPED
    if looked.word in _NOTHING_LEARNT:
        return _NOTHING_LEARNT[looked.word]
    if looked.settles and looked.judgement is not None:
        return _SETTLED.get(looked.judgement.meaning, _Result.LEFT)
    return _Result.LEFT


def followed(looked: Looked, *, dry: bool) -> str:
    """What was done about the call, or would have been, and why."""
    judgement = looked.judgement
    if looked.word is None or judgement is None:
        return f"Nobody was asked. {looked.why}"
    act = _ACTS.get(judgement.meaning, "") if looked.settles else ""
    if act:
        done = f"Would have been {act}." if dry else f"Was {act}."
    elif result_of(looked) in {_Result.ERROR, _Result.LIMITED}:
        done = "Nothing was learnt."
    elif looked.state is ClaimState.UNKNOWN:
        done = "Left to more evidence, or to a person."
    else:
        done = f"Stays {looked.state.replace('_', ' ')}."
    return f"{done} {looked.why}"


def record(run_id: int, looked: Looked, item: RunItem, now: datetime, *, dry: bool) -> bool:
    """Writes what became of the call, once. False: somebody else has written it."""
    judgement = looked.judgement
    row = {
        "result": result_of(looked),
        "word": looked.word or "",
        "meaning": judgement.meaning if judgement else "",
        "strength": judgement.strength if judgement else Strength.SAYS_NOTHING,
        "rule": judgement.rule if judgement and looked.settles else "",
        "route": looked.route[:ROUTE_CHARACTERS_MAX],
        "evidence": looked.evidence,
        "followed": followed(looked, dry=dry)[:FOLLOWED_CHARACTERS_MAX],
        "next_at": looked.next_at,
        "done_at": now,
    }
    waiting = RunItem.objects.filter(run_id=run_id, pk=item.pk, result=_Result.WAITING)
    return bool(waiting.update(**row))


def fail(run_id: int, item: RunItem, why: str, now: datetime) -> None:
    """The call's own turn went wrong; the others go on."""
    waiting = RunItem.objects.filter(run_id=run_id, pk=item.pk, result=_Result.WAITING)
    waiting.update(result=_Result.ERROR, followed=why[:FOLLOWED_CHARACTERS_MAX], done_at=now)
