"""What a process has that serves everybody: what it keeps, what runs say, what people order, its settings."""
