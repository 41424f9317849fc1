"""Markdown for chat platforms: code blocks, tables, formulas, dialects, and splitting long text."""
