"""Evidence that others wrote, brought into our own words: each source is one file here."""
