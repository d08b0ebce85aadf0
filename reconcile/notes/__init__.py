"""Notes on calls: how they read, and who is spoken to in them."""
