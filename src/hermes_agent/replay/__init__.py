"""Record and replay: the seam between runs and the world (time, ids, models, tools), recorder and replayer."""
