"""Model fields that the database itself keeps honest."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, override

from django.db import models

if TYPE_CHECKING:
    _Text = models.CharField[str, str]
else:
    _Text = models.CharField  # Generic for the type checker only.


class WordField(_Text):
    """One word of a closed list, stored as a PostgreSQL enum: four bytes, and no other word fits.

    The enum type is created by the migration that first uses it; `words` is the Python side.
    mypy's Django plugin reads `null` only for fields that are generic, so a nullable one says so.
    """

    empty_strings_allowed = False

    def __init__(self, *, enum_name: str = "", words: type[StrEnum] | None = None, **kwargs: Any):
        self.enum_name = enum_name
        self.words = words
        kwargs.setdefault("max_length", 40)
        super().__init__(**kwargs)

    @override
    def deconstruct(self) -> Any:
        name, path, args, kwargs = super().deconstruct()
        kwargs["enum_name"] = self.enum_name
        return name, path, args, kwargs

    @override
    def db_type(self, connection: Any) -> str:
        return self.enum_name

    @override
    def cast_db_type(self, connection: Any) -> str:
        return self.enum_name

    def from_db_value(self, value: str | None, *_: Any) -> str | None:
        return value if value is None or self.words is None else self.words(value)

    @override
    def get_prep_value(self, value: Any) -> Any:
        return None if value is None else str(value)
