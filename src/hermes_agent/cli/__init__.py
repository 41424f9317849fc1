"""Command-line interface: `hermes` with its subcommands, the terminal chat and one-shot questions."""
