"""The curator: now and then it looks through the skills that the agent made, puts aside what nobody uses, and mends."""
