"""Full-text search without a database: tokens of a text, query parsing, and ranking."""
