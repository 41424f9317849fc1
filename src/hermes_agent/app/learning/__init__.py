"""Wires the package `learning` into a process: review triggers, learning jobs and the skill curator."""
