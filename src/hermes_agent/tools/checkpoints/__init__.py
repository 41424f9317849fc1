"""Checkpoints: how files were before a change, kept in the home and never in a project's own repository."""
