"""Telling people in time: rules over the open calls, channels, acknowledgements, deliveries."""
