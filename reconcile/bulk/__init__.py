"""Many calls at once: a frozen set, and each call judged on its own."""
