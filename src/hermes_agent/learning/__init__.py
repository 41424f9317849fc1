"""What is learned from conversations: when they are reviewed, by whom, from what, and what becomes of it."""
