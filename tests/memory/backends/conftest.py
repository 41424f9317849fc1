"""The memory on this machine is tested on both databases."""

from tests.databases import cluster, database_url, open_another, open_postgres, store

__all__ = ["cluster", "database_url", "open_another", "open_postgres", "store"]
