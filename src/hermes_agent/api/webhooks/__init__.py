"""Webhook server: verifies and filters incoming HTTP events, and hands each to the agent or directly to a chat."""
