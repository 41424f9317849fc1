"""Hermes as an MCP server: its sessions, runs, board, jobs and skills for other programs."""
