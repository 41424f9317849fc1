"""The curator: maintains the skills that the agent made; archives unused ones, lets a model repair or join others."""
