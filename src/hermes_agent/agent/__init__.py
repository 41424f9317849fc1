"""The loop and the conversation: ask a model, act on its tool calls, keep the log. Knows core and the store, nothing
else."""
