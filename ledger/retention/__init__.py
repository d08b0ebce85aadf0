"""How long bodies are kept. Decisions and events are kept for ever; what is emptied says so."""
