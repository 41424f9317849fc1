"""The curator: maintains the skills that the agent made; archives unused ones and lets a model repair or join the
others."""
