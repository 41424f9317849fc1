"""Compaction: shortens the conversation that a model sees before it exceeds the window; the log keeps everything."""
