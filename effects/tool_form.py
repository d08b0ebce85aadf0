"""The form of a tool: what people write, turned into settings that the ledger can rely on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, Protocol, override

from django import forms
from django.core.exceptions import ValidationError

from effects.contracts import Promise, contract_of, faults, filled
from effects.core.canonical import ArgumentRules, Refused, parse_json
from effects.core.vocabulary import EffectClass
from effects.models import Connection, Tool, Workspace
from effects.registry import FIXED_CURRENCY, field_fault, template_fault
from effects.times import DAY_SECONDS, read_duration, write_duration
from effects.tools import CLASS_WORDS, CONTRACT_WORDS

SECONDS_MAX: Final = 10 * 365 * DAY_SECONDS
RULES_NAMED_MAX: Final = 100
RUNBOOK_CHARACTERS_MAX: Final = 10_000


class CheckLookup(Protocol):
    """What is wrong with a look-up for this kind of connection, in a sentence, or None."""

    def __call__(
        self, kind: str, config: Mapping[str, Any], *, connection_kind: str | None
    ) -> str | None: ...


class DurationField(forms.Field):
    """Whole seconds, written with their unit: "90 s", "15 m", "24 h", "1 d 2 h"."""

    def __init__(self, *, seconds_min: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.seconds_min = seconds_min

    @override
    def prepare_value(self, value: Any) -> Any:
        return write_duration(value) if isinstance(value, int) else value

    @override
    def to_python(self, value: Any) -> int | None:
        text = str(value or "").strip()
        if not text:
            return None
        seconds = read_duration(text)
        if seconds is None:
            raise ValidationError("Write a number with its unit, like 90 s, 15 m, 24 h or 30 d.")
        if not self.seconds_min <= seconds <= SECONDS_MAX:
            least, most = write_duration(self.seconds_min), write_duration(SECONDS_MAX)
            raise ValidationError(f"Between {least} and {most}, please.")
        return seconds


class SettingsField(forms.JSONField):
    """One JSON object, shown with its lines; nothing is the empty object."""

    widget = forms.Textarea

    @override
    def prepare_value(self, value: Any) -> Any:
        if not value:
            return ""
        if isinstance(value, dict):
            return json.dumps(value, indent=2, ensure_ascii=False)
        return super().prepare_value(value)


class NamesField(forms.CharField):
    """Names of argument members, by comma or line; a list in the settings."""

    widget = forms.TextInput

    @override
    def prepare_value(self, value: Any) -> Any:
        return ", ".join(value) if isinstance(value, list | tuple) else value

    @override
    def to_python(self, value: Any) -> list[str]:  # type: ignore[override]  # a list is meant
        names = [name.strip() for name in str(value or "").replace("\n", ",").split(",")]
        kept = list(dict.fromkeys(name for name in names if name))
        if len(kept) > RULES_NAMED_MAX:
            raise ValidationError(f"At most {RULES_NAMED_MAX} names.")
        return kept


class DefaultsField(forms.CharField):
    """One `name = JSON` a line; a mapping from names to JSON texts in the settings."""

    widget = forms.Textarea

    @override
    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return "\n".join(f"{name} = {text}" for name, text in value.items())
        return value

    @override
    def to_python(self, value: Any) -> dict[str, str]:  # type: ignore[override]  # a dict is meant
        found: dict[str, str] = {}
        for number, line in enumerate(str(value or "").splitlines(), start=1):
            if not line.strip():
                continue
            name, equals, text = line.partition("=")
            if not equals or not name.strip():
                raise ValidationError(f"Line {number} is not of the form: name = value.")
            try:
                parse_json(text.strip())
            except Refused as fault:
                raise ValidationError(f"Line {number}: {fault}") from None
            found[name.strip()] = text.strip()
        return found


class RunbookField(forms.CharField):
    """A text with its lines as they were typed; browsers send each line's end as two characters."""

    widget = forms.Textarea

    @override
    def to_python(self, value: Any) -> str:
        return str(super().to_python(value) or "").replace("\r\n", "\n").replace("\r", "\n")


if TYPE_CHECKING:
    _FormOfTool = forms.ModelForm[Tool]
else:  # Django's own class takes no parameter when it runs.
    _FormOfTool = forms.ModelForm


