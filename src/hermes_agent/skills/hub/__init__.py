"""Skill hub: finds, installs, updates and publishes skills in git repositories."""
