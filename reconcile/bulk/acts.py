"""The acts that can be done to many calls at once, each by the way that one call goes.

An act reads the call anew, holds it against what its author saw, and asks the same rules as the
call's own page. It answers with one outcome and never raises for what a call is like.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from django.db import transaction

from effects.access import ROLE_WORDS, Ability, can, needs
from effects.core.vocabulary import ClaimState, Role
from ledger.queries import clock
from reconcile import decide as deciding
from reconcile import queries, snoozes, takes, tasks
from reconcile.action_names import ActionName
from reconcile.actions import Action, action, instant_words
from reconcile.assign import assignments
from reconcile.assign import tasks as telling
from reconcile.bulk.agreeing import Disagrees, evidence_for
from reconcile.bulk.models import Bulk, BulkItem
from reconcile.forms import Form, Screen, picture_holds
from reconcile.models import Run
from reconcile.queries import Call
from reconcile.runs import making
from reconcile.second_person import Team
from reconcile.situation import Situation
from reconcile.team import role_now, team_of

Outcome = BulkItem.Outcome
EVIDENCE_CITED_MAX: Final = 20
"""Of a call with more answers the newest are cited."""
ASSIGNED: Final = "Assigned."
WITH_THEM: Final = "It was with them already."


class BulkAction(StrEnum):
    """What can be done to many calls at once, in the order of the bar."""

    TAKE = "take"
    ASK = "ask"
    SNOOZE = "snooze"
    ASSIGN = "assign"
    RELEASE_SAME = "release_same"
    HAPPENED = "happened"
    NOT_HAPPENED = "not_happened"

    @property
    def label(self) -> str:
        return _OWN_LABELS.get(self) or ActionName(self).label

    @property
    def at_once(self) -> bool:
        """Whether it begins when it is pressed; all else is looked at first."""
        return self in {BulkAction.TAKE, BulkAction.ASK}

    @property
    def decides(self) -> bool:
        """Whether a verdict is recorded for each call."""
        return self in _DECIDE

    @property
    def resolves(self) -> bool:
        """Whether it needs one tool and strong, agreeing evidence."""
        return self in {BulkAction.HAPPENED, BulkAction.NOT_HAPPENED}

    def allowed(self, role: Role) -> bool:
        """Whether the role may do it to many calls; each call asks for its own ability as well."""
        return can(role, Ability(self)) and (not self.decides or can(role, Ability.BULK_DECIDE))

    def needs(self) -> str:
        """Who may do it, as a sentence."""
        return needs(Ability.BULK_DECIDE if self.decides else Ability(self))


_OWN_LABELS: Final = {BulkAction.TAKE: "Take", BulkAction.ASSIGN: "Assign"}
_DECIDE: Final = frozenset({BulkAction.RELEASE_SAME, BulkAction.HAPPENED, BulkAction.NOT_HAPPENED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of one call."""

    outcome: Outcome
    said: str
    decision_id: int | None = None


def perform(bulk: Bulk, item: BulkItem) -> Result:
    """Does the bulk's act to one of its calls. Raises `ClaimNotFound`."""
    role = role_now(bulk.workspace_id, bulk.made_by_id)
    act = BulkAction(bulk.action)
    if role is None:
        return _refused("Its author is no active member of this workspace any more.")
    if not act.allowed(role):
        return _refused(f"{act.needs()} Its author's role is {ROLE_WORDS[role]} now.")
    call = queries.call(bulk.workspace_id, item.claim_id)
    if act.decides:
        return _decide(bulk, item, call, role)
    if not picture_holds(call, _screen(bulk, item)):
        return _changed(call, _screen(bulk, item))
    return _BESIDE[act](bulk, call, role)


# What decides nothing


def _ask(_bulk: Bulk, call: Call, role: Role) -> Result:
    """Whether it can be asked about; the question itself is one for all such calls together."""
    act = action(ActionName.ASK, call.situation, role=role, team=Team())
    if not act.offered:
        return _refused(act.reason)
    return Result(outcome=Outcome.WAITING, said="To be asked about.")


def ask_together(bulk: Bulk, items: Sequence[BulkItem]) -> None:
    """One run about all the calls that can be asked about; its page shows each answer."""
    if not items:
        return
    claim_ids = tuple(item.claim_id for item in items)
    # The run and the outcomes are one commit: work that is done again asks about the rest only.
    with transaction.atomic():
        run = making.start(
            making.NewRun(
                workspace_id=bulk.workspace_id,
                scope=making.Scope(claim_ids=claim_ids),
                trigger=Run.Trigger.BULK,
                user_id=bulk.made_by_id,
                words=f"bulk {bulk.pk}, {len(claim_ids)} calls",
            )
        )
        BulkItem.objects.filter(pk__in=[item.pk for item in items]).update(
            outcome=Outcome.DONE, said=f"Asked about in run {run.pk}.", at=clock()
        )
        bulk.options = {**bulk.options, "run": run.pk}
        bulk.save(update_fields=["options"])
    tasks.start_now(run.pk)


def _snooze(bulk: Bulk, call: Call, role: Role) -> Result:
    done = snoozes.snooze(
        bulk.workspace_id, call.claim.pk, user_id=bulk.made_by_id, role=role, reason=bulk.reason
    )
    if isinstance(done, Action):
        return _refused(done.reason)
    until = instant_words(done, call.now)
    return Result(outcome=Outcome.DONE, said=f"Snoozed until {until}.")


