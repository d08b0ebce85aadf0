"""A soak: many calls whose outcome nobody knows, at every provider that can be asked, under faults.

Everything that finds out is the product's own: the ledger in a PostgreSQL of its own, the schedule,
the adapters over HTTP, the door for webhooks. Only the clocks are moved. The account is made
against what the sandbox's provider counted, and against what a witness between the two has seen go
by: a verdict that the provider's count contradicts, and an effect that was shown and is on no
record, are what must not be.
"""
