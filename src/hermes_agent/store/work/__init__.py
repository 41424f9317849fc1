"""Tables of work that nobody types for."""
