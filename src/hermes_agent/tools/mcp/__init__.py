"""Tools of MCP servers: their catalogue, connections, results and questions."""
