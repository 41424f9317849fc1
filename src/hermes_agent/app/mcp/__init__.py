"""MCP servers in a process: the source of their tools, their sign-ins, and files of other programs that name them."""
