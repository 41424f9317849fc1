"""The agent loop and the conversation: ask a model, run its tool calls, keep the log. Imports only core and store."""
