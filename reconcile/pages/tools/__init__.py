"""The registry's pages: which tools there are, what they promise, and how that changed.

They stand on this floor, not on the ground where the tools are kept, because a change is shown with
what it does to calls that are undecided now.
"""

from reconcile.pages.tools.common import UNPROCESSABLE

__all__ = ["UNPROCESSABLE"]
