"""What is remembered: notes that a person can edit, and at most one memory outside."""
