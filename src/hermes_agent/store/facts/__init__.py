"""Facts that are known beside the notes: their rows, their ledger, and finding them by their words."""
