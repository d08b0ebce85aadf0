"""The way back to agents: what became of a call, sent to the addresses that wait for it."""
