"""Watches the calls of a run for going round in circles."""
