"""Danger analysis of shell commands: which are blocked, and which need a person's approval."""
