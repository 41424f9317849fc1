"""Tables of work in which nobody types."""
