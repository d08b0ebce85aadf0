"""Connections to providers as people enter them, and look-ups as people try them."""
