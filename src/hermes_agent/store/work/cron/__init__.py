"""Tables of scheduled jobs and of their instants."""
