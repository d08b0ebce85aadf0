"""Who is to look after a call: named by a person, for longer than a take lasts."""
