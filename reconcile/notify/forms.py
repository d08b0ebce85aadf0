"""The forms of rules and channels: what people write, read with every limit that holds."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from typing import Any, Final, override

from django import forms
from django.core.exceptions import ValidationError

from effects.core.vocabulary import EffectClass
from effects.models import Membership, Tool, Workspace
from effects.pages.settings import zone_names
from effects.templatetags.desk import CLASS_PARTS
from effects.times import read_duration, write_duration
from reconcile.adapters.door import NotAllowed
from reconcile.models import NotificationChannel, NotificationRule
from reconcile.notify.limits import PEOPLE_MAX, REPEAT_MAX, REPEAT_MIN, WITHIN_MAX, WITHIN_MIN
from reconcile.posting.handing import UnusableSecret, signature_headers, way_to

TEXT: Final = {"class": "form-control", "autocomplete": "off"}
SELECT: Final = {"class": "form-select"}
_CURRENCY: Final = re.compile(r"[A-Z]{3}")
_CLASSES: Final = (EffectClass.KEYED_WRITE, EffectClass.UNKEYED_WRITE)
_TIMED: Final = {"closing", "untaken"}
MEMBERS_OFFERED_MAX: Final = 500


class DurationField(forms.CharField):
    """A length of time as people write it ("2 h", "1 h 30 m"); cleaned to seconds, or None."""

    def __init__(self, *, least: timedelta, most: timedelta, **kwargs: Any) -> None:
        super().__init__(max_length=40, widget=forms.TextInput(attrs=dict(TEXT)), **kwargs)
        self.least, self.most = least, most

    @override
    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return self._seconds(text) if text else None

    def _seconds(self, text: str) -> int:
        seconds = read_duration(text)
        if seconds is None:
            raise ValidationError("Write a length of time with its unit, like 2 h or 30 m.")
        if not self.least.total_seconds() <= seconds <= self.most.total_seconds():
            raise ValidationError(f"Between {_words(self.least)} and {_words(self.most)}.")
        return seconds

    @override
    def prepare_value(self, value: Any) -> Any:
        return write_duration(value) if isinstance(value, int) else value


class MoneyAmount(forms.DecimalField):
    """An exact amount in whole units, as the column keeps it."""

    def __init__(self, **kwargs: Any) -> None:
        attrs = {**TEXT, "inputmode": "decimal"}
        super().__init__(
            max_digits=30,
            decimal_places=10,
            min_value=Decimal(0),
            required=False,
            widget=forms.TextInput(attrs=attrs),
            **kwargs,
        )

    @override
    def prepare_value(self, value: Any) -> Any:
        return f"{value.normalize():f}" if isinstance(value, Decimal) else value


class RuleForm(forms.Form):
    """One rule. `channels` and `tool` offer what the workspace has."""

    name = forms.CharField(label="Name", max_length=100, widget=forms.TextInput(attrs=TEXT))
    condition = forms.ChoiceField(
        label="Tell when",
        choices=NotificationRule.Condition.choices,
        widget=forms.Select(attrs=SELECT),
    )
    within = DurationField(
        label="Length of time",
        required=False,
        least=WITHIN_MIN,
        most=WITHIN_MAX,
        help_text="The window closes in less than that, or nobody has the call for longer than "
        "that. Like 2 h or 30 m.",
    )
    amount = MoneyAmount(
        label="Exposure above", help_text="For a rule about exposure: the sum of all open calls."
    )
    currency = forms.CharField(
        label="Currency",
        max_length=3,
        required=False,
        widget=forms.TextInput(attrs=TEXT),
        help_text="Like EUR. Amounts of another currency are not compared.",
    )
    tool = forms.ModelChoiceField(
        label="Only this tool",
        queryset=Tool.objects.none(),
        required=False,
        empty_label="Every tool",
        widget=forms.Select(attrs=SELECT),
    )
    effect_class = forms.ChoiceField(
        label="Only this class",
        choices=[("", "Every class"), *((str(one), CLASS_PARTS[one][0]) for one in _CLASSES)],
        required=False,
        widget=forms.Select(attrs=SELECT),
    )
    amount_from = MoneyAmount(
        label="Only from this amount on",
        help_text="In whole units, like 500. A call whose amount is not known counts as large.",
    )
    channels = forms.ModelMultipleChoiceField(
        label="Channels",
        queryset=NotificationChannel.objects.none(),
        required=False,
        widget=forms.CheckboxSelectMultiple,
    )
    repeat = DurationField(
        label="Tell again after",
        least=REPEAT_MIN,
        most=REPEAT_MAX,
        help_text="While it is still so and nobody has acknowledged it.",
    )
    zone = forms.ChoiceField(
        label="Time zone",
        widget=forms.Select(attrs=SELECT),
        help_text="Of the quiet hours, and of every time in the messages.",
    )
    quiet_from = forms.TimeField(
        label="Quiet from",
        required=False,
        widget=forms.TimeInput(format="%H:%M", attrs={**TEXT, "type": "time"}),
    )
    quiet_until = forms.TimeField(
        label="Quiet until",
        required=False,
        widget=forms.TimeInput(format="%H:%M", attrs={**TEXT, "type": "time"}),
        help_text="What comes in these hours is told at their end, if it is still so.",
    )
    wake = DurationField(
        label="Wake anyway below",
        required=False,
        least=WITHIN_MIN,
        most=WITHIN_MAX,
        help_text="In quiet hours, tell at once with less time than that to the window's end. A "
        "window that closes before they end, or soon after, is always told at once.",
    )

    def __init__(
        self, *args: Any, workspace: Workspace, rule_id: int | None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.workspace, self.rule_id = workspace, rule_id
        tool, channels, zone = self.fields["tool"], self.fields["channels"], self.fields["zone"]
        assert isinstance(tool, forms.ModelChoiceField)
        assert isinstance(channels, forms.ModelMultipleChoiceField)
        assert isinstance(zone, forms.ChoiceField)
        tool.queryset = Tool.objects.filter(workspace=workspace).order_by("name")
        channels.queryset = NotificationChannel.objects.filter(
            workspace=workspace, retired_at=None
        ).order_by("name")
        zone.choices = [(name, name) for name in zone_names()]

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        twins = NotificationRule.objects.filter(
            workspace=self.workspace, name=name, retired_at=None
        )
        if twins.exclude(pk=self.rule_id or 0).exists():
            raise ValidationError("Another rule of this workspace has this name.")
        return name

    def clean_currency(self) -> str:
        currency = str(self.cleaned_data["currency"]).upper()
        if currency and not _CURRENCY.fullmatch(currency):
            raise ValidationError("Three letters, like EUR.")
        return currency

    @override
    def clean(self) -> dict[str, Any]:
        said = super().clean() or self.cleaned_data
        condition = said.get("condition")
        if condition in _TIMED and not said.get("within") and "within" not in self.errors:
            self.add_error("within", "This condition needs a length of time.")
        if condition == "exposure":
            if said.get("amount") is None and "amount" not in self.errors:
                self.add_error("amount", "Say above which sum it is told.")
            if not said.get("currency") and "currency" not in self.errors:
                self.add_error("currency", "Sums are of one currency: say which.")
        if (said.get("quiet_from") is None) != (said.get("quiet_until") is None):
            self.add_error("quiet_until", "Quiet hours have a beginning and an end.")
        elif said.get("quiet_from") and said.get("quiet_from") == said.get("quiet_until"):
            self.add_error("quiet_until", "From and until are the same: nothing would be quiet.")
        return said

    def filled(self, rule: NotificationRule) -> NotificationRule:
        """The rule as the form says it, not saved."""
        said = self.cleaned_data
        exposure = said["condition"] == "exposure"
        rule.name, rule.condition = said["name"], said["condition"]
        rule.within_seconds = said["within"] if rule.condition in _TIMED else None
        rule.amount = said["amount"] if exposure else None
        rule.currency = said["currency"]
        rule.tool, rule.effect_class = said["tool"], said["effect_class"]
        rule.amount_from, rule.repeat_seconds = said["amount_from"], said["repeat"]
        rule.zone = said["zone"]
        rule.quiet_from, rule.quiet_until = said["quiet_from"], said["quiet_until"]
        rule.wake_seconds = said["wake"] if said["quiet_from"] else None
        return rule


def rule_initial(rule: NotificationRule | None, zone: str) -> dict[str, Any]:
    """What a rule's form shows before anybody typed."""
    if rule is None:
        return {"within": 2 * 3600, "repeat": 4 * 3600, "zone": zone}
    return {
        "name": rule.name,
        "condition": rule.condition,
        "within": rule.within_seconds,
        "amount": rule.amount,
        "currency": rule.currency,
        "tool": rule.tool_id,
        "effect_class": rule.effect_class,
        "amount_from": rule.amount_from,
        "channels": [one.pk for one in rule.channels.all()],
        "repeat": rule.repeat_seconds,
        "zone": rule.zone,
        "quiet_from": rule.quiet_from,
        "quiet_until": rule.quiet_until,
        "wake": rule.wake_seconds,
    }


