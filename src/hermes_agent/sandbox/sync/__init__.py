"""Synchronises a session's folder with a place that has files of its own."""
