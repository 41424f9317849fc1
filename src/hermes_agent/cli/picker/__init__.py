"""Choosing one of many at a terminal."""
