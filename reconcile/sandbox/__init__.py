"""A provider that misbehaves on purpose, and agents that live with it: demo, training, tests."""
