"""PostgreSQL through asyncpg: what SQLite does for one machine, for many."""
