"""The form for a connection, and the rules of the door that its address has to keep."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, override
from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.core.exceptions import ValidationError

from effects.models import Connection, Tool, Workspace
from reconcile.adapters.door import NotAllowed, is_public, origin_of

KIND_WORDS: Final = {
    Connection.Kind.STRIPE: "Stripe",
    Connection.Kind.PAYPAL: "PayPal",
    Connection.Kind.GOCARDLESS: "GoCardless",
    Connection.Kind.CHECKOUT: "Checkout.com",
    Connection.Kind.SALESFORCE: "Salesforce",
    Connection.Kind.HTTP: "HTTP, any provider",
    Connection.Kind.GRAPHQL: "GraphQL, any provider",
    Connection.Kind.SQL: "SQL, a PostgreSQL database",
}
_VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
SECRET_CHARACTERS_MAX: Final = 4096
_DATABASE_FORM: Final = "postgresql://host:port/database"
_OWN_VARIABLES: Final = ("COUNTERFOIL_", "DATABASE_URL", "REDIS_URL", "CELERY_")
"""What opens this installation itself. Named as a secret, it would be sent to whatever address
stands beside it."""

if TYPE_CHECKING:
    _FormOfConnection = forms.ModelForm[Connection]
else:  # Django's own class takes no parameter when it runs.
    _FormOfConnection = forms.ModelForm


def address_fault(kind: str, url: str) -> str | None:
    """Why the door would not ask at this address, in one sentence, or None. Asks no network."""
    try:
        origin = origin_of(url)
    except NotAllowed as error:
        return str(error)
    return _shape_fault(kind, url) or _reach_fault(origin, url)


def origin_or_none(url: str) -> str | None:
    """Scheme, host and port of an address, or None for one that is none."""
    try:
        return origin_of(url)
    except NotAllowed:
        return None


def _shape_fault(kind: str, url: str) -> str | None:
    parts, is_database = urlsplit(url), kind == Connection.Kind.SQL
    if parts.query or parts.fragment:
        return "An address holds no question mark and no #: the look-up says what is asked there."
    if is_database != (parts.scheme == "postgresql"):
        wanted = _DATABASE_FORM if is_database else "https://"
        return f"A connection of this kind has an address that starts with {wanted}."
    if is_database and not re.fullmatch(r"/[^/]+", parts.path):
        return f"The address of a database is {_DATABASE_FORM}."
    return None


def _reach_fault(origin: str, url: str) -> str | None:
    if origin in {origin_of(one) for one in settings.COUNTERFOIL_PRIVATE_ORIGINS}:
        return None
    by_name = f"have the operator of this installation add {origin} to COUNTERFOIL_PRIVATE_ORIGINS"
    if url.startswith("http://"):
        return f"The secret would travel unencrypted. Use https://, or {by_name}."
    if _is_private(urlsplit(url).hostname or ""):
        return f"That is not a public address. If it is meant, {by_name}."
    return None


def _is_private(host: str) -> bool:
    """Whether the address says by itself that it is not public; a name is looked up when asked."""
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return not is_public(host)


class ConnectionForm(_FormOfConnection):
    """Create and change. The kind is fixed once a tool uses the connection."""

    kind = forms.ChoiceField(label="Kind", choices=[(str(k), w) for k, w in KIND_WORDS.items()])
    secret = forms.CharField(
        label="Secret",
        required=False,
        max_length=SECRET_CHARACTERS_MAX,
        widget=forms.PasswordInput,  # which never shows again what was typed
        help_text="A credential that can only read. It is sealed and never shown again.",
    )
    reason = forms.CharField(label="Reason", max_length=500, help_text="Kept with the version.")

    class Meta:
        model = Connection
        fields = ("name", "kind", "base_url", "account", "secret_name")
        labels = {
            "name": "Name",
            "base_url": "Address",
            "account": "Account",
            "secret_name": "Or the variable with it",
        }
        help_texts = {
            "base_url": "https://api.example.com, or postgresql://host:port/database. Only this "
            "host is ever asked.",
            "account": "As the provider names it; for a database, the role. Answers of another "
            "account are not believed.",
            "secret_name": "An environment variable of the workers, for a secret that is kept "
            "outside of the database.",
        }

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.label_suffix = ""
        self.workspace = workspace
        self.used = (
            bool(self.instance.pk) and Tool.objects.filter(connection=self.instance).exists()
        )
        if self.used:
            self.fields["kind"].disabled = True
            self.fields["kind"].help_text = "Tools use it, so it stays what it is."
        if self.instance.secret_sealed:
            self.fields["secret"].help_text = "Leave it empty to keep the one that was entered."
        self.entered_for = origin_or_none(self.instance.base_url), str(self.instance.kind)
        for name, field in self.fields.items():
            choice = isinstance(field, forms.ChoiceField)
            mono = " mono" if name in {"base_url", "secret", "secret_name", "account"} else ""
            style = "form-select" if choice else f"form-control{mono}"
            field.widget.attrs |= {"class": style, "autocomplete": "off", "spellcheck": "false"}

    def clean_name(self) -> str:
        name = str(self.cleaned_data["name"]).strip()
        twin = Connection.objects.filter(workspace=self.workspace, name=name)
        if twin.exclude(pk=self.instance.pk).exists():
            raise ValidationError("A connection of this name is there already. Change that one.")
        return name

    def clean_secret_name(self) -> str:
        name = str(self.cleaned_data["secret_name"]).strip()
        if name and not _VARIABLE.fullmatch(name):
            raise ValidationError(
                "Name an environment variable, such as STRIPE_READ_KEY, not the secret itself."
            )
        if name.startswith(_OWN_VARIABLES):
            raise ValidationError(
                f"{name} opens this installation itself and is sent to no provider."
            )
        return name

    @override
    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        kind, url = values.get("kind"), values.get("base_url")
        if kind and url:
            fault = address_fault(str(kind), str(url))
            if fault is not None:
                self.add_error("base_url", fault)
        if kind == Connection.Kind.SQL and not values.get("account"):
            self.add_error("account", "For a database the account is the role that logs in.")
        fault = self._secret_fault(values)
        if fault is not None and not self.has_error("secret_name"):
            self.add_error("secret", fault)
        return values

    def _secret_fault(self, values: Mapping[str, Any]) -> str | None:
        """Why the secret cannot be what the form says, in one sentence, or None."""
        typed, named = values.get("secret"), values.get("secret_name")
        if typed and named:
            return "Enter the secret or name a variable, not both."
        if typed or named:
            return None
        if not self.instance.secret_sealed:
            return "Enter the secret, or name the variable that holds it."
        # Whoever may change the address must not have a secret sent there that they cannot read.
        if (origin_or_none(str(values.get("base_url"))), values.get("kind")) != self.entered_for:
            return "Enter the secret again: the one that is kept was meant for another address."
        return None
