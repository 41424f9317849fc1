"""Discord protocol: gateway stream and event parsing."""
