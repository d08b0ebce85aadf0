"""What is hidden before it is stored: the rules, and a rule tried on real calls."""

from __future__ import annotations

from dataclasses import dataclass
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
    needs_and_whom,
    require,
)
from effects.core.redaction import Mode, Redaction, Rule, Secret, redact
from effects.core.redaction_paths import PATH_CHARACTERS_MAX, BadPath, parse_path
from effects.models import RedactionRule, SecretSwitchedOff, Tool
from effects.redaction import changing
from effects.redaction.models import WHERES
from ledger import samples
from ledger.queries import clock
from reconcile.pages.call import clean_text

UNPROCESSABLE: Final = 422
CALLS_TRIED: Final = 50
CHARACTERS_TRIED_MAX: Final = 4000
RETIRED_SHOWN_MAX: Final = 30

WHERE_WORDS: Final = {
    "arguments": "Arguments",
    "results": "Results",
    "bodies": "Provider answers and webhooks",
    "events": "Events and spans from elsewhere",
    "all": "Everything",
}
MODE_WORDS: Final = {
    Mode.HIDE: "Hide: kept sealed, revealed with a reason",
    Mode.DROP: "Drop: never kept",
}
SECRET_WORDS: Final = {
    Secret.NAME: (
        "Credentials by their name",
        (
            "password, api_key, client_secret, authorization, token, cookie, cvc and their like; "
            "also in lists of name and value, and in JSON inside a string"
        ),
    ),
    Secret.ADDRESS: ("Passwords in addresses", "the part before the @ of an address"),
    Secret.WORDS: (
        "Credentials in words",
        "bearer tokens, private keys, keys of known shapes, and name=value pairs",
    ),
    Secret.CARD: (
        "Card numbers",
        "numbers with a known beginning and a right check digit; the last four digits stay",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A rule tried on the newest calls of a tool: in how many of them it found something, and the
    newest of these before and after."""

    tool: Tool
    path: str
    before: str
    after: str
    looked_at: int
    calls: int
    values: int


@require_http_methods(["GET", "HEAD", "POST"])
@membership_required
def redaction(request: DeskRequest) -> HttpResponse:
    """The rules in force. `?tool=3&path=$.card` tries a rule; a POST makes it."""
    if request.method != "POST":
        typed = request.GET.dict()
        trial, errors = _trial(request, typed) if "path" in typed else (None, {})
        return _page(request, typed, errors, trial=trial, status=UNPROCESSABLE if errors else 200)
    require(request, Ability.EDIT_REDACTION)
    typed, errors = request.POST.dict(), _faults(request, request.POST)
    tool = _tool(request, request.POST.get("tool", ""))
    if errors:
        return _page(request, typed, errors, status=UNPROCESSABLE)
    try:
        changing.add(
            request.workspace,
            typed["path"].strip(),
            where=typed["where"],
            mode=Mode(typed["mode"]),
            tool=tool,
            user=request.user,
            reason=clean_text(typed["reason"]),
        )
    except changing.TooManyRulesError as too_many:
        return _page(request, typed, {"path": str(too_many)}, status=UNPROCESSABLE)
    messages.success(request, "In force for everything that comes from now on.")
    return HttpResponseRedirect(reverse("redaction"))


@require_POST
@membership_required
def retire(request: DeskRequest, redaction_id: int) -> HttpResponse:
    """Takes a rule out of force, with a reason. What it hid stays hidden."""
    require(request, Ability.EDIT_REDACTION)
    reason = clean_text(request.POST.get("reason"))
    if not reason:
        messages.error(request, "Say why: what is no longer hidden is stored for everybody.")
    elif changing.retire(request.workspace, redaction_id, user=request.user, reason=reason):
        messages.success(request, "Out of force. What was hidden by it stays hidden.")
    else:
        messages.info(request, "This rule was out of force already.")
    return HttpResponseRedirect(reverse("redaction"))


@require_POST
@membership_required
def secret(request: DeskRequest) -> HttpResponse:
    """Switches the search for one kind of secret off, with a reason, or on again."""
    require(request, Ability.EDIT_REDACTION)
    reason, on = clean_text(request.POST.get("reason")), request.POST.get("on") == "1"
    kind = next((one for one in Secret if one == request.POST.get("secret")), None)
    if kind is None:
        messages.error(request, "Choose a kind of secret from the list.")
    elif not on and not reason:
        messages.error(request, "Say why: from then on such secrets are stored readable.")
    elif changing.switch(request.workspace, kind, on=on, user=request.user, reason=reason):
        word = "looked for" if on else "stored as they come"
        messages.success(request, f"{SECRET_WORDS[kind][0]} are {word} from now on.")
    return HttpResponseRedirect(reverse("redaction"))


def _faults(request: DeskRequest, sent: QueryDict) -> dict[str, str]:
    """One sentence for each field that has to be put right."""
    errors: dict[str, str] = {}
    fault = _path_fault(sent.get("path", ""))
    if fault:
        errors["path"] = fault
    if sent.get("where") not in WHERES:
        errors["where"] = "Choose where the rule applies."
    if sent.get("mode") not in set(map(str, Mode)):
        errors["mode"] = "Choose whether it is hidden or dropped."
    if sent.get("tool") and _tool(request, sent.get("tool", "")) is None:
        errors["tool"] = "Choose a tool from the list, or every tool."
    reason = clean_text(sent.get("reason"))
    if not reason:
        errors["reason"] = "Say why, in a few words: it is kept with the rule."
    elif len(reason) > changing.REASON_CHARACTERS_MAX:
        errors["reason"] = f"At most {changing.REASON_CHARACTERS_MAX} characters."
    return errors


def _path_fault(text: str) -> str:
    try:
        steps = parse_path(text.strip())
    except BadPath as bad:
        return str(bad)
    return "" if steps else "Name a place below $; $ alone would hide every text whole."


def _tool(request: DeskRequest, number: str) -> Tool | None:
    if not number.isdecimal() or len(number) > 18:
        return None
    return Tool.objects.filter(workspace=request.workspace, pk=int(number)).first()


def _trial(request: DeskRequest, typed: dict[str, str]) -> tuple[Trial | None, dict[str, str]]:
    tool, path = _tool(request, typed.get("tool", "")), typed["path"].strip()
    errors = {"path": fault} if (fault := _path_fault(path)) else {}
    if tool is None:
        errors["tool"] = "Choose the tool whose calls the rule is tried on."
    if tool is None or errors:
        return None, errors
    rule = Redaction(rules=(Rule(path=parse_path(path)),), secrets=frozenset())
    found = samples.newest_arguments(request.workspace.pk, tool.pk, limit=CALLS_TRIED)
    tried = [redact(text, rule) for _, text in found]
    shown = next((number for number, one in enumerate(tried) if one.found), 0)
    return Trial(
        tool=tool,
        path=path,
        before=found[shown][1][:CHARACTERS_TRIED_MAX] if found else "",
        after=tried[shown].text[:CHARACTERS_TRIED_MAX] if tried else "",
        looked_at=len(tried),
        calls=sum(bool(one.found) for one in tried),
        values=sum(len(one.found) for one in tried),
    ), {}


def _page(
    request: DeskRequest,
    typed: dict[str, str],
    errors: dict[str, str],
    *,
    trial: Trial | None = None,
    status: int = 200,
) -> HttpResponse:
    kept = RedactionRule.objects.filter(workspace=request.workspace).select_related(
        "tool", "made_by", "retired_by"
    )
    off = {one.secret: one for one in SecretSwitchedOff.objects.filter(
        workspace=request.workspace).select_related("by")}  # fmt: skip
    context: dict[str, Any] = {
        "rules": [_shown(one) for one in kept.filter(retired_at=None).order_by("pk")],
        "retired": [
            _shown(one)
            for one in kept.filter(retired_at__isnull=False).order_by("-retired_at")[
                :RETIRED_SHOWN_MAX
            ]
        ],
        "secrets": [
            {"kind": str(kind), "word": word, "help": text, "off": off.get(str(kind))}
            for kind, (word, text) in SECRET_WORDS.items()
        ],
        "tools": Tool.objects.filter(workspace=request.workspace).order_by("name"),
        "wheres": WHERE_WORDS,
        "modes": {str(mode): words for mode, words in MODE_WORDS.items()},
        "path_max": PATH_CHARACTERS_MAX,
        "now": clock(),
        "typed": typed,
        "errors": errors,
        "trial": trial,
        "calls_tried": CALLS_TRIED,
        "may_edit": can(request.role, Ability.EDIT_REDACTION),
        "needs": needs_and_whom(request.workspace.pk, Ability.EDIT_REDACTION),
        "role": ROLE_WORDS[request.role],
    }
    return render(request, "reconcile/redaction.html", context, status=status)


def _shown(rule: RedactionRule) -> dict[str, Any]:
    return {
        "rule": rule,
        "where": WHERE_WORDS.get(rule.where, rule.where),
        "drops": rule.mode == Mode.DROP,
    }
