"""Views of the queue: what an address asks for, and the views that people keep."""
