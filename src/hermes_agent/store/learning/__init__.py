"""Tables of learning: counters, jobs, constraints, and proposals."""
