"""The version of this program, the same as in pyproject.toml."""

VERSION = "0.1.0"
