"""The fault lab: what goes wrong between a model, a tool and a provider, produced for real.

Every row runs on real parts: the client, a ledger on PostgreSQL behind its own door, the sandbox
provider, which counts what it did, and worker processes that die and freeze. `make faultlab` prints
the table; the tests run the same rows.
"""
