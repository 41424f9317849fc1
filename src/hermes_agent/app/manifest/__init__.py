"""The manifest of the built-in tools: schemas for the prompt without loading a tool, and the registry of toolsets."""
