"""Runs: what was asked of which provider, why, and what became of each call."""
