"""Slack protocol: Web API and Socket Mode events."""
