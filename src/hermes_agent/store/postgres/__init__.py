"""PostgreSQL backend of the store, through asyncpg, for homes on several machines."""