class ChannelForm(forms.Form):
    """One channel of one kind; a secret that was entered before stays where none is typed."""

    name = forms.CharField(label="Name", max_length=100, widget=forms.TextInput(attrs=TEXT))
    people = forms.MultipleChoiceField(
        label="People", required=False, widget=forms.CheckboxSelectMultiple
    )
    address = forms.EmailField(
        label="Another mailbox",
        max_length=254,
        required=False,
        widget=forms.EmailInput(attrs=TEXT),
        help_text="A shared mailbox, for example. Whoever reads it needs a login to see the calls.",
    )
    url = forms.CharField(
        label="Address of the webhook",
        max_length=500,
        required=False,
        widget=forms.PasswordInput(attrs={**TEXT, "spellcheck": "false"}),
    )
    secret = forms.CharField(
        label="Signing secret",
        max_length=200,
        required=False,
        widget=forms.PasswordInput(attrs={**TEXT, "spellcheck": "false"}),
    )
    names_calls = forms.BooleanField(
        label="Say what the calls are: summary, amount, state",
        required=False,
        widget=forms.CheckboxInput(attrs={"class": "form-check-input"}),
        help_text="Off: messages hold counts, times and links, and nothing of the calls.",
    )

    def __init__(
        self, *args: Any, workspace: Workspace, kind: str, channel_id: int | None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.workspace, self.kind, self.channel_id = workspace, kind, channel_id
        kept = "Kept sealed, and never shown again." + (
            " Leave it empty to keep the one that is there." if channel_id else ""
        )
        for name in ("people", "address", "url", "secret"):
            if name not in FIELDS_OF[kind]:
                del self.fields[name]
            elif name in {"url", "secret"}:
                self.fields[name].required = channel_id is None
                self.fields[name].help_text = f"{HELP_OF[name]} {kept}"
        if "people" in self.fields:
            people = self.fields["people"]
            assert isinstance(people, forms.MultipleChoiceField)
            people.choices = member_choices(workspace)

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"])
        twins = NotificationChannel.objects.filter(
            workspace=self.workspace, name=name, retired_at=None
        )
        if twins.exclude(pk=self.channel_id or 0).exists():
            raise ValidationError("Another channel of this workspace has this name.")
        return name

    def clean_people(self) -> list[int]:
        people = [int(one) for one in self.cleaned_data["people"]]
        if len(people) > PEOPLE_MAX:
            raise ValidationError(f"PEOPLE_MAX is {PEOPLE_MAX}: use a shared mailbox.")
        return people

    def clean_url(self) -> str:
        url = str(self.cleaned_data["url"]).strip()
        if not url:
            return ""
        try:
            way = way_to(url)
        except NotAllowed:
            # The door's own sentence repeats the address, which is a secret here.
            raise ValidationError("That is no web address. It starts with https://.") from None
        if not url.startswith("https://") and not way.private:
            raise ValidationError(
                "It would travel unencrypted. Use https://, or have the operator of this "
                f"installation allow {way.origin} by name."
            )
        return url

    def clean_secret(self) -> str:
        secret = str(self.cleaned_data["secret"]).strip()
        if secret:
            try:
                signature_headers("test", "", [secret])
            except UnusableSecret:
                raise ValidationError("It starts with whsec_, and base64 follows.") from None
            if not secret.startswith("whsec_"):
                raise ValidationError("It starts with whsec_, and base64 follows.")
        return secret

    @override
    def clean(self) -> dict[str, Any]:
        said = super().clean() or self.cleaned_data
        reaches = said.get("people") or said.get("address")
        if self.kind == NotificationChannel.Kind.EMAIL and not reaches and not self.errors:
            self.add_error("people", "Choose somebody, or give a mailbox.")
        return said


FIELDS_OF: Final[dict[str, tuple[str, ...]]] = {
    "email": ("people", "address"),
    "slack": ("url",),
    "webhook": ("url", "secret"),
}
HELP_OF: Final = {
    "url": "https://, where messages are posted. Whoever knows it can post there.",
    "secret": "whsec_ and base64, as Standard Webhooks has it; the receiver checks with it.",
}


def member_choices(workspace: Workspace) -> list[tuple[str, str]]:
    """The active people who have a mailbox, by the name they sign in with."""
    members = Membership.objects.filter(workspace=workspace, user__is_active=True)
    found = members.exclude(user__email="").select_related("user").order_by("user__username")
    return [
        (str(one.user_id), f"{one.user.get_username()} <{one.user.email}>")
        for one in found[:MEMBERS_OFFERED_MAX]
    ]


def _words(length: timedelta) -> str:
    return write_duration(int(length.total_seconds()))
