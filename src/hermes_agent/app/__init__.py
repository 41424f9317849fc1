"""Application layer: wires the packages below it into one system, and holds settings, operations, slash commands and
the Python API."""
