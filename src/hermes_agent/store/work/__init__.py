"""Tables of work without a person: mandates, and what people see of workers and sessions."""
