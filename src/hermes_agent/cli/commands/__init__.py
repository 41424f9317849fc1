"""Subcommands of `hermes`, one module each; `cli/table.py` lists them."""
