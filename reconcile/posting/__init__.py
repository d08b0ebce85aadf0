"""Handing our own messages over to the addresses that people registered for them."""
