"""Operations on MCP servers."""
