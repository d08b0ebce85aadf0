"""Questions to providers. An adapter says what it saw; what that means is judged elsewhere."""
