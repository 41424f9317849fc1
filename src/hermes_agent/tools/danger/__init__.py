"""Which commands are never run, and which wait for a person's yes."""
