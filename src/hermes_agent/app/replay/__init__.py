"""Whole recordings played, and what came of it."""
