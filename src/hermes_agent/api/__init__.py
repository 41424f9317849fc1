"""HTTP API: OpenAI-compatible endpoints, Hermes's own endpoints for runs and sessions, and the webhook server."""
