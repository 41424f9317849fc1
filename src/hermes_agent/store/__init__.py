"""Persistence, the only package with SQL: an append-only log per conversation and the tables around it, on SQLite or
PostgreSQL."""
