"""Tables of work without a person: children."""
