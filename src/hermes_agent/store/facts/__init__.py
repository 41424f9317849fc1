"""Facts of the local fact memory: their table, their change ledger, and full-text search."""
