"""Matrix: its client-server API, in words of the gateway."""
