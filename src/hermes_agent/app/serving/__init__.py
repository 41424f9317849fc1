"""Settings of what listens."""
