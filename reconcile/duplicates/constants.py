"""The tenant's own figures about who repeats when, and how they are changed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db import transaction
from pydantic import ValidationError

from effects.core.diagnosis import DEFAULTS, Constants
from effects.models import Workspace
from ledger import queries
from reconcile.duplicates.models import REASON_CHARACTERS_MAX
from reconcile.models import DuplicateGroup, RetryConstants


class CannotChange(ValueError):
    """Why the figures stay as they are; `faults` name the figures."""

    def __init__(self, says: str, faults: Mapping[str, str] | None = None) -> None:
        super().__init__(says)
        self.faults = dict(faults or {})


def current(workspace_id: int) -> RetryConstants | None:
    """The version in force, None while the defaults are."""
    return RetryConstants.objects.filter(workspace_id=workspace_id).order_by("-version").first()


def in_force(workspace_id: int) -> Constants:
    version = current(workspace_id)
    return DEFAULTS if version is None else Constants.model_validate(version.figures)


def read(figures: Mapping[str, Any]) -> Constants:
    """The figures, checked. Raises `CannotChange`."""
    try:
        return Constants.model_validate(dict(figures))
    except ValidationError as error:
        faults = {str(one["loc"][0]): f"{one['msg']}." for one in error.errors() if one["loc"]}
        raise CannotChange("Some figures cannot be used.", faults) from None


def change(
    workspace_id: int, figures: Constants, *, user_id: int, reason: str, version: int
) -> RetryConstants:
    """A new version, and every group is diagnosed anew by it. `version` is what the author had
    before them, 0 for the defaults. Raises `CannotChange`."""
    reason = reason.replace("\x00", "").strip()
    if not reason or len(reason) > REASON_CHARACTERS_MAX:
        says = f"Give a reason of at most {REASON_CHARACTERS_MAX} characters."
        raise CannotChange(says, {"reason": says})
    with transaction.atomic():
        Workspace.objects.select_for_update().get(pk=workspace_id)
        now_in_force = current(workspace_id)
        if (now_in_force.version if now_in_force else 0) != version:
            raise CannotChange("The figures were changed by somebody else meanwhile. Look again.")
        made = RetryConstants.objects.create(
            workspace_id=workspace_id,
            version=version + 1,
            figures=figures.model_dump(mode="json"),
            changed_at=queries.clock(),
            changed_by_id=user_id,
            reason=reason,
        )
        forget_answers(workspace_id)
    return made


def forget_answers(workspace_id: int) -> None:
    """Has every group of the workspace diagnosed anew by the next search."""
    DuplicateGroup.objects.filter(workspace_id=workspace_id).update(
        diagnosed_at="1970-01-01T00:00Z"
    )
