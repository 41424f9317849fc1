"""What a process has that serves everybody: what it keeps, what runs say, its settings."""
