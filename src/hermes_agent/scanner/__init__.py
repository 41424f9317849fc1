"""Scans texts for prompt injection and hidden characters: a hint, never the security boundary."""
