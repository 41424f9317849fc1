"""Delegation: sessions to which another session gave a goal, and their reports."""
