"""The files of a folder on both sides: here, and in a place that has others of its own."""
