"""The API server: the agent for programs, over HTTP, in OpenAI's words and in its own."""
