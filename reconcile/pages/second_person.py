"""The page of the rules by which a decision needs two people; admins change them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from django.contrib import messages
from django.http import HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods, require_POST

from effects.access import (
    ROLE_WORDS,
    Ability,
    DeskRequest,
    can,
    membership_required,
    needs,
    require,
)
from effects.core.vocabulary import EffectClass, Role
from effects.templatetags.desk import CLASS_PARTS
from ledger import queries
from reconcile import team
from reconcile.action_names import ActionName
from reconcile.asking import PROPOSAL_HOURS_MAX
from reconcile.models import SecondPersonRule
from reconcile.pages.call import clean_text
from reconcile.second_person import APPROVER_ROLES, RULED, Rule
from reconcile.team import KeptRule

UNPROCESSABLE: Final = 422
AMOUNT_CHARACTERS_MAX: Final = 20
CHANGES_SHOWN_MAX: Final = 30
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_CLASSES: Final = (EffectClass.KEYED_WRITE, EffectClass.UNKEYED_WRITE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A rule in words; `code` names it in a form."""

    words: str
    approver: str
    code: str
    kept: KeptRule


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def second_person(request: DeskRequest) -> HttpResponse:
    """The rules in force and the form for another one."""
    if request.method != "POST":
        return _page(request, typed={}, errors={})
    require(request, Ability.EDIT_RULES)
    rule, reason, errors = read_rule(request.POST)
    if rule is None:
        return _page(request, typed=request.POST.dict(), errors=errors, status=UNPROCESSABLE)
    now = queries.clock()
    try:
        team.add_rule(request.workspace, rule, user_id=request.user.pk, reason=reason, now=now)
    except team.TooManyRulesError as too_many:
        errors = {"reason": str(too_many)}
        return _page(request, typed=request.POST.dict(), errors=errors, status=UNPROCESSABLE)
    messages.success(request, f"In force from now on: {rule_words(rule)}.")
    return HttpResponseRedirect(reverse("second-person"))


@require_POST
@membership_required
def retire(request: DeskRequest) -> HttpResponse:
    """Takes one rule out of force, with a reason."""
    require(request, Ability.EDIT_RULES)
    reason = clean_text(request.POST.get("reason"))[: team.REASON_CHARACTERS_MAX]
    shown = _shown(request.workspace.pk)
    chosen = next((one for one in shown if one.code == request.POST.get("rule")), None)
    if not reason:
        messages.error(request, "Say why: a rule is not taken away without a reason.")
    elif chosen is None:
        messages.info(request, "This rule was out of force already.")
    else:
        team.retire_rule(
            request.workspace,
            chosen.kept.rule,
            user_id=request.user.pk,
            reason=reason,
            now=queries.clock(),
        )
        messages.success(request, f"Out of force: {chosen.words}.")
    return HttpResponseRedirect(reverse("second-person"))


def read_rule(sent: QueryDict) -> tuple[Rule | None, str, dict[str, str]]:
    """The rule in a form with its reason, or one sentence for each field to be put right."""
    errors: dict[str, str] = {}
    effect_class, name = sent.get("effect_class", ""), sent.get("action", "")
    approver, reason = sent.get("approver", ""), clean_text(sent.get("reason"))
    currency = clean_text(sent.get("currency")).upper()
    if effect_class not in {"", *map(str, _CLASSES)}:
        errors["effect_class"] = "Choose a class from the list."
    if name not in {"", *map(str, RULED)}:
        errors["action"] = "Choose a decision from the list."
    if currency and not _CURRENCY.fullmatch(currency):
        errors["currency"] = "Three letters, like EUR; empty means every currency."
    if approver not in set(map(str, APPROVER_ROLES)):
        errors["approver"] = "Choose who may be the second person."
    if not reason:
        errors["reason"] = "Say why, in a few words: it is kept with the rule."
    elif len(reason) > team.REASON_CHARACTERS_MAX:
        errors["reason"] = f"At most {team.REASON_CHARACTERS_MAX} characters."
    amount = _amount(clean_text(sent.get("amount_from")), currency, errors)
    if errors:
        return None, reason, errors
    rule = Rule(
        effect_class=EffectClass(effect_class) if effect_class else None,
        action=ActionName(name) if name else None,
        currency=currency,
        amount_from=amount,
        approver=Role(approver),
    )
    return rule, reason, {}


def _amount(text: str, currency: str, errors: dict[str, str]) -> Decimal | None:
    if not text:
        if currency:
            errors["amount_from"] = "Name the amount; 0 means every amount in this currency."
        return None
    try:
        amount = Decimal(text.replace(",", "")) if len(text) <= AMOUNT_CHARACTERS_MAX else None
    except InvalidOperation:
        amount = None
    if amount is None or not amount.is_finite() or amount < 0 or amount != round(amount, 4):
        errors["amount_from"] = "Write an amount in whole units, like 500 or 1,250.50."
        return None
    return amount


def rule_words(rule: Rule) -> str:
    """The rule as a sentence without its end: what needs a second person."""
    what = rule.action.label if rule.action else "Every decision"
    where = f" on {_article(rule.effect_class)}" if rule.effect_class else ""
    if rule.amount_from is None:
        return f"{what}{where}, whatever the amount"
    figure = f"{rule.amount_from.normalize():,f}"
    unit = rule.currency or "in any currency"
    return f"{what}{where}, from {figure} {unit}"


def _article(effect_class: EffectClass) -> str:
    words = CLASS_PARTS[effect_class][0]
    return f"an {words}" if words.startswith("un") else f"a {words}"


def _shown(workspace_id: int) -> list[Shown]:
    return [
        Shown(
            words=rule_words(kept.rule),
            approver=approver_words(kept.rule.approver),
            code="|".join(
                str(part if part is not None else "")
                for part in (
                    kept.rule.effect_class,
                    kept.rule.action,
                    kept.rule.currency,
                    None
                    if kept.rule.amount_from is None
                    else f"{kept.rule.amount_from.normalize():f}",
                    kept.rule.approver,
                )
            ),
            kept=kept,
        )
        for kept in team.kept_rules(workspace_id)
    ]


def approver_words(least: Role) -> str:
    """Who may be the second person where a rule asks for at least this role."""
    roles = [ROLE_WORDS[role] for role in Role if role in APPROVER_ROLES[least]]
    return roles[-1] if len(roles) == 1 else f"{', '.join(roles[:-1])} or {roles[-1]}"


def _page(
    request: DeskRequest, *, typed: dict[str, Any], errors: dict[str, str], status: int = 200
) -> HttpResponse:
    retired = SecondPersonRule.objects.filter(
        workspace=request.workspace, retired_at__isnull=False
    ).select_related("retired_by")
    context = {
        "now": queries.clock(),
        "rules": _shown(request.workspace.pk),
        "are_default": team.are_default(request.workspace.pk),
        "in_force": team.somebody_else_could_approve(request.workspace.pk),
        "retired": [
            {"row": row, "words": rule_words(team.rule_of(row))}
            for row in retired.order_by("-retired_at")[:CHANGES_SHOWN_MAX]
        ],
        "classes": {str(one): CLASS_PARTS[one][0] for one in _CLASSES},
        "ruled": {str(name): name.label for name in RULED},
        "approvers": {str(role): approver_words(role) for role in APPROVER_ROLES},
        "typed": typed,
        "errors": errors,
        "hours_max": PROPOSAL_HOURS_MAX,
        "may_edit": can(request.role, Ability.EDIT_RULES),
        "needs": needs(Ability.EDIT_RULES),
        "role": ROLE_WORDS[request.role],
    }
    return render(request, "reconcile/second_person.html", context, status=status)
