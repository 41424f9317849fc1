"""Application layer: wires the packages below into one system, with settings, operations, commands and the Python
API."""
