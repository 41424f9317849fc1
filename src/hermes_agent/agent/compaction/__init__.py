"""Compaction: what a model is shown is made shorter before it no longer fits; the log keeps everything."""