class ToolForm(_FormOfTool):
    """Create and change. `reason` is asked for with every save; the name is fixed once it is there.

    The name is what agents call the tool by: under another name it is another tool.
    """

    name = forms.CharField(max_length=255, label="Name", help_text="As the agents' code calls it.")
    effect_class = forms.ChoiceField(label="Class", choices=list(CLASS_WORDS.items()))
    contract = forms.ChoiceField(label="Contract", choices=list(CONTRACT_WORDS.items()))
    window_seconds = DurationField(
        label="Safe-retry window",
        required=False,
        help_text="How long the provider honours a key after its first receipt. Empty: as the "
        "contract says. Longer than that is refused, unless it is a minimum or not published.",
    )
    margin_seconds = DurationField(
        label="Margin",
        help_text="Nothing is sent so shortly before the window closes: the longest request and "
        "a minute more.",
    )
    lease_seconds = DurationField(
        label="Lease", help_text="How long a silent worker is taken to be alive."
    )
    attempt_seconds_max = DurationField(
        label="Longest attempt", help_text="Heartbeats cannot keep a lease longer than this."
    )
    attempts_max = forms.IntegerField(label="Attempts", min_value=1, max_value=100)
    release_lapse_minutes = DurationField(
        label="A release lapses after",
        seconds_min=60,
        help_text="Nobody took it up: the call is unknown again.",
    )
    server_working_seconds_max = DurationField(
        label="Provider may still work for",
        required=False,
        help_text="After the answer was lost. Empty: as the contract says; where it says nothing, "
        "15 m is assumed, our figure.",
    )
    horizon_days = forms.IntegerField(
        label="Ask for so many days", min_value=1, max_value=365, help_text="Then only on demand."
    )
    lookups_max = forms.IntegerField(label="Look-ups", min_value=0, max_value=1000)
    lookup_kind = forms.ChoiceField(label="Look-up", required=False)
    lookup = SettingsField(
        label="Settings of the look-up",
        required=False,
        help_text="JSON: for a status endpoint its path, reference and status map.",
    )
    summary = forms.CharField(
        label="Summary",
        required=False,
        max_length=300,
        help_text="What people read instead of JSON: Charge {amount} to {customer} for order "
        "{metadata.order}",
    )
    volatile = NamesField(
        label="Volatile", required=False, help_text="Left out when two calls are compared."
    )
    drop_null = NamesField(label="Null means absent", required=False)
    instants = NamesField(
        label="Instants", required=False, help_text="Compared as moments, in any zone."
    )
    business = NamesField(
        label="Business identity",
        required=False,
        help_text="Together they say which act in the world is meant. A second call with the same "
        "ones is held, never swallowed.",
    )
    defaults = DefaultsField(
        label="Defaults", required=False, help_text="One name = value a line; a value is JSON."
    )
    runbook = RunbookField(
        label="Runbook",
        required=False,
        max_length=RUNBOOK_CHARACTERS_MAX,
        help_text="What to do when a call of it is undecided: whom to ask, where to look. Shown on "
        "every call. Lists with -, **strong**, `code` and links, as in notes.",
    )
    reason = forms.CharField(label="Reason", max_length=500, help_text="Kept with the version.")

    class Meta:
        model = Tool
        fields = [
            *("name", "effect_class", "note", "owner", "contract", "key_name", "window_seconds"),
            *("margin_seconds", "lease_seconds", "attempt_seconds_max", "attempts_max"),
            *("release_lapse_minutes", "server_working_seconds_max", "horizon_days"),
            *("hold_in_turn", "agent_may_repeat", "sends_offline", "connection", "lookup_kind"),
            *("lookup", "lookups_max", "summary", "amount_field", "amount_is_minor"),
            *("currency_field", "customer_field", "runbook"),
        ]
        labels = {
            "key_name": "Key is sent as",
            "hold_in_turn": "Hold a second equal call of the same turn",
            "agent_may_repeat": "The agent may say that a repeat is meant",
            "sends_offline": "May be sent while the ledger cannot be asked",
            "amount_is_minor": "The amount is in minor units (14900 is 149.00)",
        }
        help_texts = {
            "key_name": "The header or member in which your code puts the key. Empty: the "
            "contract's.",
            "amount_field": "A path, like amount or price.value.",
            "currency_field": "A path, or a fixed currency after a sign: =EUR.",
            "customer_field": "A path, like customer or buyer.id.",
            "sends_offline": "Only with a key and a window, by an agent that writes the call to "
            "its own disk first. No earlier call holds it back then: only the key prevents a "
            "second effect.",
            "note": "For colleagues: what the tool does, whom to ask.",
        }

    def __init__(
        self,
        *args: Any,
        workspace: Workspace,
        lookup_kinds: Mapping[str, str],
        check_lookup: CheckLookup,
        **kwargs: Any,
    ) -> None:
        tool: Tool | None = kwargs.get("instance")
        kwargs["initial"] = {**_initial(tool), **(kwargs.get("initial") or {})}
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.workspace = workspace
        self.check_lookup = check_lookup
        self._choose_from(lookup_kinds)
        if tool is not None and tool.pk:
            self.fields["name"].disabled = True
        for name, field in self.fields.items():
            field.widget.attrs |= _attributes(name, field)

    def _choose_from(self, lookup_kinds: Mapping[str, str]) -> None:
        kind, connection = self.fields["lookup_kind"], self.fields["connection"]
        assert isinstance(kind, forms.ChoiceField)
        assert isinstance(connection, forms.ModelChoiceField)
        kind.choices = list(lookup_kinds.items())
        connection.queryset = Connection.objects.filter(workspace=self.workspace).order_by("name")
        connection.empty_label = "none"

    # One thing at a time

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        twin = Tool.objects.filter(workspace=self.workspace, name=name)
        if twin.exclude(pk=self.instance.pk).exists():
            raise ValidationError("A tool of this name is there already. Change that one.")
        return name

    def clean_summary(self) -> str:
        return _or_fault(str(self.cleaned_data["summary"]), template_fault)

    def clean_amount_field(self) -> str:
        return _or_fault(str(self.cleaned_data["amount_field"]), field_fault)

    def clean_customer_field(self) -> str:
        return _or_fault(str(self.cleaned_data["customer_field"]), field_fault)

    def clean_currency_field(self) -> str:
        text = str(self.cleaned_data["currency_field"]).strip()
        if not text.startswith(FIXED_CURRENCY):
            return _or_fault(text, field_fault)
        code = text.removeprefix(FIXED_CURRENCY).strip().upper()
        if len(code) != 3 or not (code.isascii() and code.isalpha()):
            raise ValidationError("A fixed currency has three letters, like =EUR.")
        return FIXED_CURRENCY + code

    def clean_lookup(self) -> dict[str, Any]:
        settings = self.cleaned_data["lookup"] or {}
        if not isinstance(settings, dict):
            raise ValidationError("The settings are one JSON object, in braces.")
        return settings

    def clean_release_lapse_minutes(self) -> float:
        return float(self.cleaned_data["release_lapse_minutes"]) / 60

    # Two things that must fit

    @override
    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        self._clean_contract(values)
        self._clean_times(values)
        self._clean_lookup(values)
        self._clean_rules(values)
        return values

    def _clean_contract(self, values: dict[str, Any]) -> None:
        """The contract's figures where nothing was entered, and no promise beyond them."""
        terms = contract_of(values.get("contract", ""))
        told = {"effect_class", "window_seconds", "server_working_seconds_max"}
        if terms is None or not told <= values.keys():
            return
        promise = Promise(
            effect_class=EffectClass(values["effect_class"]),
            window_seconds=values["window_seconds"],
            server_working_seconds_max=values["server_working_seconds_max"],
            key_name=values.get("key_name", ""),
        )
        for field, sentence in faults(promise, terms).items():
            self.add_error(field, sentence)
        # Null says "no key" here for the other classes. Calls that have a key keep the window that
        # they were granted with.
        full = filled(promise, terms)
        values["window_seconds"] = full.window_seconds
        values["server_working_seconds_max"] = full.server_working_seconds_max

    def _clean_times(self, values: dict[str, Any]) -> None:
        window, margin = values.get("window_seconds"), values.get("margin_seconds")
        if window is None and "window_seconds" not in self.errors and values.get("sends_offline"):
            sentence = "Only a keyed write with a published window may be sent without asking."
            self.add_error("sends_offline", sentence)
        if window is not None and margin is not None and window <= margin:
            sentence = "The margin must be shorter than the window, or nothing could ever be sent."
            self.add_error("margin_seconds", sentence)
        lease, attempt = values.get("lease_seconds"), values.get("attempt_seconds_max")
        if lease is not None and attempt is not None and lease > attempt:
            self.add_error("lease_seconds", "The lease cannot be longer than the longest attempt.")

    def _clean_lookup(self, values: dict[str, Any]) -> None:
        kind, connection = values.get("lookup_kind") or "", values.get("connection")
        if not kind or "lookup" not in values:
            return
        if connection is None:
            self.add_error("connection", "A look-up needs a connection: the account to be asked.")
            return
        fault = self.check_lookup(kind, values["lookup"], connection_kind=connection.kind)
        if fault is not None:
            self.add_error("lookup", fault)

    def _clean_rules(self, values: dict[str, Any]) -> None:
        lists = {name: values.get(name) or [] for name in _RULE_LISTS}
        defaults = values.get("defaults") or {}
        try:
            ArgumentRules(
                **{name: tuple(found) for name, found in lists.items()}, defaults=defaults
            )
        except Refused as fault:
            self.add_error("business", str(fault))
        rules = {**lists, "defaults": defaults}
        self.instance.argument_rules = {name: rule for name, rule in rules.items() if rule}


_RULE_LISTS: Final = ("volatile", "drop_null", "instants", "business")
_LONG_TEXTS: Final = {"lookup": 8, "defaults": 3, "note": 2, "reason": 2, "runbook": 8}


def _initial(tool: Tool | None) -> dict[str, Any]:
    if tool is None:
        return {"release_lapse_minutes": 30 * 60}
    seconds = round(tool.release_lapse_minutes * 60)
    return {**tool.argument_rules, "release_lapse_minutes": seconds}


def _attributes(name: str, field: forms.Field) -> dict[str, Any]:
    if isinstance(field, forms.BooleanField):
        return {"class": "check"}
    style = "form-select" if isinstance(field, forms.ChoiceField) else "form-control"
    extra: dict[str, Any] = {"rows": _LONG_TEXTS[name]} if name in _LONG_TEXTS else {}
    mono = " mono" if name in {"lookup", "defaults", "name"} else ""
    return {"class": f"{style}{mono}", "autocomplete": "off", **extra}


def _or_fault(text: str, fault_of: Callable[[str], str | None]) -> str:
    fault = fault_of(text)
    if fault is not None:
        raise ValidationError(fault)
    return text.strip()
