"""Slack: its Web API and Socket Mode, in words of the gateway."""
