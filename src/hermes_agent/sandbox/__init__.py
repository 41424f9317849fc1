"""Sandboxes and remote machines: the places where commands run, behind one protocol."""
