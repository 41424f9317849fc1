"""Telegram protocol: Bot API client, updates, and message formatting."""
