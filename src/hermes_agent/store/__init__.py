"""The only package that speaks SQL: one log per conversation, and the rows around it, on SQLite or PostgreSQL."""
