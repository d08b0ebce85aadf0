"""An HTTP provider on loopback that speaks Stripe's documented contract, and misbehaves on demand.

It is used through the real ``stripe`` package, with its base address pointed here. Next to it
stands a plain provider without idempotency keys. Both write append-only truth files of effects
(``stripe.jsonl``, ``plain.jsonl``), which the ledger never reads.
"""
