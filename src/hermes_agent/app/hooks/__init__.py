"""Hooks: programs of the person's own that are told of what happens, and may stop or change it."""
