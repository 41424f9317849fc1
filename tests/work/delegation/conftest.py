"""Both databases, as the tests of the store."""

from tests.databases import cluster, database_url, open_another, open_postgres, store

__all__ = ["cluster", "database_url", "open_another", "open_postgres", "store"]
