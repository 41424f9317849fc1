"""Webhook server: verifies and filters incoming events, and hands them to the agent with a restricted toolset."""
