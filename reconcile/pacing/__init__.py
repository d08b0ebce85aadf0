"""How fast one provider account is asked: the buckets that hold the count."""
