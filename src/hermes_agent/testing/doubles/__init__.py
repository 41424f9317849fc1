"""Chat platforms on loopback: what a person does there, what the agent shows there, and what goes wrong there."""