def _assign(bulk: Bulk, call: Call, _role: Role) -> Result:
    try:
        given = assignments.assign(
            bulk.workspace_id,
            call.claim.pk,
            to_id=int(bulk.options["to"]),
            by_id=bulk.made_by_id,
            note=bulk.reason,
        )
    except assignments.NobodyToAssign as nobody:
        return _refused(str(nobody))
    return Result(outcome=Outcome.DONE, said=WITH_THEM if given.again else ASSIGNED)


def tell_who_was_given(bulk: Bulk) -> None:
    """One mail for all the calls that a bulk gave somebody, as for a single one."""
    if bulk.action != BulkAction.ASSIGN:
        return
    given = bulk.items.filter(outcome=Outcome.DONE, said=ASSIGNED).order_by("number")
    ids = list(given.values_list("claim_id", flat=True))
    if ids:
        telling.tell(
            bulk.workspace_id,
            ids[0],
            user_id=int(bulk.options["to"]),
            by_id=bulk.made_by_id,
            why="assigned",
            many=len(ids),
        )


def _take(bulk: Bulk, call: Call, _role: Role) -> Result:
    try:
        taken = takes.take(bulk.workspace_id, call.claim.pk, user_id=bulk.made_by_id)
    except takes.TakenBy as somebody:
        user = somebody.take.taken_by
        name = user.get_full_name() or user.get_username()
        return _refused(f"{name} has it. Taking it over needs a reason, on its own page.")
    return Result(outcome=Outcome.DONE, said=f"Taken until {instant_words(taken.until, call.now)}.")


_BESIDE: Final[dict[BulkAction, Callable[[Bulk, Call, Role], Result]]] = {
    BulkAction.TAKE: _take,
    BulkAction.ASK: _ask,
    BulkAction.SNOOZE: _snooze,
    BulkAction.ASSIGN: _assign,
}


# What decides


def _decide(bulk: Bulk, item: BulkItem, call: Call, role: Role) -> Result:
    name = ActionName(bulk.action)
    if item.screen_hash is None:
        unfit = _unfit(bulk, item, call, role)
        if unfit is not None:
            return unfit
        _keep_picture(item, name, call.situation)
    result = deciding.decide(bulk.workspace_id, _form(bulk, item, call, name), role=role)
    match result:
        case deciding.Made():
            return _made(bulk, item, result.decision_id)
        case deciding.Overtaken():
            return _changed(result.call, result.screen)
        case deciding.Unavailable():
            return _refused(result.action.reason)
        case deciding.Incomplete():
            return _refused(" ".join(result.errors.values()))
        case deciding.Asked():
            raise AssertionError("a bulk asks no second person")


def _unfit(bulk: Bulk, item: BulkItem, call: Call, role: Role) -> Result | None:
    """Why this call is left out, asked before anything of it is written; None: it is fit."""
    if not picture_holds(call, _screen(bulk, item)):
        return _changed(call, _screen(bulk, item))
    name = ActionName(bulk.action)
    team = team_of(bulk.workspace_id, bulk.made_by_id)
    act = action(name, call.situation, role=role, team=team)
    if not act.offered:
        return _refused(act.reason)
    # What a second person or a typed amount guards is asked for on the call's own page.
    if act.needs_second:
        return _refused(f"{act.needs_second} Decide it on its own page.")
    if act.typed:
        return _refused("It has to be confirmed by its amount, on its own page.")
    if BulkAction(bulk.action).resolves:
        try:
            evidence_for(name, call.situation)
        except Disagrees as disagrees:
            return _refused(str(disagrees))
    return None


def _keep_picture(item: BulkItem, name: ActionName, situation: Situation) -> None:
    """Writes down what the decision rests on before it is made, once: a second delivery of the
    work then finds the decision of the first by the same digest."""
    rests = situation.standing
    if BulkAction(name).resolves:
        rests = evidence_for(name, situation)
    item.screen_hash = queries.screen_hash(situation)
    item.evidence = [one.number for one in rests[:EVIDENCE_CITED_MAX]]
    item.save(update_fields=["screen_hash", "evidence"])


def _form(bulk: Bulk, item: BulkItem, call: Call, name: ActionName) -> Form:
    objects = {one.objects for one in call.situation.found}
    named = name is ActionName.HAPPENED and len(objects) == 1
    return Form(
        action=name,
        screen=_screen(bulk, item),
        evidence=tuple(item.evidence),
        # A decision rests on something: where nobody answered, on what its author says.
        note="" if item.evidence or BulkAction(bulk.action).resolves else bulk.reason,
        reason=bulk.reason,
        provider_object=next(iter(objects))[0] if named else "",
        session=bytes(bulk.session),
    )


def _made(bulk: Bulk, item: BulkItem, decision_id: int) -> Result:
    call = queries.call(bulk.workspace_id, item.claim_id)
    until = call.claim.pending_at
    held = until is not None and call.held is not None and call.held.pk == decision_id
    when = f"held until {until:%H:%M:%S} UTC" if held else "in force"
    return Result(outcome=Outcome.DONE, said=f"dec_{decision_id}, {when}.", decision_id=decision_id)


# Shared


def _screen(bulk: Bulk, item: BulkItem) -> Screen:
    return Screen(
        claim_id=item.claim_id,
        version=item.seen_version,
        state=ClaimState(item.seen_state),
        digest=bytes(item.screen_hash or b""),
        user_id=bulk.made_by_id,
        form=hashlib.sha256(bytes(bulk.form) + item.claim_id.bytes).digest(),
    )


def _changed(call: Call, screen: Screen) -> Result:
    why = deciding.overtaken_words(call, screen)
    return Result(outcome=Outcome.CHANGED, said=f"Changed since it was selected: {why}")


def _refused(why: str) -> Result:
    return Result(outcome=Outcome.REFUSED, said=why)
