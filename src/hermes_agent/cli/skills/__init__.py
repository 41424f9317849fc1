"""Skill hub commands of `hermes skills`: repositories, and helpers shared by all skill commands."""
