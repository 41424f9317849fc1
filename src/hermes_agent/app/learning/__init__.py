"""Wires the learning package into a process: triggers, review jobs and the skill curator."""
