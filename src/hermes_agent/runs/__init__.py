"""Running sessions: the front door, the scheduler, the event bus, replies, locks, health."""
