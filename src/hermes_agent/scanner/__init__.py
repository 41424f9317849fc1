"""Finds in a text what may be meant to mislead a model or to stay hidden from a person: a hint, never the boundary."""
