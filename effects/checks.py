"""System checks: every setting that cannot be meant is said at boot, with an id and a hint."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured

from effects.environment import Environment


def judge_environment(environment: Environment) -> list[CheckMessage]:
    """Turn what makes no sense in the environment into errors."""
    return [Error(n.message, hint=n.hint, id=n.id) for n in environment.nonsense]


@register()
def check_environment(
    app_configs: Sequence[Any] | None,  # noqa: ARG001 - Django passes it by name.
    **_: Any,
) -> list[CheckMessage]:
    return judge_environment(settings.ENVIRONMENT)


def judge_secret_key(environment: Environment) -> list[CheckMessage]:
    """A key that each machine makes up for itself ends every session at the next machine."""
    if environment.secret_key is not None or environment.database_url is None:
        return []
    return [
        checks.Warning(
            "COUNTERFOIL_SECRET_KEY is not set, so this machine has made one up",
            hint="Beside a database of your own, set the same key on every machine.",
            id="effects.W001",
        )
    ]


@register(Tags.security, deploy=True)
def check_secret_key(
    app_configs: Sequence[Any] | None,  # noqa: ARG001 - Django passes it by name.
    **_: Any,
) -> list[CheckMessage]:
    return judge_secret_key(settings.ENVIRONMENT)


def refuse_nonsense() -> None:
    """Stop a server that would otherwise run on defaults nobody asked for.

    `manage.py` runs the checks by itself; servers and workers do not, so their entry points call
    this. Raises `ImproperlyConfigured`.
    """
    found = settings.ENVIRONMENT.nonsense
    if found:
        raise ImproperlyConfigured("; ".join(f"{n.id}: {n.message}. {n.hint}" for n in found))
