"""One file for each kind of place."""
