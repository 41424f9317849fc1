"""HTTP server for inbound requests: listener, request checks, and server-sent events."""
