"""The command line: what a person types at a shell."""
