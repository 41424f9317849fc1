"""Several models that are asked the same, and one that answers."""
