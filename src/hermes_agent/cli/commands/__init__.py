"""One file per subcommand; the table of them is `cli/table.py`."""
