"""Late truth: what was told and turned out otherwise, and who has to be told again."""
