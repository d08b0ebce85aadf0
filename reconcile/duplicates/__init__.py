"""Calls that were executed more than once: found, diagnosed to a layer, and settled by people."""
