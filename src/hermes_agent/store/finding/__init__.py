"""How words are found again: the terms of a text, what a question asks for, and the ranking; no database."""
