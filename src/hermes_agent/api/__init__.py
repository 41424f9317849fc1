"""HTTP API server: OpenAI-compatible endpoints, and Hermes's own for runs and sessions."""
