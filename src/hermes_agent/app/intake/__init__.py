"""Input that is too large for a message: kept whole as a file of the home."""
