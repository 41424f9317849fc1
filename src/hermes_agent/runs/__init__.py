"""Runs of sessions: the front door for messages, the scheduler, the event bus, replies, locks, health."""
