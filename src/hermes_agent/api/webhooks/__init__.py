"""Webhook routes: what a program elsewhere reports, checked, and handed to the agent with few tools."""
