"""Values that were hidden before they were stored, sealed: only this installation reads them."""

from __future__ import annotations

from typing import override

from django.db import models
from django.db.models import Q

from effects.models import Workspace


class SealedText(models.Model):
    """What was hidden in one stored text of a claim: its arguments, its result, or a raw answer.

    `text_digest` is the SHA-256 of the text as it is stored, so that what was hidden in one text is
    never put into another. `places` lists path, stand-in and mode of each value, in their order;
    `body` holds the values, sealed; retention empties it. A text that an item brought belongs to
    its item until the item is applied.
    """

    class Name(models.TextChoices):
        ARGUMENTS = "arguments"
        RESULT = "result"
        RAW = "raw"

    workspace = models.ForeignKey(
        Workspace, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False
    )
    claim_id = models.UUIDField(null=True)
    item_id = models.BigIntegerField(null=True)
    name = models.CharField(max_length=10)
    text_digest = models.BinaryField()
    places = models.JSONField()
    body = models.BinaryField(null=True)
    sealed_at = models.DateTimeField()
    emptied_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(name="sealed_claim", fields=["claim_id"]),
            models.Index(
                name="sealed_item", fields=["item_id"], condition=Q(item_id__isnull=False)
            ),
        ]

    @override
    def __str__(self) -> str:
        return f"hidden in the {self.name} of {self.claim_id or f'item {self.item_id}'}"
