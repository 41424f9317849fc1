"""What a reply says, as a chat can show it: code blocks, tables, formulas, and where a long one is cut."""
