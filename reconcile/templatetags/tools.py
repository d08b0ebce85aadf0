"""What the registry's templates write."""

from __future__ import annotations

from django import template

register = template.Library()


@register.filter
def grouped(number: int) -> str:
    """A count with its thousands apart: 1,493."""
    return f"{number:,}"
