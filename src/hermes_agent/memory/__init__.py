"""Memory of an agent: notes that a person can edit, search in past conversations, and at most one external memory."""
