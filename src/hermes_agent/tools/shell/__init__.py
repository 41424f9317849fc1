"""Commands in a place: the tools, and what they watch for."""
