"""The tests, in the same tree as the program; see AGENTS.md."""
