"""Record and replay of runs: the seam between runs and the world (time, ids, models, tools), recorder and replayer."""
