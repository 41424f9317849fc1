"""The agent in editors: the Agent Client Protocol over standard input and output."""
