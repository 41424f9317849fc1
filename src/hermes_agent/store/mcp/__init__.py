"""Tables of MCP servers: what each offered when it was asked last."""
