"""Memory of an agent: notes that a person can edit, and at most one external memory."""
