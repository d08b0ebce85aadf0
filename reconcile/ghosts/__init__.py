"""Ghosts: what a provider did in our accounts and no call of ours accounts for."""
